package grant

import (
	"context"
	"time"

	"crier/oidc"
	grantstore "crier/oidc/grant/store"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tenancy/db"
)

// issuing describes what tokens are issued for.
type issuing struct {
	grant    tenancy.GrantID
	scopes   oidc.Scopes
	resource string
	// longLived means that only an access token is issued, which expires only with its grant. There
	// is no refresh token.
	longLived bool
	// ends is when the grant ends, or nil. No token outlives its grant.
	ends *time.Time
	// parent is the hash of the refresh token that the tokens replace, or nil.
	parent []byte
}

// begin creates a token family and issues its first tokens.
func (s *Grants) begin(ctx context.Context, tx *db.OrgTx, op string, i issuing) (oidc.FamilyID, oidc.Tokens, error) {
	family := grantstore.Family{
		ID: id.New[oidc.FamilyTag](), Grant: i.grant, Scopes: i.scopes.Names(), Resource: i.resource,
		CreatedAt: s.clock.Now(),
	}
	if err := grantstore.InsertFamily(ctx, tx, family); err != nil {
		return family.ID, oidc.Tokens{}, err
	}
	out, err := s.issue(ctx, tx, op, family.ID, i)
	return family.ID, out, err
}

// issue issues an access token and, unless i.longLived is set, a refresh token. It stores both in
// the family.
func (s *Grants) issue(ctx context.Context, tx *db.OrgTx, op string, family oidc.FamilyID, i issuing) (
	out oidc.Tokens, err error) {
	now := s.clock.Now()
	out = oidc.Tokens{Scopes: i.scopes, Org: tx.Org}
	access := grantstore.NewToken{Parent: i.parent, CreatedAt: now, ExpiresAt: i.ends}
	if !i.longLived {
		access.ExpiresAt = earlier(now.Add(s.cfg.AccessTTL), i.ends)
	}
	if access.ExpiresAt != nil {
		out.ExpiresIn = access.ExpiresAt.Sub(now)
	}
	if out.Access, access.Hash, err = newToken(op, oidc.AccessPrefix); err != nil {
		return out, err
	}
	if err := grantstore.InsertToken(ctx, tx, family, access); err != nil || i.longLived {
		return out, err
	}
	refresh := grantstore.NewToken{
		Refresh: true, Parent: i.parent, CreatedAt: now, ExpiresAt: earlier(now.Add(oidc.RefreshIdle), i.ends),
	}
	if out.Refresh, refresh.Hash, err = newToken(op, oidc.RefreshPrefix); err != nil {
		return out, err
	}
	return out, grantstore.InsertToken(ctx, tx, family, refresh)
}

// earlier returns the earlier of the two times. If ends is nil, it returns at.
func earlier(at time.Time, ends *time.Time) *time.Time {
	if ends != nil && ends.Before(at) {
		return ends
	}
	return &at
}
