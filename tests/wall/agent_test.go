package wall

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"crier/oidc"
	clientstore "crier/oidc/client/store"
	grantstore "crier/oidc/grant/store"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	tenancydb "crier/tenancy/db"
	"crier/tests/dbtest"
)

// agentFixture is a static application, which the owner of its organization has approved, and which
// has tokens.
type agentFixture struct {
	client tenancy.AgentID
	grant  tenancy.GrantID
	family oidc.FamilyID
	// code and refresh are hashes. The access token's hash is that of the text of family.
	code, refresh []byte
}

// access is the hash of the access token.
func (a agentFixture) access() []byte { return secret.HashToken(a.family.String()) }

// addAgent stores the application with its grant, its code and its tokens.
func (e *tenantFixture) addAgent(t *testing.T, db *pg.DB) {
	t.Helper()
	a := agentFixture{
		client: id.New[tenancy.AgentTag](), grant: id.New[tenancy.GrantTag](), family: id.New[oidc.FamilyTag](),
	}
	a.code, a.refresh = secret.HashToken("code "+e.org.String()), secret.HashToken("refresh "+e.org.String())
	e.agent = a
	must(t, people(t, db).InGate(t.Context(), "wall", func(gate *tenancydb.GateTx) error {
		_, err := clientstore.Insert(t.Context(), gate, clientstore.Client{
			Client: oidc.Client{
				ID: a.client, ClientID: a.client.String(), Kind: oidc.ClientStatic, Name: "a", Auth: oidc.AuthPost,
				RedirectURIs: []string{"https://client.example/"}, Scopes: oidc.AllScopes(), Org: e.org,
			},
			Secret: secret.HashToken("secret"), CreatedAt: now,
		})
		if err != nil {
			return err
		}
		tx, err := gate.Enter(t.Context(), e.org)
		if err != nil {
			return err
		}
		if err := clientstore.InsertApp(t.Context(), tx, clientstore.App{Client: a.client, CreatedAt: now}, e.person); err != nil {
			return err
		}
		if _, err := grantstore.SaveGrant(t.Context(), tx, e.newGrant(a.client)); err != nil {
			return err
		}
		if _, err := grantstore.TakePosts(t.Context(), tx, a.grant, "2026-01-02", 1); err != nil {
			return err
		}
		if err := grantstore.InsertCode(t.Context(), tx, a.code, secret.HashToken(e.org.String()), a.newCode()); err != nil {
			return err
		}
		if err := grantstore.InsertFamily(t.Context(), tx, a.newFamily(a.family)); err != nil {
			return err
		}
		for _, token := range []grantstore.NewToken{
			{Hash: a.refresh, Refresh: true, CreatedAt: now}, {Hash: a.access(), Parent: a.refresh, CreatedAt: now},
			{Hash: secret.HashToken("successor " + e.org.String()), Refresh: true, Parent: a.refresh, CreatedAt: now},
		} {
			if err := grantstore.InsertToken(t.Context(), tx, a.family, token); err != nil {
				return err
			}
		}
		return nil
	}))
}

func (e *tenantFixture) newGrant(client tenancy.AgentID) grantstore.Grant {
	return grantstore.Grant{
		ID: e.agent.grant, Client: client, ClientID: client.String(), ClientKind: oidc.ClientStatic, ClientName: "a",
		Person: e.person, Scopes: []string{}, Channels: []string{}, Customers: []string{}, CreatedAt: now,
	}
}

func (a agentFixture) newCode() grantstore.Code {
	return grantstore.Code{Grant: a.grant, Client: a.client, Scopes: []string{}, ExpiresAt: now}
}

func (a agentFixture) newFamily(family oidc.FamilyID) grantstore.Family {
	return grantstore.Family{ID: family, Grant: a.grant, Scopes: []string{}, CreatedAt: now}
}

