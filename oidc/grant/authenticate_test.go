package grant_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/apps/boot"
	"crier/oidc"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/credential"
	tenancydb "crier/tenancy/db"
	deletionstore "crier/tenancy/deletion/store"
	"crier/tests/tenancytest"
	"crier/tests/tenant"
)

// second adds a second process on the rig's database, which receives revocations. The clock stands
// still, so nothing that the process has cached expires.
func (r *rig) second(db *pg.DB) (*boot.Accounts, *boot.OAuth) {
	r.Helper()
	listening := &credential.Listening{}
	accounts, oauth := r.process(db, listening)
	ctx, end := context.WithCancel(context.WithoutCancel(r.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		accounts.Listen(ctx, listening, oauth.Grants.Cached())
	}()
	r.Cleanup(func() {
		end()
		<-done
	})
	r.await("the process receives revocations", listening.Healthy)
	return accounts, oauth
}

// await waits until is returns true.
func (r *rig) await(what string, is func() bool) {
	r.Helper()
	for range 500 {
		if is() {
			return
		}
		must(r.T, clock.Sleep(r.Context(), 2*time.Millisecond))
	}
	r.Fatalf("waited in vain: %s", what)
}

// Each change takes a permission away from the person in one process. The other process, which has
// cached the token, rejects it once it has received the announcement.
func TestAuthenticate_ChangeReachesOtherProcesses(t *testing.T) {
	t.Parallel()
	enroll := func(r *rig, p tenancy.Principal) {
		tenancytest.Gate(r.T, r.db, `insert into mfa (person_id, secret, begun_by, confirmed_at) values ($1, 'x', sha256('x'), now())`, p.Person)
	}
	for name, c := range map[string]struct {
		before, change func(r *rig, p tenancy.Principal, tokens oidc.Tokens)
		want           fault.Kind
	}{
		"the person revokes the grant": {
			change: func(r *rig, p tenancy.Principal, _ oidc.Tokens) { r.revokeAll(p, p) }, want: fault.Unauthenticated,
		},
		"an administrator revokes the grant": {
			change: func(r *rig, p tenancy.Principal, _ oidc.Tokens) { r.revokeAll(p, r.owner) }, want: fault.Unauthenticated,
		},
		"the client revokes the token": {
			change: func(r *rig, _ tenancy.Principal, got oidc.Tokens) {
				must(r.T, r.Grants.RevokeToken(r.Context(), r.client, got.Access))
			},
			want: fault.Unauthenticated,
		},
		"the client revokes the family": {
			change: func(r *rig, _ tenancy.Principal, got oidc.Tokens) {
				must(r.T, r.Grants.RevokeToken(r.Context(), r.client, got.Refresh))
			},
			want: fault.Unauthenticated,
		},
		"the member is removed": {
			change: func(r *rig, p tenancy.Principal, _ oidc.Tokens) {
				_, err := r.accounts.RemoveMember(r.Context(), r.owner, p.Person.String(), false)
				must(r.T, err)
			},
			want: fault.Unauthenticated,
		},
		"the organization is suspended": {
			change: func(r *rig, p tenancy.Principal, _ oidc.Tokens) {
				must(r.T, r.accounts.Suspend(r.Context(), p.Org.String(), true))
			},
			want: fault.Forbidden,
		},
		"the organization requires a second factor": {
			before: func(r *rig, _ tenancy.Principal, _ oidc.Tokens) { enroll(r, r.owner) },
			change: func(r *rig, _ tenancy.Principal, _ oidc.Tokens) {
				must(r.T, r.accounts.SetMFAPolicy(r.Context(), r.owner, true))
			},
			want: fault.Forbidden,
		},
		"the second factor is disabled": {
			before: func(r *rig, p tenancy.Principal, _ oidc.Tokens) {
				enroll(r, r.owner)
				enroll(r, p)
				must(r.T, r.accounts.SetMFAPolicy(r.Context(), r.owner, true))
			},
			change: func(r *rig, p tenancy.Principal, _ oidc.Tokens) {
				must(r.T, r.accounts.DisableMFAOf(r.Context(), p.Name))
			},
			want: fault.Forbidden,
		},
		"the account is deleted": {
			change: func(r *rig, p tenancy.Principal, _ oidc.Tokens) {
				must(r.T, r.accounts.DB.InGate(r.Context(), "test", func(tx *tenancydb.GateTx) error {
					now := time.Now()
					return deletionstore.SetPersonDeleted(r.Context(), tx, p.Person, &now)
				}))
			},
			want: fault.Forbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			_, other := r.second(r.db)
			member := tenant.Join(t, r.db, r.owner.Org, tenancy.RoleUser)
			got := r.tokens(member, nil)
			if c.before != nil {
				c.before(r, member, got)
			}
			works := func() bool {
				_, err := other.Grants.Authenticate(t.Context(), got.Access)
				return err == nil
			}
			r.await("the token works", works)
			c.change(r, member, got)
			r.await("the other process refuses the token", func() bool { return !works() })
			if _, err := other.Grants.Authenticate(t.Context(), got.Access); !fault.Is(err, c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if _, err := other.Grants.AuthenticateHash(t.Context(), secret.HashToken(got.Access)); !fault.Is(err, c.want) {
				t.Errorf("by its hash: got %v, want %s", err, c.want)
			}
		})
	}
}

func TestAuthenticateHash_IsTheSameAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	member := tenant.Join(t, r.db, r.owner.Org, tenancy.RoleUser)
	got := r.tokens(member, nil)
	want, err := r.Grants.Authenticate(t.Context(), got.Access)
	must(t, err)
	if p, err := r.Grants.AuthenticateHash(t.Context(), secret.HashToken(got.Access)); err != nil || p != want {
		t.Errorf("got %+v and %v, want %+v", p, err, want)
	}
	for name, other := range map[string]string{"the refresh token": got.Refresh, "the hash as text": string(secret.HashToken(got.Access))} {
		if _, err := r.Grants.AuthenticateHash(t.Context(), secret.HashToken(other)); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: got %v, want Unauthenticated", name, err)
		}
	}
}

