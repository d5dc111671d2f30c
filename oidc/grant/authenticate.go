package grant

import (
	"context"
	"strings"
	"time"

	"crier/oidc"
	grantstore "crier/oidc/grant/store"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
)

// Authenticate returns the principal for an access token. The principal contains the token's person
// with their current role, and the agent with its limits.
//
// Authenticate returns fault.Unauthenticated if the token is unknown, expired or revoked. It
// returns fault.Forbidden if the person has lost access or the organization is not accessible. It
// returns fault.Unavailable if the database cannot be queried and no recent result is cached.
func (s *Grants) Authenticate(ctx context.Context, accessToken string) (tenancy.Principal, error) {
	const op = "oidc.Authenticate"
	t, err := s.find(ctx, op, accessToken)
	return permitted(op, t, err)
}

// AuthenticateHash is like Authenticate, but for the SHA-256 hash of an access token.
func (s *Grants) AuthenticateHash(ctx context.Context, hash []byte) (tenancy.Principal, error) {
	const op = "oidc.AuthenticateHash"
	t, err := s.findHash(ctx, op, hash)
	return permitted(op, t, err)
}

// permitted returns the principal of a token. err is the error from finding the token.
func permitted(op string, t grantstore.FoundToken, err error) (tenancy.Principal, error) {
	if err == nil {
		err = refusal(op, t)
	}
	if err != nil {
		return tenancy.Principal{}, err
	}
	return principal(t), nil
}

// find returns the token if it is still valid, even if its person has lost access.
func (s *Grants) find(ctx context.Context, op, accessToken string) (grantstore.FoundToken, error) {
	if !strings.HasPrefix(accessToken, oidc.AccessPrefix) || len(accessToken) != len(oidc.AccessPrefix)+tokenLength {
		return grantstore.FoundToken{}, invalid(op)
	}
	return s.findHash(ctx, op, secret.HashToken(accessToken))
}

// findHash is like find, but takes the token's hash.
func (s *Grants) findHash(ctx context.Context, op string, hash []byte) (grantstore.FoundToken, error) {
	t, found, err := s.cache.Find(ctx, hash)
	if err != nil {
		f := fault.Wrap(fault.Unavailable, op, "The database cannot look up access tokens right now; try again soon.", err)
		f.RetryAfter = pg.RetryAfter
		return t, f
	}
	now := s.clock.Now()
	if !found || isPast(t.ExpiresAt, now) || isPast(t.EndsAt, now) {
		return t, invalid(op)
	}
	return t, nil
}

func invalid(op string) error {
	return fault.New(fault.Unauthenticated, op, "Invalid access token: the token has expired, "+
		"the app's access has been revoked or has ended, or the person has left the organization.")
}

func isPast(end *time.Time, now time.Time) bool { return end != nil && !now.Before(*end) }

// refusal returns a Forbidden error that explains why a token's person currently has no access. It
// returns nil if the person has access.
func refusal(op string, t grantstore.FoundToken) error {
	forbidden := func(message string) error { return fault.New(fault.Forbidden, op, message) }
	switch {
	case t.PersonDeleted:
		return forbidden("The account of the person who approved this application is scheduled for deletion.")
	case t.OrgDeleted:
		return forbidden("The organization is scheduled for deletion.")
	case t.Suspended:
		return forbidden("The operator has suspended this organization.")
	case t.Disabled:
		return forbidden("The person who approved this application is no longer a member of the organization.")
	case t.Unenrolled:
		return db.Unenrolled(op)
	}
	return nil
}

func principal(t grantstore.FoundToken) tenancy.Principal {
	writes := scopesOf(t).Writes()
	agent := tenancy.Agent{
		ID: t.Client, Grant: t.Grant, Name: t.ClientName, Write: writes, WriteDeclined: t.WriteDeclined && !writes,
	}
	if len(t.Channels)+len(t.Customers)+t.PostsPerDay > 0 || t.MustAsk {
		agent.Limits = &tenancy.AgentLimits{
			Channels: t.Channels, Customers: t.Customers, MustAsk: t.MustAsk, PostsPerDay: t.PostsPerDay,
		}
	}
	return tenancy.Principal{
		Org: t.Org, Person: t.Person, Role: t.Role, Via: tenancy.ViaAgent, Agent: agent, Name: t.Email,
	}
}

// scopesOf returns a token's scopes, without any that are missing from the person's latest consent.
func scopesOf(t grantstore.FoundToken) oidc.Scopes {
	return oidc.ScopesOf(t.Scopes).Within(oidc.ScopesOf(t.Granted))
}

// UserInfo describes the person that an access token acts for. It returns the same errors as
// Authenticate.
func (s *Grants) UserInfo(ctx context.Context, accessToken string) (oidc.UserInfo, error) {
	const op = "oidc.UserInfo"
	t, err := s.find(ctx, op, accessToken)
	if err != nil {
		return oidc.UserInfo{}, err
	}
	if err := refusal(op, t); err != nil {
		return oidc.UserInfo{}, err
	}
	return oidc.UserInfo{Person: t.Person, Email: t.Email, Verified: t.Verified, Name: t.Name, Org: t.Org}, nil
}

// Introspect describes an access token to a client. A client sees only its own tokens.
func (s *Grants) Introspect(ctx context.Context, c oidc.Client, token string) (oidc.Introspection, error) {
	return s.introspect(ctx, token, func(t grantstore.FoundToken) bool { return t.Client == c.ID })
}

// IntrospectFor describes an access token to an API key's principal. The principal sees only its
// own organization's tokens.
func (s *Grants) IntrospectFor(ctx context.Context, p tenancy.Principal, token string) (oidc.Introspection, error) {
	return s.introspect(ctx, token, func(t grantstore.FoundToken) bool { return t.Org == p.Org })
}

func (s *Grants) introspect(ctx context.Context, token string, sees func(grantstore.FoundToken) bool) (
	oidc.Introspection, error) {
	const op = "oidc.Introspect"
	t, err := s.find(ctx, op, token)
	if fault.Is(err, fault.Unauthenticated) {
		return oidc.Introspection{}, nil
	}
	if err != nil {
		return oidc.Introspection{}, err
	}
	if !sees(t) || refusal(op, t) != nil {
		return oidc.Introspection{}, nil
	}
	return oidc.Introspection{
		Active: true, Scopes: scopesOf(t), ClientID: t.ClientID, Person: t.Person, Org: t.Org, Resource: t.Resource,
		Issued: t.CreatedAt, Expires: earliest(t.ExpiresAt, t.EndsAt),
	}, nil
}

// earliest returns the earlier of two times, either of which may be nil.
func earliest(a, b *time.Time) *time.Time {
	if a == nil {
		return b
	}
	return earlier(*a, b)
}
