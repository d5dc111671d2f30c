package wall

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	tenancydb "crier/tenancy/db"
	keystore "crier/tenancy/key/store"
	mailstore "crier/tenancy/mail/store"
	memberstore "crier/tenancy/member/store"
	organizationstore "crier/tenancy/organization/store"
	"crier/tests/dbtest"
	"crier/tests/tenant"
)

// people returns the tenancy store of a database.
func people(t *testing.T, db *pg.DB) *tenancydb.DB {
	t.Helper()
	s, err := tenancydb.New(db, clock.System{})
	must(t, err)
	return s
}

// addTenancy stores the organization with its owner, a key, an invitation with a link, and an audit
// entry.
func (e tenantFixture) addTenancy(t *testing.T, db *pg.DB) {
	t.Helper()
	owner := tenancy.Person{ID: e.person, Email: e.person.String() + "@example.com", CreatedAt: now}
	must(t, tenant.Add(t.Context(), db, owner, tenancy.Organization{ID: e.org, Name: "x", Timezone: "UTC", CreatedAt: now, Creator: owner.ID}))
	must(t, people(t, db).InOrg(t.Context(), "wall", e.org, func(tx *tenancydb.OrgTx) error {
		if err := keystore.CreateKey(t.Context(), tx, e.newKey(e.key), secret.HashToken(e.key.String()), false); err != nil {
			return err
		}
		if err := memberstore.CreateInvitation(t.Context(), tx, newInvitation(e.invitation), e.person); err != nil {
			return err
		}
		if err := memberstore.AddInvitationLink(t.Context(), tx, e.invitation, secret.HashToken(e.invitation.String())); err != nil {
			return err
		}
		return tenancydb.Audit(t.Context(), tx, e.auditEvent(), now)
	}))
}

func (e tenantFixture) newKey(key tenancy.KeyID) tenancy.APIKey {
	return tenancy.APIKey{ID: key, Org: e.org, Name: "k", Prefix: "p", CreatedBy: e.person, CreatedAt: now}
}

// auditEvent returns an entry whose subject identifies the organization.
func (e tenantFixture) auditEvent() tenancy.AuditEvent {
	return tenancy.AuditEvent{
		Person: e.person, Actor: "owner", Via: tenancy.ViaSession, Action: tenancy.ActionKeyCreated, Subject: e.org.String(),
	}
}

// emails returns the addresses that an organization can read.
func emails(t *testing.T, db *pg.DB, org tenancy.OrgID) (out []string) {
	t.Helper()
	must(t, db.InOrg(t.Context(), org.UUID(), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `select email from person order by email`)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	}))
	return out
}