// agentQuestions returns the questions about applications, grants, codes and tokens.
func agentQuestions(s *tenancydb.DB) map[string]question {
	ask := func(ask func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error)) question {
		return askTenancy(s, ask)
	}
	return map[string]question{
		"oidc/client.ReadApp": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			app, err := clientstore.ReadApp(t.Context(), tx)
			return app.Client != th.agent.client, err
		}),
		"oidc/client.LockApp": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			app, err := clientstore.LockApp(t.Context(), tx)
			return app.Client != th.agent.client, err
		}),
		"oidc/client.InsertApp": func(t *testing.T, m, th tenantFixture) bool {
			err := s.InOrg(t.Context(), "wall", m.org, func(tx *tenancydb.OrgTx) error {
				if _, err := tx.Exec(t.Context(), `delete from oauth_app`); err != nil {
					return err
				}
				return clientstore.InsertApp(t.Context(), tx, clientstore.App{Client: th.agent.client, Description: "stolen", CreatedAt: now}, m.person)
			})
			return err == nil
		},
		"oidc/client.UpdateApp": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return true, clientstore.UpdateApp(t.Context(), tx, clientstore.App{Client: th.agent.client, Description: "stolen"})
		}),
		"oidc/grant.SaveGrant": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			g := th.newGrant(th.agent.client)
			g.MustAsk = true
			_, err := grantstore.SaveGrant(t.Context(), tx, g)
			return false, err
		}),
		"oidc/grant.LockGrant": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			_, err := grantstore.LockGrant(t.Context(), tx, th.agent.grant)
			return false, err
		}),
		"oidc/grant.DeleteGrant": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return false, grantstore.DeleteGrant(t.Context(), tx, th.agent.grant)
		}),
		"oidc/grant.Grants": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			out, err := grantstore.Grants(t.Context(), tx, 1000)
			return !slices.ContainsFunc(out, func(g grantstore.Grant) bool { return g.ID == th.agent.grant }), err
		}),
		"oidc/grant.InsertCode": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			hash := secret.HashToken("another " + th.org.String())
			return false, grantstore.InsertCode(t.Context(), tx, hash, hash, th.agent.newCode())
		}),
		"oidc/grant.LockCode": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			_, err := grantstore.LockCode(t.Context(), tx, th.agent.code)
			return false, err
		}),
		"oidc/grant.UseCode": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return false, grantstore.UseCode(t.Context(), tx, th.agent.code, th.agent.family)
		}),
		"oidc/grant.InsertFamily": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return false, grantstore.InsertFamily(t.Context(), tx, th.agent.newFamily(id.New[oidc.FamilyTag]()))
		}),
		"oidc/grant.InsertToken": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			token := grantstore.NewToken{Hash: secret.HashToken("another " + th.org.String()), CreatedAt: now}
			return false, grantstore.InsertToken(t.Context(), tx, th.agent.family, token)
		}),
		"oidc/grant.LockFamily": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return false, grantstore.LockFamily(t.Context(), tx, th.agent.refresh)
		}),
		"oidc/grant.ReadToken": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			_, err := grantstore.ReadToken(t.Context(), tx, th.agent.refresh)
			return false, err
		}),
		"oidc/grant.UseToken": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return false, grantstore.UseToken(t.Context(), tx, th.agent.refresh, now)
		}),
		"oidc/grant.VoidSuccessors": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return true, grantstore.VoidSuccessors(t.Context(), tx, th.agent.family, th.agent.refresh)
		}),
		"oidc/grant.DeleteFamily": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return true, grantstore.DeleteFamily(t.Context(), tx, th.agent.family)
		}),
		"oidc/grant.DeleteToken": ask(func(t *testing.T, tx *tenancydb.OrgTx, th tenantFixture) (bool, error) {
			return false, grantstore.DeleteToken(t.Context(), tx, th.agent.access())
		}),
	}
}

// A grant that another organization's transaction names must not be counted.
func TestTakePosts_CountsOnlyInItsOrganization(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	mine, theirs := newTenantFixture(t, db), newTenantFixture(t, db)
	before := rows(t, db, theirs.org)
	err := db.InOrg(t.Context(), mine.org.UUID(), func(tx pgx.Tx) error {
		_, err := grantstore.TakePosts(t.Context(), tx, theirs.agent.grant, "2026-01-02", 1)
		return err
	})
	if !pg.IsNoRows(err) || rows(t, db, theirs.org) != before {
		t.Errorf("got %v, want no row", err)
	}
}

// Retention deletes only what expired some time ago, whatever a statement asks for.
func TestRetentionRole_KeepsTokensThatWork(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	e := newTenantFixture(t, db)
	must(t, db.InOrg(t.Context(), e.org.UUID(), func(tx pgx.Tx) error {
		for _, sql := range []string{
			`update oauth_token set expires_at = now() - interval '1 minute'`,
			`update oauth_code set expires_at = now() - interval '1 hour'`,
			`update oauth_family set created_at = now()`, `update oauth_grant set approved_at = now()`,
			`update oauth_grant_day set day = now()::date`,
		} {
			if _, err := tx.Exec(t.Context(), sql); err != nil {
				return err
			}
		}
		return nil
	}))
	before := rows(t, db, e.org)
	must(t, db.InRole(t.Context(), pg.Retention, func(tx pgx.Tx) error {
		for _, table := range []string{"oauth_token", "oauth_code", "oauth_family", "oauth_grant", "oauth_grant_day"} {
			if _, err := tx.Exec(t.Context(), `delete from `+table); err != nil {
				return err
			}
		}
		return nil
	}))
	if rows(t, db, e.org) != before {
		t.Error("the retention role has deleted rows that are in use")
	}
}
