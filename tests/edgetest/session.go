package edgetest

import (
	"bytes"
	"cmp"
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/secret"
	"crier/tenancy"
)

// APIKey is the only valid key. It belongs to the organization OrgID.
const APIKey = "crier_0123456789012345678901234567890123456789"

// The tokens of Ada's sessions; see Principals.
const (
	UserSession         = "session-token"
	OtherSession        = "session-in-another-browser"
	AdminSession        = "session-of-admin"
	OwnerSession        = "session-of-owner"
	HomelessSession     = "session-without-organization"
	SuspendedSession    = "session-of-suspended"
	EnrollSession       = "session-to-enroll"
	InstanceSession     = "session-of-instance"
	ImpersonatorSession = "session-behind-owner"
)

// Principals returns the principal of each session:
//
//   - a user, the same user in another browser, an administrator and the owner of the organization
//   - a person without an organization
//   - the owner of a suspended organization
//   - the owner of an organization that requires a second factor, which Ada lacks
//   - an administrator of the instance, and one who acts as the owner
func Principals() map[string]tenancy.Principal {
	base := tenancy.Principal{
		Org: OrgID, Person: PersonID, Role: tenancy.RoleUser, Via: tenancy.ViaSession, Session: SessionID, Name: Ada,
	}
	with := func(change func(*tenancy.Principal)) tenancy.Principal {
		p := base
		change(&p)
		return p
	}
	return map[string]tenancy.Principal{
		UserSession:  base,
		OtherSession: with(func(p *tenancy.Principal) { p.Session = otherSessionID }),
		AdminSession: with(func(p *tenancy.Principal) { p.Role = tenancy.RoleAdmin }),
		OwnerSession: with(func(p *tenancy.Principal) { p.Role = tenancy.RoleSuperAdmin }),
		HomelessSession: with(func(p *tenancy.Principal) {
			p.Access, p.Org, p.Role = tenancy.AccessNone, tenancy.OrgID{}, ""
		}),
		SuspendedSession: with(func(p *tenancy.Principal) {
			p.Access, p.Role = tenancy.AccessSuspended, tenancy.RoleSuperAdmin
		}),
		EnrollSession: with(func(p *tenancy.Principal) {
			p.Access, p.Role = tenancy.AccessEnroll, tenancy.RoleSuperAdmin
		}),
		InstanceSession: with(func(p *tenancy.Principal) { p.Instance = true }),
		ImpersonatorSession: with(func(p *tenancy.Principal) {
			p.Role, p.Impersonator, p.ImpersonatorName = tenancy.RoleSuperAdmin, impersonatorID, "root@example.org"
		}),
	}
}

func (a accounts) Authenticate(_ context.Context, authorization string) (tenancy.Principal, error) {
	a.Authenticated.Add(1)
	if authorization != APIKey || a.Revoked.Load() {
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, "fake", "Invalid API key")
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return tenancy.Principal{Org: cmp.Or(a.Org, OrgID), Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaKey}, nil
}

func (a accounts) AuthenticateHash(ctx context.Context, hash []byte) (tenancy.Principal, error) {
	if !bytes.Equal(hash, secret.HashToken(APIKey)) {
		return a.Authenticate(ctx, "another key")
	}
	return a.Authenticate(ctx, APIKey)
}

func (a accounts) Session(
	_ context.Context, token, org, impersonate string, from tenancy.Source,
) (tenancy.Principal, error) {
	a.Authenticated.Add(1)
	p, ok := Principals()[token]
	if !ok || a.Revoked.Load() {
		return tenancy.Principal{}, fault.New(fault.Unauthenticated, "fake", "The session is over.")
	}
	if a.Removed.Load() {
		p.Org = id.New[tenancy.OrgTag]()
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.Orgs = append(a.Orgs, org)
	a.From = from
	if !a.Org.IsZero() {
		p.Org = a.Org
	}
	if impersonate == "gone" {
		return tenancy.Principal{}, fault.New(fault.NotFound, "fake", "There is no such membership.")
	}
	if impersonate == Membership && token == InstanceSession {
		return Principals()[ImpersonatorSession], nil
	}
	return p, nil
}

func (a accounts) Logout(_ context.Context, token string, _ tenancy.Source) error {
	return a.note("logout " + token)
}

func (a accounts) ListSessions(context.Context, tenancy.Principal) ([]tenancy.SessionInfo, error) {
	return []tenancy.SessionInfo{{
		ID: SessionID, Current: true, CreatedAt: Day, SeenAt: Day, ExpiresAt: Day,
		Address: "203.0.113.9", Agent: "Browser",
	}}, a.record("ListSessions")
}

func (a accounts) EndSessions(_ context.Context, _ tenancy.Principal, session string) (int, error) {
	return 2, a.record("EndSessions", session)
}