// revokeAll revokes all grants of a member, as by.
func (r *rig) revokeAll(member, by tenancy.Principal) {
	r.Helper()
	all, err := r.Grants.List(r.Context(), member)
	must(r.T, err)
	if len(all) == 0 {
		r.Error("the member has no grant")
	}
	for _, g := range all {
		must(r.T, r.Grants.Revoke(r.Context(), by, g.ID.String()))
	}
}

// The role is the person's at the time of the request, in both directions.
func TestAuthenticate_RoleFollowsThePerson(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, other := r.second(r.db)
	member := tenant.Join(t, r.db, r.owner.Org, tenancy.RoleAdmin)
	got := r.tokens(member, nil)
	for _, role := range []tenancy.Role{tenancy.RoleAdmin, tenancy.RoleUser, tenancy.RoleAdmin} {
		if p := r.wantToken("the token", got.Access, ""); p.Role != role {
			_, err := r.accounts.SetRole(t.Context(), r.owner, member.Person.String(), tenancy.RoleChange{Role: role})
			must(t, err)
		}
		r.await("the other process has the role "+string(role), func() bool {
			p, err := other.Grants.Authenticate(t.Context(), got.Access)
			return err == nil && p.Role == role
		})
	}
}

func TestConfirm_AgentNeedsItsGrant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.tokens(r.owner, nil)
	p := r.wantToken("the token", got.Access, "")
	confirm := func() error {
		return r.accounts.DB.InOrgAs(t.Context(), "test", p, func(*tenancydb.OrgTx) error { return nil })
	}
	must(t, confirm())
	r.exec(`update oauth_grant set ends_at = now() - interval '1 hour'`)
	if err := confirm(); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("after the end of the grant: %v, want Unauthenticated", err)
	}
	r.exec(`update oauth_grant set ends_at = null`)
	must(t, confirm())
	r.revokeAll(r.owner, r.owner)
	if err := confirm(); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("after the revocation: %v, want Unauthenticated", err)
	}
}

func TestAuthenticate_RefusesWhatIsNoAccessToken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.tokens(r.owner, nil)
	for _, token := range []string{
		"", "x", got.Refresh, oidc.AccessPrefix + got.Refresh[len(oidc.RefreshPrefix):], got.Access + "x", "Bearer " + got.Access,
	} {
		r.wantToken(token, token, fault.Unauthenticated)
	}
}

func TestUserInfo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.tokens(r.owner, nil)
	info, err := r.Grants.UserInfo(t.Context(), got.Access)
	if err != nil || info.Person != r.owner.Person || info.Email != r.owner.Name || info.Org != r.owner.Org {
		t.Errorf("got %+v, %v", info, err)
	}
	if _, err := r.Grants.UserInfo(t.Context(), got.Refresh); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("a refresh token: %v, want Unauthenticated", err)
	}
	for _, verified := range []bool{true, false} {
		must(t, r.db.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), `update person set verified = $1 where id = $2`, verified, r.owner.Person)
			return err
		}))
		info, err := r.Grants.UserInfo(t.Context(), r.tokens(r.owner, nil).Access)
		if err != nil || info.Verified != verified {
			t.Errorf("an email address that is verified = %t: got %+v, %v", verified, info, err)
		}
	}
}

func TestIntrospect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := r.register(oidc.Metadata{Name: "Other", RedirectURIs: []string{redirectURI}}).Client
	got := r.tokens(r.owner, nil)
	found, err := r.Grants.Introspect(t.Context(), r.client, got.Access)
	if err != nil || !found.Active || found.ClientID != r.client.ClientID || found.Person != r.owner.Person ||
		found.Resource != baseURL+"/mcp" || found.Expires == nil || found.Org != r.owner.Org {
		t.Errorf("got %+v, %v", found, err)
	}
	stranger := tenant.New(t, r.db)
	for name, ask := range map[string]func() (oidc.Introspection, error){
		"another client":       func() (oidc.Introspection, error) { return r.Grants.Introspect(t.Context(), other, got.Access) },
		"a refresh token":      func() (oidc.Introspection, error) { return r.Grants.Introspect(t.Context(), r.client, got.Refresh) },
		"an unknown token":     func() (oidc.Introspection, error) { return r.Grants.Introspect(t.Context(), r.client, "x") },
		"another organization": func() (oidc.Introspection, error) { return r.Grants.IntrospectFor(t.Context(), stranger, got.Access) },
	} {
		if found, err := ask(); err != nil || found.Active {
			t.Errorf("%s: got %+v, %v; want an inactive token", name, found, err)
		}
	}
	if found, err := r.Grants.IntrospectFor(t.Context(), r.owner, got.Access); err != nil || !found.Active {
		t.Errorf("the organization: got %+v, %v; want an active token", found, err)
	}
	must(t, r.accounts.Suspend(t.Context(), r.owner.Org.String(), true))
	r.Grants.Cached().ForgetAll()
	if found, err := r.Grants.Introspect(t.Context(), r.client, got.Access); err != nil || found.Active {
		t.Errorf("a suspended organization: got %+v, %v; want an inactive token", found, err)
	}
}