func newInvitation(invitation tenancy.InvitationID) tenancy.Invitation {
	return tenancy.Invitation{
		ID: invitation, Email: invitee(invitation), Role: tenancy.RoleUser, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
}

// invitee returns the address of an invitation that newInvitation returned.
func invitee(invitation tenancy.InvitationID) string { return invitation.String() + "@example.net" }

// many exceeds the number of members, invitations and keys that the questions give to the asking
// organization.
const many = 8

// addMany adds many members, invitations and keys to an organization.
func (e tenantFixture) addMany(t *testing.T, db *pg.DB) {
	t.Helper()
	must(t, people(t, db).InGate(t.Context(), "wall", func(gate *tenancydb.GateTx) error {
		var added []tenancy.PersonID
		for range many {
			p := tenancy.Person{ID: id.New[tenancy.PersonTag](), CreatedAt: now}
			p.Email = p.ID.String() + "@example.com"
			if err := tenancydb.CreatePerson(t.Context(), gate, p); err != nil {
				return err
			}
			added = append(added, p.ID)
		}
		tx, err := gate.Enter(t.Context(), e.org)
		if err != nil {
			return err
		}
		for _, person := range added {
			if err := e.addOne(t.Context(), tx, person); err != nil {
				return err
			}
		}
		return nil
	}))
}

// addOne adds a member, an invitation and a key.
func (e tenantFixture) addOne(ctx context.Context, tx *tenancydb.OrgTx, person tenancy.PersonID) error {
	if err := tenancydb.AddMember(ctx, tx, tenancy.Membership{Person: person, Role: tenancy.RoleUser}, now); err != nil {
		return err
	}
	if err := memberstore.CreateInvitation(ctx, tx, newInvitation(id.New[tenancy.InvitationTag]()), e.person); err != nil {
		return err
	}
	key := id.New[tenancy.KeyTag]()
	return keystore.CreateKey(ctx, tx, e.newKey(key), secret.HashToken(key.String()), false)
}

// askTenancy does the same as inOrg for the tenancy store.
func askTenancy(
	s *tenancydb.DB, ask func(t *testing.T, tx *tenancydb.OrgTx, theirs tenantFixture) (bool, error),
) question {
	return func(t *testing.T, mine, theirs tenantFixture) (nothing bool) {
		err := s.InOrg(t.Context(), "wall", mine.org, func(tx *tenancydb.OrgTx) (err error) {
			nothing, err = ask(t, tx, theirs)
			return err
		})
		return nothing && err == nil || pg.IsNoRows(err) || refused(err, forbidden, foreign)
	}
}

// tenancyQuestions returns the questions about the organization and its members, keys, invitations
// and audit log.
func tenancyQuestions(s *tenancydb.DB) []map[string]question {
	return []map[string]question{
		organizationQuestions(s), memberQuestions(s), keyQuestions(s), invitationQuestions(s), agentQuestions(s),
	}
}

func organizationQuestions(s *tenancydb.DB) map[string]question {
	return map[string]question{
		"tenancy/organization.CreateOrganization": func(t *testing.T, m, th tenantFixture) bool {
			org := th.org
			if m.org != th.org {
				org = id.New[tenancy.OrgTag]() // mine exists already
			}
			return s.InOrg(t.Context(), "wall", org, func(tx *tenancydb.OrgTx) error {
				o := tenancy.Organization{ID: th.org, Name: "stolen", Timezone: "UTC", CreatedAt: now}
				return organizationstore.CreateOrganization(t.Context(), tx, o, th.person)
			}) == nil
		},
		"tenancy/db.ReadOrganization": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			o, err := tenancydb.ReadOrganization(t.Context(), tx)
			return o.ID != th.org, err
		}),
		"tenancy/organization.Senders": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			var their []string
			err := s.InOrg(t.Context(), "wall", th.org, func(tx *tenancydb.OrgTx) (err error) {
				their, err = organizationstore.Senders(t.Context(), tx, th.person)
				return err
			})
			if err != nil {
				return false, err
			}
			got, err := organizationstore.Senders(t.Context(), tx, th.person)
			return len(their) == 1 && !slices.Contains(got, their[0]), err
		}),
		"tenancy/db.LockOrganization": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			o, err := tenancydb.LockOrganization(t.Context(), tx)
			return o.ID != th.org, err
		}),
		"tenancy/db.UpdateOrganization": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return true, tenancydb.UpdateOrganization(t.Context(), tx, tenancy.Organization{ID: th.org, Name: "stolen", Timezone: "UTC"})
		}),
		"tenancy/db.SetTimezone": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return true, tenancydb.SetTimezone(t.Context(), tx, "Europe/Paris")
		}),
		"tenancy/db.FillTimezone": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			_, err := tenancydb.FillTimezone(t.Context(), tx, "Europe/Paris")
			return true, err
		}),
		"tenancy/member.TakeInvitationsBy": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			taken, err := memberstore.TakeInvitationsBy(t.Context(), tx, th.person)
			return len(taken) == 0, err
		}),
		"tenancy/key.DeleteKeysBy": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return true, keystore.DeleteKeysBy(t.Context(), tx, th.person)
		}),
		"tenancy/key.KeysBy": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			keys, err := keystore.KeysBy(t.Context(), tx, th.person, now)
			return len(keys) == 0, err
		}),
		"tenancy/db.Audit": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			e := th.auditEvent()
			e.Subject = "not theirs"
			return true, tenancydb.Audit(t.Context(), tx, e, now)
		}),
		"tenancy/db.AuditEach": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return true, tenancydb.AuditEach(t.Context(), tx, th.auditEvent(), []string{"not theirs"}, now)
		}),
		"tenancy/organization.AuditEvents": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			out, err := organizationstore.AuditEvents(t.Context(), tx, tenancy.AuditQuery{Limit: 1000})
			return !slices.ContainsFunc(out, func(e tenancy.AuditEvent) bool { return e.Subject == th.org.String() }), err
		}),
	}
}

