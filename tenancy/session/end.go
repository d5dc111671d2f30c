package session

import (
	"context"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/entry"
	sessionstore "crier/tenancy/session/store"
)

// Logout deletes the session that belongs to a token. If an instance administrator is impersonating
// somebody in the session, Logout records the end of the impersonation. It returns nil if there is
// no such session.
func (s *Sessions) Logout(ctx context.Context, token string, from tenancy.Source) error {
	err := s.db.InGate(ctx, "tenancy.Logout", func(tx *db.GateTx) error {
		session, person, err := sessionstore.LockSession(ctx, tx, secret.HashToken(token))
		if err != nil {
			return err
		}
		if err := s.endActing(ctx, tx, tenancy.Principal{Session: session, Name: person.Email, From: from}); err != nil {
			return err
		}
		return sessionstore.EndSession(ctx, tx, person.ID, session)
	})
	if pg.IsNoRows(err) {
		return nil
	}
	return err
}

// ListSessions returns the live sessions of the principal's person, newest first.
func (s *Sessions) ListSessions(ctx context.Context, p tenancy.Principal) (out []tenancy.SessionInfo, err error) {
	const op = "tenancy.ListSessions"
	if err := db.RejectImpersonator(op, p); err != nil {
		return nil, err
	}
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		out, err = sessionstore.ListSessions(ctx, tx, p.Person, s.clock.Now())
		return err
	})
	for i := range out {
		out[i].Current = out[i].ID == p.Session
	}
	return out, err
}

// EndSessions ends one session of the principal's person and returns how many sessions ended. If
// session is "", it ends all of the person's sessions except the one making the request. It returns
// fault.NotFound if the person has no session with this id.
func (s *Sessions) EndSessions(ctx context.Context, p tenancy.Principal, session string) (n int, err error) {
	const op = "tenancy.EndSessions"
	if err := db.RejectImpersonator(op, p); err != nil {
		return 0, err
	}
	one, ok := id.Parse[tenancy.SessionTag](session)
	if session != "" && !ok {
		return 0, noSession(op)
	}
	err = s.db.InPerson(ctx, op, p, func(tx *db.GateTx, _ tenancy.Person) error {
		if n, err = s.endSessions(ctx, tx, p, one); err != nil {
			return err
		}
		return db.AuditPerson(ctx, tx, p.Person, p.Event(tenancy.ActionSignedOut, ""), s.clock.Now())
	})
	if pg.IsNoRows(err) {
		return 0, noSession(op)
	}
	return n, err
}

func (s *Sessions) endSessions(ctx context.Context, tx *db.GateTx, p tenancy.Principal,
	one tenancy.SessionID) (int, error) {
	if one.IsZero() {
		return entry.EndSessions(ctx, tx, p.Person, p.Session, p.From.Device)
	}
	return 1, sessionstore.EndSession(ctx, tx, p.Person, one)
}

func noSession(op string) error { return fault.New(fault.NotFound, op, "There is no such session.") }
