package service

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"

	"crier/platform/fault"
	"crier/platform/limit"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/passwords"
	tenancystore "crier/tenancy/store"
)

// checkPassword returns Invalid for a new password that has not 8 to 128 characters, spaces around it not counted, or
// that is one of the commonest.
func checkPassword(op, field, password string) error {
	var in tenancy.Inputs
	in.Password(field, password)
	short := utf8.RuneCountInString(strings.TrimSpace(password)) < tenancy.MinPassword
	in.Check(!short || utf8.RuneCountInString(password) < tenancy.MinPassword, field,
		"must be 8 to 128 characters, not counting spaces at its ends")
	if err := in.Err(op); err != nil {
		return err
	}
	in.Check(!passwords.Common(password), field, "is one of the commonest passwords; choose another one")
	return in.Err(op)
}

// hashPassword returns the hash of a password that checkPassword accepts. It returns the errors of slot.
func (a *Accounts) hashPassword(ctx context.Context, site, password string) (string, error) {
	release, err := a.slot(ctx, site)
	if err != nil {
		return "", err
	}
	defer release()
	a.hashed.Add(1)
	hash, err := argon2id.CreateHash(password, a.hash)
	if err != nil {
		return "", fault.Wrap(fault.Internal, "tenancy.hashPassword", "", err)
	}
	return hash, nil
}

// matches reports whether the password has the stored hash; the empty hash has no password, after the same work. It
// returns the errors of slot, and fault.Internal for a stored text that is no hash.
func (a *Accounts) matches(ctx context.Context, site, password, stored string) (bool, error) {
	release, err := a.slot(ctx, site)
	if err != nil {
		return false, err
	}
	defer release()
	a.hashed.Add(1)
	compared := stored
	if stored == "" {
		compared = a.decoy
	}
	ok, err := argon2id.ComparePasswordAndHash(password, compared)
	if err != nil {
		return false, fault.Wrap(fault.Internal, "tenancy.matches", "", err)
	}
	return ok && stored != "", nil
}

// slot waits at most hashWait for a slot in which a password may be hashed. The caller calls release. It returns
// fault.RateLimited when too many log-ins of the site are waiting, and when no slot became free in time.
func (a *Accounts) slot(ctx context.Context, site string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, hashWait)
	defer cancel()
	release, err = a.slots.Enter(ctx, site)
	if err != nil {
		message := "Too many log-ins are being made; try again in a moment."
		if errors.Is(err, limit.ErrFull) {
			message = "Too many log-ins from your network are being made; try again when they are answered."
		}
		return nil, &fault.Error{
			Kind: fault.RateLimited, Op: "tenancy.slot", Message: message, RetryAfter: hashWait, Err: err,
		}
	}
	return release, nil
}

// prove checks the proof of the principal's person: the password or, of a person without one, a recent sign-in. A wrong
// one is Invalid. It returns the person. A principal that acts as another person is Forbidden.
func (a *Accounts) prove(ctx context.Context, op string, p tenancy.Principal, proof tenancy.Proof) (
	person tenancy.Person, err error) {
	if err := refuseBehind(op, p); err != nil {
		return person, err
	}
	recent := false
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		created, err := tx.SessionCreated(ctx, p.Session)
		if err != nil {
			return err
		}
		recent = a.clock.Now().Sub(created) < tenancy.RecentSignIn
		person, err = tx.Person(ctx, p.Person)
		return err
	})
	if pg.IsNoRows(err) { // it has ended since the request began
		return person, fault.New(fault.Unauthenticated, op, "Sign in first.")
	}
	if err != nil {
		return person, err
	}
	if person.PasswordHash == "" {
		if !recent {
			return person, &fault.Error{Kind: fault.Invalid, Op: op, Message: "Sign in again first.", Fields: []fault.Field{
				{Name: "session", Message: "must be at most ten minutes old, because you have no password"}}}
		}
		return person, nil
	}
	ok, err := a.matches(ctx, p.From.Site, proof.Password, person.PasswordHash)
	if err != nil {
		return person, err
	}
	if !ok {
		return person, fault.New(fault.Invalid, op, "The password is wrong.")
	}
	return person, nil
}

// refuseBehind returns Forbidden for an administrator of the instance who acts as another person.
func refuseBehind(op string, p tenancy.Principal) error {
	if p.Behind.IsZero() {
		return nil
	}
	return fault.New(fault.Forbidden, op, "This cannot be done while acting as another person.")
}

// ChangePassword sets the password of the principal's person and ends all other sessions. A person without a password
// sets the first one, see prove.
func (a *Accounts) ChangePassword(ctx context.Context, p tenancy.Principal, old, password string) error {
	const op = "tenancy.ChangePassword"
	if err := checkPassword(op, "newPassword", password); err != nil {
		return err
	}
	proved, err := a.prove(ctx, op, p, tenancy.Proof{Password: old})
	if err != nil {
		return err
	}
	hash, err := a.hashPassword(ctx, p.From.Site, password)
	if err != nil {
		return err
	}
	now := a.clock.Now()
	return a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		person, err := tx.LockPerson(ctx, p.Person)
		if err != nil {
			return err
		}
		if person.PasswordHash != proved.PasswordHash { // a reset came first
			return fault.New(fault.Invalid, op, "The password is wrong.")
		}
		if err := tx.SetPassword(ctx, person.ID, hash); err != nil {
			return err
		}
		if _, err := tx.EndSessions(ctx, person.ID, p.Session, p.From.Device); err != nil {
			return err
		}
		if err := tx.AuditPerson(ctx, person.ID, p.Event(tenancy.ActionPasswordChanged, ""), now); err != nil {
			return err
		}
		return a.notify(ctx, tx, mailPasswordChanged, person.Email, notice{Address: p.From.Client})
	})
}

func asFaultError(err error) *fault.Error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	return nil
}