func memberQuestions(s *tenancydb.DB) map[string]question {
	return map[string]question{
		"tenancy/db.AddMember": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			m := tenancy.Membership{Org: th.org, Person: th.person, Role: tenancy.RoleUser}
			return true, tenancydb.AddMember(t.Context(), tx, m, now)
		}),
		"tenancy/db.Members": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			out, err := tenancydb.Members(t.Context(), tx)
			return !slices.ContainsFunc(out, func(m tenancy.Member) bool { return m.Person == th.person }), err
		}),
		"tenancy/mail.Recipients": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			out, err := mailstore.Recipients(t.Context(), tx, tenancy.PersonID{}, 1000)
			return !slices.ContainsFunc(out, func(r mailstore.Recipient) bool { return r.Person == th.person }), err
		}),
		"tenancy/member.IsMember": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			is, err := memberstore.IsMember(t.Context(), tx, th.person.String()+"@example.com")
			return !is, err
		}),
		"tenancy/member.LockMember": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			_, err := memberstore.LockMember(t.Context(), tx, th.person)
			return false, err
		}),
		"tenancy/member.SetRole": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return false, memberstore.SetRole(t.Context(), tx, th.person, tenancy.RoleUser)
		}),
		"tenancy/member.RemoveMember": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return false, memberstore.RemoveMember(t.Context(), tx, th.person)
		}),
		"tenancy/member.MemberEmail": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			_, err := memberstore.MemberEmail(t.Context(), tx, th.person)
			return false, err
		}),
		"tenancy/member.CountMembers": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			members, invitations, err := memberstore.CountMembers(t.Context(), tx, now)
			return members < many && invitations < many, err
		}),
	}
}

func keyQuestions(s *tenancydb.DB) map[string]question {
	return map[string]question{
		"tenancy/key.CreateKey": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			key := id.New[tenancy.KeyTag]()
			return true, keystore.CreateKey(t.Context(), tx, th.newKey(key), secret.HashToken(key.String()), false)
		}),
		"tenancy/key.ListKeys": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			out, err := keystore.ListKeys(t.Context(), tx, now, 1000)
			return !slices.ContainsFunc(out, func(k keystore.Key) bool { return k.ID == th.key }), err
		}),
		"tenancy/key.LockKey": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			_, err := keystore.LockKey(t.Context(), tx, th.key, func() time.Time { return now })
			return false, err
		}),
		"tenancy/key.OldestKey": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			key, err := keystore.OldestKey(t.Context(), tx, now)
			return key != th.key, err
		}),
		"tenancy/key.RenameKey": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return false, keystore.RenameKey(t.Context(), tx, th.key, "stolen")
		}),
		"tenancy/key.ReplaceKey": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return false, keystore.ReplaceKey(t.Context(), tx, th.key, now)
		}),
		"tenancy/key.DeleteKey": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return false, keystore.DeleteKey(t.Context(), tx, th.key)
		}),
		"tenancy/key.CountKeys": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			n, err := keystore.CountKeys(t.Context(), tx, now)
			return n < many, err
		}),
	}
}

func invitationQuestions(s *tenancydb.DB) map[string]question {
	return map[string]question{
		"tenancy/member.CreateInvitation": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return true, memberstore.CreateInvitation(t.Context(), tx, newInvitation(id.New[tenancy.InvitationTag]()), th.person)
		}),
		"tenancy/member.AddInvitationLink": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return false, memberstore.AddInvitationLink(t.Context(), tx, th.invitation, secret.HashToken("another"))
		}),
		"tenancy/member.ListInvitations": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			out, err := memberstore.ListInvitations(t.Context(), tx, now)
			return !slices.ContainsFunc(out, func(i tenancy.Invitation) bool { return i.ID == th.invitation }), err
		}),
		"tenancy/member.ReadInvitation": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			_, err := memberstore.ReadInvitation(t.Context(), tx, th.invitation)
			return false, err
		}),
		"tenancy/member.TakeInvitationsFor": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			taken, err := memberstore.TakeInvitationsFor(t.Context(), tx, invitee(th.invitation))
			return len(taken) == 0, err
		}),
		"tenancy/member.TakeInvitation": askTenancy(s, func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			_, err := memberstore.TakeInvitation(t.Context(), tx, th.invitation)
			return false, err
		}),
	}
}

