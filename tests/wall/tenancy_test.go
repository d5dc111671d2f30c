package wall

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
	"crier/tests/dbtest"
	"crier/tests/tenant"
)

// people returns the tenancy store of a database.
func people(t *testing.T, db *pg.DB) *tenancystore.Store {
	t.Helper()
	s, err := tenancystore.New(db)
	must(t, err)
	return s
}

// addTenancy stores the organization with its owner, and a key, an invitation with a link and an entry of the audit log.
func (e tenantFixture) addTenancy(t *testing.T, db *pg.DB) {
	t.Helper()
	owner := tenancy.Person{ID: e.person, Email: e.person.String() + "@example.com", CreatedAt: now}
	must(t, tenant.Add(t.Context(), db, owner, tenancy.Organization{ID: e.org, Name: "x", Timezone: "UTC", CreatedAt: now, Creator: owner.ID}))
	must(t, people(t, db).InOrg(t.Context(), e.org, func(tx *tenancystore.OrgTx) error {
		if err := tx.CreateKey(t.Context(), e.newKey(e.key), secret.HashToken(e.key.String()), false); err != nil {
			return err
		}
		if err := tx.CreateInvitation(t.Context(), newInvitation(e.invitation), e.person); err != nil {
			return err
		}
		if err := tx.AddInvitationLink(t.Context(), e.invitation, secret.HashToken(e.invitation.String())); err != nil {
			return err
		}
		return tx.Audit(t.Context(), e.auditEvent(), now)
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

// invitee returns the address of an invitation of newInvitation.
func invitee(invitation tenancy.InvitationID) string { return invitation.String() + "@example.net" }

// many is more members, and more invitations and keys, than the questions give to the asking organization.
const many = 8

// addMany adds many members, invitations and keys to an organization.
func (e tenantFixture) addMany(t *testing.T, db *pg.DB) {
	t.Helper()
	must(t, people(t, db).InGate(t.Context(), func(gate *tenancystore.GateTx) error {
		var added []tenancy.PersonID
		for range many {
			p := tenancy.Person{ID: id.New[tenancy.PersonTag](), CreatedAt: now}
			p.Email = p.ID.String() + "@example.com"
			if err := gate.CreatePerson(t.Context(), p); err != nil {
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
func (e tenantFixture) addOne(ctx context.Context, tx *tenancystore.OrgTx, person tenancy.PersonID) error {
	if err := tx.AddMember(ctx, tenancy.Membership{Person: person, Role: tenancy.RoleUser}, now); err != nil {
		return err
	}
	if err := tx.CreateInvitation(ctx, newInvitation(id.New[tenancy.InvitationTag]()), e.person); err != nil {
		return err
	}
	key := id.New[tenancy.KeyTag]()
	return tx.CreateKey(ctx, e.newKey(key), secret.HashToken(key.String()), false)
}

// askTenancy is inOrg for the tenancy store.
func askTenancy(
	s *tenancystore.Store, ask func(t *testing.T, tx *tenancystore.OrgTx, theirs tenantFixture) (bool, error),
) question {
	return func(t *testing.T, mine, theirs tenantFixture) (nothing bool) {
		err := s.InOrg(t.Context(), mine.org, func(tx *tenancystore.OrgTx) (err error) {
			nothing, err = ask(t, tx, theirs)
			return err
		})
		return nothing && err == nil || pg.IsNoRows(err) || refused(err, forbidden, foreign)
	}
}

// tenancyQuestions returns the questions about the organization, its members, keys, invitations and audit log.
func tenancyQuestions(s *tenancystore.Store) []map[string]question {
	return []map[string]question{
		organizationQuestions(s), memberQuestions(s), keyQuestions(s), invitationQuestions(s),
	}
}

func organizationQuestions(s *tenancystore.Store) map[string]question {
	return map[string]question{
		"tenancy.OrgTx.CreateOrganization": func(t *testing.T, m, th tenantFixture) bool {
			org := th.org
			if m.org != th.org {
				org = id.New[tenancy.OrgTag]() // mine exists
			}
			return s.InOrg(t.Context(), org, func(tx *tenancystore.OrgTx) error {
				o := tenancy.Organization{ID: th.org, Name: "stolen", Timezone: "UTC", CreatedAt: now}
				return tx.CreateOrganization(t.Context(), o, th.person)
			}) == nil
		},
		"tenancy.OrgTx.Organization": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			o, err := tx.Organization(t.Context())
			return o.ID != th.org, err
		}),
		"tenancy.OrgTx.Senders": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			var their []string
			err := s.InOrg(t.Context(), th.org, func(tx *tenancystore.OrgTx) (err error) {
				their, err = tx.Senders(t.Context(), th.person)
				return err
			})
			if err != nil {
				return false, err
			}
			got, err := tx.Senders(t.Context(), th.person)
			return len(their) == 1 && !slices.Contains(got, their[0]), err
		}),
		"tenancy.OrgTx.LockOrganization": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			o, err := tx.LockOrganization(t.Context())
			return o.ID != th.org, err
		}),
		"tenancy.OrgTx.UpdateOrganization": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			return true, tx.UpdateOrganization(t.Context(), tenancy.Organization{ID: th.org, Name: "stolen", Timezone: "UTC"})
		}),
		"tenancy.OrgTx.SetTimezone": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			return true, tx.SetTimezone(t.Context(), "Europe/Paris")
		}),
		"tenancy.OrgTx.FillTimezone": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			_, err := tx.FillTimezone(t.Context(), "Europe/Paris")
			return true, err
		}),
		"tenancy.OrgTx.TakeInvitationsBy": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			taken, err := tx.TakeInvitationsBy(t.Context(), th.person)
			return len(taken) == 0, err
		}),
		"tenancy.OrgTx.DeleteKeysBy": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			return true, tx.DeleteKeysBy(t.Context(), th.person)
		}),
		"tenancy.OrgTx.KeysBy": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			keys, err := tx.KeysBy(t.Context(), th.person, now)
			return len(keys) == 0, err
		}),
		"tenancy.OrgTx.Audit": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			e := th.auditEvent()
			e.Subject = "not theirs"
			return true, tx.Audit(t.Context(), e, now)
		}),
		"tenancy.OrgTx.AuditEach": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			return true, tx.AuditEach(t.Context(), th.auditEvent(), []string{"not theirs"}, now)
		}),
		"tenancy.OrgTx.AuditEvents": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			out, err := tx.AuditEvents(t.Context(), tenancy.AuditQuery{Limit: 1000})
			return !slices.ContainsFunc(out, func(e tenancy.AuditEvent) bool { return e.Subject == th.org.String() }), err
		}),
	}
}

