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

// prove checks the proof of the principal's person: the password or, if the person has none, a
// recent sign-in; and, if the person has a second factor, a code of it, unless the sign-in proved
// the factor in the last ten minutes. It returns Invalid for a wrong proof, Invalid with RemedyCode
// for a missing code, and Forbidden for a principal that is impersonating somebody. prove returns
// the person, whom the caller must lock and confirm again before it acts.
func (a *Accounts) prove(ctx context.Context, op string, p tenancy.Principal, proof tenancy.Proof) (
	person tenancy.Person, err error) {
	person, signIn, err := a.provePassword(ctx, op, p, proof.Password)
	if err != nil {
		return person, err
	}
	return person, a.proveFactor(ctx, op, p, signIn, proof.Code)
}

// proveLately is prove, except that a sign-in in the last ten minutes is enough, with the second
// factor if there is one. The operator needs no proof.
func (a *Accounts) proveLately(ctx context.Context, op string, p tenancy.Principal, proof tenancy.Proof) error {
	if p.Via == tenancy.ViaInstance { // the operator has no session
		return nil
	}
	if err := refuseBehind(op, p); err != nil {
		return err
	}
	_, signIn, err := a.proofOf(ctx, op, p)
	if err != nil {
		return err
	}
	if a.isRecent(signIn) {
		return a.proveFactor(ctx, op, p, signIn, proof.Code)
	}
	if proof.Password == "" {
		return &fault.Error{Kind: fault.Invalid, Op: op, Message: "Prove that it is you.", Fields: []fault.Field{
			{Name: "password", Message: "is required, because your last sign-in is more than ten minutes ago"}}}
	}
	_, err = a.prove(ctx, op, p, proof)
	return err
}

// proofOf returns the principal's person and what the sign-in of the session proved.
func (a *Accounts) proofOf(ctx context.Context, op string, p tenancy.Principal) (
	person tenancy.Person, signIn tenancystore.SessionProof, err error) {
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		if signIn, err = tx.SessionProof(ctx, p.Session); err != nil {
			return err
		}
		person, err = tx.Person(ctx, p.Person)
		return err
	})
	if pg.IsNoRows(err) { // it has ended since the request began
		err = fault.New(fault.Unauthenticated, op, "Sign in first.")
	}
	return person, signIn, err
}

func (a *Accounts) isRecent(s tenancystore.SessionProof) bool {
	return a.clock.Now().Sub(s.CreatedAt) < tenancy.RecentSignIn
}

// provePassword is the password part of prove.
func (a *Accounts) provePassword(ctx context.Context, op string, p tenancy.Principal, password string) (
	person tenancy.Person, signIn tenancystore.SessionProof, err error) {
	if err := refuseBehind(op, p); err != nil {
		return person, signIn, err
	}
	person, signIn, err = a.proofOf(ctx, op, p)
	if err != nil {
		return person, signIn, err
	}
	if person.PasswordHash == "" {
		if !a.isRecent(signIn) {
			err = &fault.Error{Kind: fault.Invalid, Op: op, Message: "Sign in again first.", Fields: []fault.Field{
				{Name: "session", Message: "must be at most ten minutes old, because you have no password"}}}
		}
		return person, signIn, err
	}
	ok, err := a.matches(ctx, p.From.Site, password, person.PasswordHash)
	if err == nil && !ok {
		err = fault.New(fault.Invalid, op, "The password is wrong.")
	}
	return person, signIn, err
}

// proveFactor is the second-factor part of prove. A code, which may be a recovery code, works once.
func (a *Accounts) proveFactor(ctx context.Context, op string, p tenancy.Principal, signIn tenancystore.SessionProof,
	code string) error {
	if !signIn.HasFactor || signIn.ByFactor && a.isRecent(signIn) {
		return nil
	}
	if strings.TrimSpace(code) == "" {
		return &fault.Error{Kind: fault.Invalid, Op: op, Message: "Your second factor is required.",
			Remedy: fault.RemedyCode, Fields: []fault.Field{{Name: "code", Message: "of the second factor is required"}}}
	}
	code, recovery := splitCode(code)
	return a.withCode(ctx, op, p, code, recovery, func(*tenancystore.GateTx, tenancy.Person) error { return nil })
}

// refuseBehind returns Forbidden for an administrator of the instance who acts as another person.
func refuseBehind(op string, p tenancy.Principal) error {
	if p.Behind.IsZero() {
		return nil
	}
	return fault.New(fault.Forbidden, op, "This cannot be done while acting as another person.")
}

// ChangePassword sets the password of the principal's person and ends all other sessions. The
// password of the proof is the old password. A person without a password sets a first one, see
// prove.
func (a *Accounts) ChangePassword(ctx context.Context, p tenancy.Principal, proof tenancy.Proof, password string) error {
	const op = "tenancy.ChangePassword"
	if err := checkPassword(op, "newPassword", password); err != nil {
		return err
	}
	proved, err := a.prove(ctx, op, p, proof)
	if err != nil {
		return err
	}
	hash, err := a.hashPassword(ctx, p.From.Site, password)
	if err != nil {
		return err
	}
	now := a.clock.Now()
	return a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, person tenancy.Person) error {
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