// crossing maps each statement that takes an organization, or runs in one, but has no question to
// the reason.
var crossing = map[string]string{
	"tenancy/db.LockAuthority":                "it locks the permissions in an organization and returns nothing",
	"tenancy/db.IsImpersonated":               "the gate confirms a session in the organization of its principal",
	"tenancy/db.ConfirmMember":                "as tenancy/db.IsImpersonated",
	"tenancy/db.ConfirmGuest":                 "as tenancy/db.IsImpersonated",
	"tenancy/db.ConfirmKey":                   "as tenancy/db.IsImpersonated",
	"tenancy/db.ConfirmAgent":                 "as tenancy/db.IsImpersonated",
	"tenancy/db.AnnounceOrg":                  "it announces a change in an organization, and reads and writes nothing",
	"tenancy/db.AuditIn":                      "covered by tenancy/db.Audit",
	"channel.Connect":                         "covered by channel.ConnectChannel",
	"db.LockOrganization":                     "it locks the organization of its transaction",
	"channel.CountChannels":                   "returns a number of rows that channel.Channels is asked for",
	"webhook.CountWebhooks":                   "returns a number of rows that webhook.Webhooks is asked for",
	"approval.LockReviewMails":                "locks the organization of the transaction",
	"post.ReadPostQuota":                      "locks the organization of the transaction and returns numbers only",
	"approval.Reviewable":                     "it reads the name of the one organization that it is asked about",
	"approval.FindReviewAbout":                "it reads the name and the zone of the one organization that it is asked about, and the name of a member",
	"approval.ReviewMails":                    "it counts the rows of its own organization from a time on",
	"approval.AddReviewTask":                  "a task belongs to the organization of the transaction, and its handler finds the request there",
	"webhook.WebhookOrgs":                     "the loop of webhooks goes from organization to organization; it reads ids only",
	"webhook.WebhookTurns":                    "as webhook.WebhookOrgs",
	"notification.IncidentOrgs":               "the loop of notifications goes from organization to organization; it reads ids only",
	"notification.MailOrgs":                   "as notification.IncidentOrgs",
	"notification.ActivityTime":               "returns a time, for what the organization of the transaction writes",
	"notification.TryLockIncidents":           "locks what the organization of the transaction counts",
	"tenancy/db.AuditOrg":                     "the operator and people act on organizations that they name; it appends and reads nothing",
	"tenancy/session.BeginImpersonation":      "an administrator of the instance acts as a member; its caller checks both",
	"tenancy/deletion.SetOrganizationDeleted": "an undo has no session in the organization, which nobody can enter; its caller checks who owns it",
	"tenancy/instance.ReadMarks":              "the task that stops or resumes an organization reads whether it may publish, from outside of it",
	"tenancy/instance.SetSuspended":           "only the operator of the instance suspends organizations, from outside of them",
	"tenancy/instance.ListOrganizations":      "the operator lists all organizations; the id is where a page begins",
	"tenancy/instance.MarkedOrgs":             "the instance compares the stops of all organizations; the id is where a page begins",
	"tenancy/deletion.FindOwned":              "the purge of the instance finds rows of an organization that nobody can enter any more",
	"tenancy/deletion.Purge":                  "the purge of the instance deletes rows of an organization that nobody can enter any more",
	"tenancy/mail.HeldMail":                   "the mails of the instance belong to no organization; it finds one to an address by what the mail is about",
	"tenancy/deletion.DueOrganizations":       "the purge of the instance finds what is due; the id is where a page begins",
	"tenancy/deletion.PurgeOrganization":      "the purge of the instance deletes organizations that nobody can enter any more",
}

// A tenant can read the names and addresses of its members, and of nobody else.
func TestTenantRole_ReadsOnlyMembers(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	mine, theirs := newTenantFixture(t, db), newTenantFixture(t, db)
	for _, c := range []struct {
		name string
		org  tenancy.OrgID
		want []string
	}{
		{name: "mine", org: mine.org, want: []string{mine.person.String() + "@example.com"}},
		{name: "theirs", org: theirs.org, want: []string{theirs.person.String() + "@example.com"}},
		{name: "no organization", org: id.New[tenancy.OrgTag]()},
	} {
		if got := emails(t, db, c.org); !slices.Equal(got, c.want) {
			t.Errorf("%s: got the addresses %v, want %v", c.name, got, c.want)
		}
	}
	must(t, people(t, db).InOrg(t.Context(), "wall", theirs.org, func(tx *tenancydb.OrgTx) error {
		return tenancydb.AddMember(t.Context(), tx, tenancy.Membership{Person: mine.person, Role: tenancy.RoleUser}, now)
	}))
	if got := emails(t, db, theirs.org); len(got) != 2 {
		t.Errorf("got the addresses %v after another person has joined, want two", got)
	}
	if got := emails(t, db, mine.org); len(got) != 1 {
		t.Errorf("got the addresses %v after a member has joined another organization, want one", got)
	}
}