func memberQuestions(s *tenancystore.Store) map[string]question {
	return map[string]question{
		"tenancy.OrgTx.AddMember": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			m := tenancy.Membership{Org: th.org, Person: th.person, Role: tenancy.RoleUser}
			return true, tx.AddMember(t.Context(), m, now)
		}),
		"tenancy.OrgTx.Members": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			out, err := tx.Members(t.Context())
			return !slices.ContainsFunc(out, func(m tenancy.Member) bool { return m.Person == th.person }), err
		}),
		"tenancy.OrgTx.Recipients": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			out, err := tx.Recipients(t.Context(), tenancy.PersonID{}, 1000)
			return !slices.ContainsFunc(out, func(r tenancystore.Recipient) bool { return r.Person == th.person }), err
		}),
		"tenancy.OrgTx.IsMember": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			is, err := tx.IsMember(t.Context(), th.person.String()+"@example.com")
			return !is, err
		}),
		"tenancy.OrgTx.LockMember": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			_, err := tx.LockMember(t.Context(), th.person)
			return false, err
		}),
		"tenancy.OrgTx.SetRole": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			return false, tx.SetRole(t.Context(), th.person, tenancy.RoleUser)
		}),
		"tenancy.OrgTx.RemoveMember": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			return false, tx.RemoveMember(t.Context(), th.person)
		}),
		"tenancy.OrgTx.MemberEmail": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			_, err := tx.MemberEmail(t.Context(), th.person)
			return false, err
		}),
		"tenancy.OrgTx.CountMembers": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			members, invitations, err := tx.CountMembers(t.Context(), now)
			return members < many && invitations < many, err
		}),
	}
}

