package login

import (
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
	"crier/tenancy/entry"
)

// Login checks an email address and a password, and returns a new session or the sign-in's next
// step. For a wrong password and for an unknown address, it returns fault.Invalid with the same
// message after the same amount of work.
//
// Sites, which are the clients' networks, take turns hashing passwords, so that many logins from
// one site hardly delay logins from others. Login returns fault.RateLimited if too many logins from
// the site are waiting, or if this login has waited for 3 seconds.
func (s *Logins) Login(ctx context.Context, email, password string, from tenancy.Source) (tenancy.SignIn, error) {
	const op = "tenancy.Login"
	var person tenancy.Person
	clean, valid := tenancy.CleanEmail(email)
	if valid {
		found, err := db.PersonWithEmail(ctx, s.db, clean)
		if err != nil && !pg.IsNoRows(err) {
			return tenancy.SignIn{}, pg.Fault(op, err)
		}
		person = found
	}
	ok, err := s.proofs.Matches(ctx, from.Site, password, person.PasswordHash)
	if err != nil {
		return tenancy.SignIn{}, err
	}
	if !ok {
		return tenancy.SignIn{}, wrongPair(op)
	}
	return s.signIn(ctx, op, person, from)
}

// signIn begins a session, or the step that is still needed, for a person whose password matched. A
// password that has been replaced since it was compared counts as wrong, so that no session that
// was begun with the old password survives a reset. An account whose deletion can no longer be
// undone is treated like an unknown address.
func (s *Logins) signIn(ctx context.Context, op string, compared tenancy.Person, from tenancy.Source) (
	out tenancy.SignIn, err error) {
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		person, err := db.LockPerson(ctx, tx, compared.ID)
		if pg.IsNoRows(err) || err == nil && (person.PasswordHash != compared.PasswordHash || s.entry.IsGone(person)) {
			return wrongPair(op)
		}
		if err != nil {
			return err
		}
		out, err = s.entry.NextStep(ctx, tx, op, person, from)
		return err
	})
	return out, err
}

// KnownDevice reports whether the browser in from is known for the person with the given email
// address.
func (s *Logins) KnownDevice(ctx context.Context, email string, from tenancy.Source) (bool, error) {
	clean, ok := tenancy.CleanEmail(email)
	if !ok || from.Device == "" {
		return false, nil
	}
	known, err := entry.IsDeviceOf(ctx, s.db, secret.HashToken(from.Device), clean, s.clock.Now())
	return known, pg.Fault("tenancy.KnownDevice", err)
}

func wrongPair(op string) error {
	return fault.New(fault.Invalid, op, "Invalid user name or password.")
}
