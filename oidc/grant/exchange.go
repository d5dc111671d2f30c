package grant

import (
	"context"

	"crier/oidc"
	grantstore "crier/oidc/grant/store"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy/db"
)

// Exchange returns tokens for a code. The client must have been authenticated. If Exchange is
// called concurrently with the same code, only one call succeeds.
//
// If a code is presented again, it has been stolen or replayed, so all tokens issued for it are
// revoked (RFC 6749, 4.1.2). A caller without the code verifier cannot trigger this revocation.
//
// Exchange returns an oidc.Error with InvalidGrant if the code is unknown, used, expired or issued
// to another client. It returns the same error if the redirect URI or the verifier is wrong, or if
// the person has left the organization.
func (s *Grants) Exchange(ctx context.Context, c oidc.Client, r oidc.CodeRequest) (out oidc.Tokens, err error) {
	const op = "oidc.Exchange"
	unknown := oidc.Fail(oidc.InvalidGrant, "The code is unknown or has expired.")
	hash := secret.HashToken(r.Code)
	owner, err := grantstore.OwnerOfCode(ctx, s.db, hash)
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
		code, err := grantstore.LockCode(ctx, tx, hash)
		if pg.IsNoRows(err) {
			refused = unknown
			return nil
		}
		if err != nil {
			return err
		}
		if refused = s.checkCode(c, code, r); refused != nil {
			return nil
		}
		if !code.Family.IsZero() {
			refused, revoked = oidc.Fail(oidc.InvalidGrant, "The code has been used. All its tokens have been revoked."), true
			return grantstore.DeleteFamily(ctx, tx, code.Family)
		}
		if !s.clock.Now().Before(code.ExpiresAt) {
			refused = unknown
			return nil
		}
		out, err = s.useCode(ctx, tx, op, c, hash, code)
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

// checkCode returns nil if the client may exchange the code. Otherwise, it returns an error that
// explains why not.
func (s *Grants) checkCode(c oidc.Client, code grantstore.Code, r oidc.CodeRequest) *oidc.Error {
	refuse := func(message string) *oidc.Error { return oidc.Fail(oidc.InvalidGrant, message) }
	switch {
	case code.Client != c.ID:
		return refuse("The code was issued to another client.")
	case r.RedirectURI == "" && code.Sent:
		return refuse("redirect_uri is required, because the authorization request contained it.")
	case r.RedirectURI != "" && r.RedirectURI != code.RedirectURI:
		return refuse("redirect_uri differs from the one in the authorization request.")
	case code.Challenge == "" && r.Verifier != "":
		// Otherwise, an attacker could bypass PKCE by removing the challenge from the request.
		return refuse("There is a code_verifier, but the authorization request had no code_challenge.")
	case code.Challenge != "" && !oidc.Verify(code.Challenge, r.Verifier):
		return refuse("code_verifier does not match the code_challenge.")
	}
	return nil
}

func (s *Grants) useCode(ctx context.Context, tx *db.OrgTx, op string, c oidc.Client, hash []byte,
	code grantstore.Code) (oidc.Tokens, error) {
	g, err := grantstore.LockGrant(ctx, tx, code.Grant)
	if err != nil {
		return oidc.Tokens{}, err
	}
	family, out, err := s.begin(ctx, tx, op, issuing{
		grant: code.Grant, scopes: oidc.ScopesOf(code.Scopes), resource: code.Resource, longLived: c.LongLived,
		ends: g.EndsAt,
	})
	if err != nil {
		return oidc.Tokens{}, err
	}
	return out, grantstore.UseCode(ctx, tx, hash, family)
}