func keyQuestions(s *tenancystore.Store) map[string]question {
	return map[string]question{
		"tenancy.OrgTx.CreateKey": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			key := id.New[tenancy.KeyTag]()
			return true, tx.CreateKey(t.Context(), th.newKey(key), secret.HashToken(key.String()), false)
		}),
		"tenancy.OrgTx.Keys": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			out, err := tx.Keys(t.Context(), now, 1000)
			return !slices.ContainsFunc(out, func(k tenancystore.Key) bool { return k.ID == th.key }), err
		}),
		"tenancy.OrgTx.LockKey": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			_, err := tx.LockKey(t.Context(), th.key, func() time.Time { return now })
			return false, err
		}),
		"tenancy.OrgTx.OldestKey": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			key, err := tx.OldestKey(t.Context(), now)
			return key != th.key, err
		}),
		"tenancy.OrgTx.RenameKey": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			return false, tx.RenameKey(t.Context(), th.key, "stolen")
		}),
		"tenancy.OrgTx.ReplaceKey": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			return false, tx.ReplaceKey(t.Context(), th.key, now)
		}),
		"tenancy.OrgTx.DeleteKey": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			return false, tx.DeleteKey(t.Context(), th.key)
		}),
		"tenancy.OrgTx.CountKeys": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			n, err := tx.CountKeys(t.Context(), now)
			return n < many, err
		}),
	}
}

func invitationQuestions(s *tenancystore.Store) map[string]question {
	return map[string]question{
		"tenancy.OrgTx.CreateInvitation": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			return true, tx.CreateInvitation(t.Context(), newInvitation(id.New[tenancy.InvitationTag]()), th.person)
		}),
		"tenancy.OrgTx.AddInvitationLink": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			return false, tx.AddInvitationLink(t.Context(), th.invitation, secret.HashToken("another"))
		}),
		"tenancy.OrgTx.Invitations": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			out, err := tx.Invitations(t.Context(), now)
			return !slices.ContainsFunc(out, func(i tenancy.Invitation) bool { return i.ID == th.invitation }), err
		}),
		"tenancy.OrgTx.Invitation": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			_, err := tx.Invitation(t.Context(), th.invitation)
			return false, err
		}),
		"tenancy.OrgTx.TakeInvitationsFor": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			taken, err := tx.TakeInvitationsFor(t.Context(), invitee(th.invitation))
			return len(taken) == 0, err
		}),
		"tenancy.OrgTx.TakeInvitation": askTenancy(s, func(t *testing.T, tx *tenancystore.OrgTx, th tenantFixture) (bool, error) {
			_, err := tx.TakeInvitation(t.Context(), th.invitation)
			return false, err
		}),
	}
}

