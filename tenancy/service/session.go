package service

import (
	"context"
	"slices"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// Session returns the principal of a session token in the chosen organization. If the choice is empty, not valid or not
// an organization of the person, it is replaced by the person's first organization, because the choice is in a cookie
// that may be older than a change of memberships. Principal.Access is what the person may do there. With impersonate,
// the id of a membership, an administrator of the instance acts as that member; for others it has no effect. Session
// returns fault.Unauthenticated when there is no live session.
func (a *Accounts) Session(
	ctx context.Context, token, organization, impersonate string, from tenancy.Source,
) (tenancy.Principal, error) {
	const op = "tenancy.Session"
	session, found, err := a.sessions.get(ctx, secret.HashToken(token))
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
		return a.actAs(ctx, p, impersonate)
	}
	return choose(p, session, organization), nil
}

// choose returns the principal in the chosen organization or, if the person cannot choose it, in the first.
func choose(p tenancy.Principal, session tenancystore.Session, organization string) tenancy.Principal {
	if len(session.Choices) == 0 {
		p.Access = tenancy.AccessNone
		return p
	}
	chosen, _ := id.Parse[tenancy.OrgTag](organization)
	i := slices.IndexFunc(session.Choices, func(c tenancystore.Choice) bool { return c.Org == chosen })
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

func (a *Accounts) findSessions(ctx context.Context, hashes [][]byte) (map[string]tenancystore.Session, error) {
	return a.store.SessionsByHash(ctx, hashes, a.clock.Now())
}

// Logout deletes the session of a token. Of an administrator of the instance it records the end of what the session
// acts as. A token without a session is no error.
func (a *Accounts) Logout(ctx context.Context, token string, from tenancy.Source) error {
	err := a.inGate(ctx, "tenancy.Logout", func(tx *tenancystore.GateTx) error {
		session, person, err := tx.LockSession(ctx, secret.HashToken(token))
		if err != nil {
			return err
		}
		if err := a.endActing(ctx, tx, tenancy.Principal{Session: session, Name: person.Email, From: from}); err != nil {
			return err
		}
		return tx.EndSession(ctx, person.ID, session)
	})
	if pg.IsNoRows(err) {
		return nil
	}
	return err
}

// ListSessions returns the live sessions of the principal's person, the newest first.
func (a *Accounts) ListSessions(ctx context.Context, p tenancy.Principal) (out []tenancy.SessionInfo, err error) {
	const op = "tenancy.ListSessions"
	if err := refuseBehind(op, p); err != nil {
		return nil, err
	}
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		out, err = tx.Sessions(ctx, p.Person, a.clock.Now())
		return err
	})
	for i := range out {
		out[i].Current = out[i].ID == p.Session
	}
	return out, err
}

// EndSessions ends one session of the principal's person or, with "", all but that of the request, and returns how many
// ended. An id that is not one of the person's sessions is fault.NotFound.
func (a *Accounts) EndSessions(ctx context.Context, p tenancy.Principal, session string) (n int, err error) {
	const op = "tenancy.EndSessions"
	if err := refuseBehind(op, p); err != nil {
		return 0, err
	}
	one, ok := id.Parse[tenancy.SessionTag](session)
	if session != "" && !ok {
		return 0, noSession(op)
	}
	err = a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, _ tenancy.Person) error {
		if n, err = a.endSessions(ctx, tx, p, one); err != nil {
			return err
		}
		return tx.AuditPerson(ctx, p.Person, p.Event(tenancy.ActionSignedOut, ""), a.clock.Now())
	})
	if pg.IsNoRows(err) {
		return 0, noSession(op)
	}
	return n, err
}

func (a *Accounts) endSessions(ctx context.Context, tx *tenancystore.GateTx, p tenancy.Principal,
	one tenancy.SessionID) (int, error) {
	if one.IsZero() {
		return tx.EndSessions(ctx, p.Person, p.Session, p.From.Device)
	}
	return 1, tx.EndSession(ctx, p.Person, one)
}

func noSession(op string) error { return fault.New(fault.NotFound, op, "There is no such session.") }
