package session

import (
	"context"
	"slices"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	sessionstore "crier/tenancy/session/store"
)

// Session returns the principal for a session token in the chosen organization. If organization is
// empty, invalid or not one of the person's organizations, Session uses the person's first
// organization. This is not an error, because the choice comes from a cookie, and the person's
// memberships may have changed since the cookie was set. Principal.Access describes what the person
// may do in the organization.
//
// If the person is an instance administrator and impersonate is a membership id, the principal acts
// as that member. For everybody else, impersonate has no effect. Session returns
// fault.Unauthenticated if there is no live session.
func (s *Sessions) Session(
	ctx context.Context, token, organization, impersonate string, from tenancy.Source,
) (tenancy.Principal, error) {
	const op = "tenancy.Session"
	session, found, err := s.lookUps.Get(ctx, secret.HashToken(token))
	if err != nil {
		return tenancy.Principal{}, pg.Fault(op, err)
	}
	if !found {
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, op, "Sign in first.")
	}
	p := tenancy.Principal{
		Person: session.Person, Via: tenancy.ViaSession, Session: session.ID, Name: session.Email,
		Instance: session.Instance, From: from,
	}
	if impersonate != "" && session.Instance {
		return s.actAs(ctx, p, impersonate)
	}
	return choose(p, session, organization), nil
}

func (s *Sessions) findSessions(ctx context.Context, hashes [][]byte) (map[string]sessionstore.Session, error) {
	return sessionstore.SessionsByHash(ctx, s.db, hashes, s.clock.Now())
}

// choose returns the principal in the chosen organization. If the person cannot choose that
// organization, it returns the principal in the person's first one.
func choose(p tenancy.Principal, session sessionstore.Session, organization string) tenancy.Principal {
	if len(session.Choices) == 0 {
		p.Access = tenancy.AccessNone
		return p
	}
	chosen, _ := id.Parse[tenancy.OrgTag](organization)
	i := slices.IndexFunc(session.Choices, func(c sessionstore.Choice) bool { return c.Org == chosen })
	choice := session.Choices[max(i, 0)]
	p.Org, p.Role = choice.Org, choice.Role
	switch {
	case choice.Suspended:
		p.Access = tenancy.AccessSuspended
	case choice.RequiresMFA && !session.HasMFA:
		p.Access = tenancy.AccessEnroll
	}
	return p
}
