package grant

import (
	"context"

	"crier/oidc"
	grantstore "crier/oidc/grant/store"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy/db"
)

// Refresh returns new tokens for a refresh token. The client must have been authenticated.
//
// A client that did not receive the response can send the same refresh token again, as long as it
// has not used a newer one. Each time, the refresh token from the previous response is voided, so
// that only one newer token works. If the same token is sent after a newer one was used, one of the
// two tokens must have been stolen, and the family is revoked. The family is also revoked if a
// voided refresh token is used.
//
// Refresh returns an oidc.Error with InvalidGrant if the token is unknown, expired, revoked or
// issued to another client. It returns the same error if the grant has ended or the person has left
// the organization. A refresh token expires 30 days after it was issued.
func (s *Grants) Refresh(ctx context.Context, c oidc.Client, refresh string) (out oidc.Tokens, err error) {
	const op = "oidc.Refresh"
	unknown := oidc.Fail(oidc.InvalidGrant, "The refresh token is unknown, expired or revoked.")
	hash := secret.HashToken(refresh)
	owner, err := grantstore.OwnerOfToken(ctx, s.db, hash)
	if pg.IsNoRows(err) {
		return out, unknown
	}
	if err != nil {
		return out, db.Fault(op, err)
	}
	var refused *oidc.Error
	revoked := false
	err = s.db.InOrg(ctx, op, owner.Org, func(tx *db.OrgTx) error {
		out, refused, revoked = oidc.Tokens{}, nil, false // fn may run again
		if err := confirmMember(ctx, tx, owner.Person); err != nil {
			return err
		}
		t, err := lockToken(ctx, tx, hash)
		if pg.IsNoRows(err) {
			refused = unknown
			return nil
		}
		if err != nil {
			return err
		}
		now := s.clock.Now()
		switch {
		case !t.Refresh:
			refused = unknown
			return nil
		case t.Client != c.ID:
			refused = oidc.Fail(oidc.InvalidGrant, "The refresh token was issued to another client.")
			return nil
		case t.Voided || t.Succeeded:
			revoked = true
			refused = oidc.Fail(oidc.InvalidGrant, "The refresh token has been replaced. All its tokens have been revoked.")
			return grantstore.DeleteFamily(ctx, tx, t.Family)
		case t.ExpiresAt != nil && !now.Before(*t.ExpiresAt) || t.GrantEnds != nil && !now.Before(*t.GrantEnds):
			refused = unknown
			return nil
		}
		out, err = s.rotate(ctx, tx, op, hash, t)
		return err
	})
	if revoked && err == nil {
		s.cache.ForgetOrgs(owner.Org)
	}
	if refused != nil && err == nil {
		return oidc.Tokens{}, refused
	}
	return out, result(err)
}

// lockToken locks a token's family and then reads the token, so that the result remains valid until
// the end of the transaction.
func lockToken(ctx context.Context, tx *db.OrgTx, hash []byte) (grantstore.Token, error) {
	if err := grantstore.LockFamily(ctx, tx, hash); err != nil {
		return grantstore.Token{}, err
	}
	return grantstore.ReadToken(ctx, tx, hash)
}

// rotate issues new tokens for a refresh token, and voids any refresh token that was issued for it
// before.
func (s *Grants) rotate(ctx context.Context, tx *db.OrgTx, op string, hash []byte, t grantstore.Token) (
	oidc.Tokens, error) {
	if err := grantstore.VoidSuccessors(ctx, tx, t.Family, hash); err != nil {
		return oidc.Tokens{}, err
	}
	if err := grantstore.UseToken(ctx, tx, hash, s.clock.Now()); err != nil {
		return oidc.Tokens{}, err
	}
	scopes := oidc.ScopesOf(t.Scopes).Within(oidc.ScopesOf(t.Granted))
	return s.issue(ctx, tx, op, t.Family, issuing{grant: t.Grant, scopes: scopes, ends: t.GrantEnds, parent: hash})
}

// RevokeToken revokes a client's token (RFC 7009). The client must have been authenticated. If the
// token is a refresh token, RevokeToken revokes the whole family. If the token is unknown or
// belongs to another client, RevokeToken does nothing and returns nil.
func (s *Grants) RevokeToken(ctx context.Context, c oidc.Client, token string) error {
	const op = "oidc.RevokeToken"
	hash := secret.HashToken(token)
	owner, err := grantstore.OwnerOfToken(ctx, s.db, hash)
	if pg.IsNoRows(err) {
		return nil
	}
	if err != nil {
		return db.Fault(op, err)
	}
	err = s.db.InOrg(ctx, op, owner.Org, func(tx *db.OrgTx) error {
		t, err := lockToken(ctx, tx, hash)
		if err != nil || t.Client != c.ID {
			return err
		}
		if t.Refresh {
			return grantstore.DeleteFamily(ctx, tx, t.Family)
		}
		return grantstore.DeleteToken(ctx, tx, hash)
	})
	if pg.IsNoRows(err) {
		return nil
	}
	if err == nil {
		s.cache.ForgetOrgs(owner.Org)
	}
	return err
}
