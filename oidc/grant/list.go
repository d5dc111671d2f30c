package grant

import (
	"context"

	"crier/oidc"
	grantstore "crier/oidc/grant/store"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
)

// maxGrants is the maximum number of grants in a list.
const maxGrants = 1000

// List returns the principal's own grants in all organizations, newest first, up to 1000. It leaves
// out grants in organizations that are scheduled for deletion.
func (s *Grants) List(ctx context.Context, p tenancy.Principal) ([]oidc.Grant, error) {
	const op = "oidc.Grants"
	if err := bySession(op, p); err != nil {
		return nil, err
	}
	rows, err := grantstore.GrantsOf(ctx, s.db, p.Person, maxGrants)
	return grants(rows), db.Fault(op, err)
}

// ListAll returns the organization's grants, newest first, up to 1000. Only administrators may call
// it.
func (s *Grants) ListAll(ctx context.Context, p tenancy.Principal) (out []oidc.Grant, err error) {
	const op = "oidc.AllGrants"
	if err := mayManage(op, p); err != nil {
		return nil, err
	}
	err = s.db.InOrg(ctx, op, p.Org, func(tx *db.OrgTx) error {
		rows, err := grantstore.Grants(ctx, tx, maxGrants)
		out = grants(rows)
		return err
	})
	return out, err
}

// Revoke revokes a grant and all its tokens. People may revoke their own grants in any
// organization, and administrators may revoke any grant in their organization. Commands in progress
// finish first. Every process rejects later commands within a second. Revoke returns NotFound if
// there is no such grant.
func (s *Grants) Revoke(ctx context.Context, p tenancy.Principal, grant string) error {
	const op = "oidc.Revoke"
	if err := bySession(op, p); err != nil {
		return err
	}
	none := fault.New(fault.NotFound, op, "There is no such application.")
	parsed, ok := id.Parse[tenancy.GrantTag](grant)
	if !ok {
		return none
	}
	owner, err := grantstore.OwnerOfGrant(ctx, s.db, parsed)
	switch {
	case pg.IsNoRows(err):
		return none
	case err != nil:
		return db.Fault(op, err)
	case owner.Person == p.Person:
		err = s.revokeOwn(ctx, op, p, owner.Org, parsed)
	case owner.Org == p.Org && mayManage(op, p) == nil:
		err = s.db.InOrgAlone(ctx, op, p, func(tx *db.OrgTx) error { return s.revoke(ctx, tx, p, parsed) })
	default:
		return none
	}
	if pg.IsNoRows(err) {
		return none
	}
	if err == nil {
		s.cache.ForgetOrgs(owner.Org)
	}
	return err
}

// revokeOwn revokes one of the principal's own grants. It does not require access to the
// organization, so that people who have lost access can still revoke their grants.
func (s *Grants) revokeOwn(ctx context.Context, op string, p tenancy.Principal, org tenancy.OrgID,
	grant tenancy.GrantID) error {
	return s.db.InGate(ctx, op, func(gate *db.GateTx) error {
		if err := s.db.ConfirmSession(ctx, gate, p); err != nil {
			return err
		}
		if err := db.LockAuthority(ctx, gate, org, true); err != nil {
			return err
		}
		tx, err := gate.Enter(ctx, org)
		if err != nil {
			return err
		}
		return s.revoke(ctx, tx, p, grant)
	})
}

func (s *Grants) revoke(ctx context.Context, tx *db.OrgTx, p tenancy.Principal, grant tenancy.GrantID) error {
	g, err := grantstore.LockGrant(ctx, tx, grant)
	if err != nil {
		return err
	}
	if err := grantstore.DeleteGrant(ctx, tx, grant); err != nil {
		return err
	}
	subject := g.ClientName
	if g.Person != p.Person {
		subject += " for " + g.Email
	}
	return db.Audit(ctx, tx, p.Event(tenancy.ActionAgentRevoked, subject), s.clock.Now())
}

func mayManage(op string, p tenancy.Principal) error {
	if p.Role.Manages() && p.Access == tenancy.AccessFull && p.Agent.IsZero() {
		return nil
	}
	return fault.New(fault.Forbidden, op, "Only an administrator may manage the organization's applications.")
}

func grants(rows []grantstore.Grant) []oidc.Grant {
	out := make([]oidc.Grant, len(rows))
	for i, r := range rows {
		out[i] = oidc.Grant{
			ID: r.ID, Org: r.Org, OrgName: r.OrgName,
			Client: oidc.Client{ID: r.Client, ClientID: r.ClientID, Kind: r.ClientKind, Name: r.ClientName},
			Person: r.Person, Email: r.Email, Scopes: oidc.ScopesOf(r.Scopes), WriteDeclined: r.WriteDeclined,
			Limits: oidc.Limits{
				Channels: r.Channels, Customers: r.Customers, MustAsk: r.MustAsk, PostsPerDay: r.PostsPerDay,
				EndsAt: r.EndsAt,
			},
			Created: r.CreatedAt, LastUsed: r.UsedAt,
		}
	}
	return out
}