// crossing maps each method that takes an organization, or runs in one, and has no question to the reason.
var crossing = map[string]string{
	"channel.Connect":                       "covered by channel.ConnectChannel",
	"tenancy.OrgTx.AsGate":                  "as tenancy.OrgTx.Leave, and returns to the organization",
	"db.LockOrganization":                   "it locks the organization of its transaction",
	"channel.CountChannels":                 "returns a number of rows that channel.Channels is asked for",
	"webhook.CountWebhooks":                 "returns a number of rows that webhook.Webhooks is asked for",
	"approval.LockReviewMails":              "locks the organization of the transaction",
	"post.ReadPostQuota":                    "locks the organization of the transaction and returns numbers only",
	"approval.Reviewable":                   "it reads the name of the one organization that it is asked about",
	"approval.FindReviewAbout":              "it reads the name and the zone of the one organization that it is asked about, and the name of a member",
	"approval.ReviewMails":                  "it counts the rows of its own organization from a time on",
	"approval.AddReviewTask":                "a task belongs to the organization of the transaction, and its handler finds the request there",
	"webhook.WebhookOrgs":                   "the loop of webhooks goes from organization to organization; it reads ids only",
	"webhook.WebhookTurns":                  "as webhook.WebhookOrgs",
	"notification.IncidentOrgs":             "the loop of notifications goes from organization to organization; it reads ids only",
	"notification.MailOrgs":                 "as notification.IncidentOrgs",
	"notification.ActivityTime":             "returns a time, for what the organization of the transaction writes",
	"notification.TryLockIncidents":         "locks what the organization of the transaction counts",
	"tenancy.Store.InOrg":                   "covered by the methods of OrgTx",
	"tenancy.GateTx.Enter":                  "covered by the methods of OrgTx",
	"tenancy.OrgTx.Leave":                   "returns to the gate's role, which has no organization",
	"tenancy.GateTx.AuditOrg":               "the operator and people act on organizations that they name; it appends and reads nothing",
	"tenancy.GateTx.BeginImpersonation":     "an administrator of the instance acts as a member; its caller checks both",
	"tenancy.GateTx.SetOrganizationDeleted": "an undo has no session in the organization, which nobody can enter; its caller checks who owns it",
	"tenancy.GateTx.Marks":                  "the task that stops or resumes an organization reads whether it may publish, from outside of it",
	"tenancy.GateTx.SetSuspended":           "only the operator of the instance suspends organizations, from outside of them",
	"tenancy.GateTx.ListOrganizations":      "the operator lists all organizations; the id is where a page begins",
	"tenancy.GateTx.MarkedOrgs":             "the instance compares the stops of all organizations; the id is where a page begins",
	"tenancy.Store.FindOwned":               "the purge of the instance finds rows of an organization that nobody can enter any more",
	"tenancy.Store.Purge":                   "the purge of the instance deletes rows of an organization that nobody can enter any more",
	"tenancy.GateTx.HeldMail":               "the mails of the instance belong to no organization; it finds one to an address by what the mail is about",
	"tenancy.GateTx.DueOrganizations":       "the purge of the instance finds what is due; the id is where a page begins",
	"tenancy.GateTx.PurgeOrganization":      "the purge of the instance deletes organizations that nobody can enter any more",
}

// asked returns the names of the methods of a type that need a question: those that take an organization and, if the
// type is a transaction in one, all that have an argument. Those without report on their own transaction only.
func asked(typ reflect.Type, prefix string, inOrg bool) (names []string) {
	for i := range typ.NumMethod() {
		m := typ.Method(i)
		takes := inOrg && m.Type.NumIn() > 1
		for p := range m.Type.NumIn() {
			takes = takes || m.Type.In(p) == reflect.TypeFor[tenancy.OrgID]()
		}
		if takes {
			names = append(names, prefix+typ.Elem().Name()+"."+m.Name)
		}
	}
	return names
}

// A tenant reads the names and addresses of its members, and of nobody else.
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
	must(t, people(t, db).InOrg(t.Context(), theirs.org, func(tx *tenancystore.OrgTx) error {
		return tx.AddMember(t.Context(), tenancy.Membership{Person: mine.person, Role: tenancy.RoleUser}, now)
	}))
	if got := emails(t, db, theirs.org); len(got) != 2 {
		t.Errorf("got the addresses %v after another person has joined, want two", got)
	}
	if got := emails(t, db, mine.org); len(got) != 1 {
		t.Errorf("got the addresses %v after a member has joined another organization, want one", got)
	}
}
