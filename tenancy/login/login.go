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

// Login checks an email address and a password. It returns a new session or the next sign-in step.
// If the password is wrong or the address is unknown, Login returns fault.Invalid. In both cases,
// the message and the amount of work are the same.
//
// Logins are grouped by site, which is the client's network. The sites take turns hashing
// passwords, so that many logins from one site hardly delay logins from other sites. Login returns
// fault.RateLimited if too many logins from the site are waiting, or if this login has waited for 3
// seconds.
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

// signIn begins a session, or the next sign-in step, for a person whose password matched. If the
// person's password has changed since the comparison, signIn treats the given password as wrong.
// Otherwise, a session begun with the old password could survive a password reset. An account whose
// deletion can no longer be undone is treated like an unknown address.
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

// KnownDevice reports whether the browser in from is known to belong to the person with the given
// email address.
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
