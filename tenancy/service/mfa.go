package service

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"crier/platform/fault"
	"crier/platform/paste"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

const (
	// codePeriod is the length of a time step. A code of the step before or after the present one is accepted too.
	codePeriod = 30
	// maxCodes is the number of wrong codes of an account, over all tokens and sessions, in codeWindow.
	maxCodes   = 5
	codeWindow = 15 * time.Minute

	recoveryCodes = 10
	// recoveryLength is in base62 characters, which hold 95 bits.
	recoveryLength = 16
)

// MFAStatus returns the state of the second factor of the principal's person.
func (a *Accounts) MFAStatus(ctx context.Context, p tenancy.Principal) (out tenancy.MFAStatus, err error) {
	const op = "tenancy.MFAStatus"
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		out = tenancy.MFAStatus{}
		f, err := tx.LockFactor(ctx, p.Person)
		if err != nil && !pg.IsNoRows(err) {
			return err
		}
		if out.Required, err = tx.RequiresMFA(ctx, p.Person); err != nil || f.ConfirmedAt == nil {
			return err
		}
		out.Enabled, out.EnabledAt = true, f.ConfirmedAt
		out.RecoveryCodesLeft, err = tx.CountRecoveryCodes(ctx, p.Person)
		return err
	})
	return out, err
}

// BeginMFA returns a new second factor, which takes effect once ConfirmMFA has received a code of
// it. A session that begins twice gets the same factor both times. It returns fault.Conflict when
// the person has a confirmed factor.
func (a *Accounts) BeginMFA(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) (tenancy.Secret, error) {
	const op = "tenancy.BeginMFA"
	_, _, err := a.provePassword(ctx, op, p, proof.Password) // there is no second factor yet
	if err != nil {
		return tenancy.Secret{}, err
	}
	var out tenancy.Secret
	err = a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, person tenancy.Person) error {
		out, err = a.beginFactor(ctx, tx, op, person, secret.HashToken(p.Session.String()))
		return err
	})
	return out, err
}

// beginFactor begins a second factor. by is the hash of the session or the sign-in.
func (a *Accounts) beginFactor(
	ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.Person, by []byte,
) (tenancy.Secret, error) {
	key, err := totp.Generate(totp.GenerateOpts{
		Issuer: "Crier " + a.cfg.host(), AccountName: person.Email, Period: codePeriod, SecretSize: 20,
	})
	if err != nil {
		return tenancy.Secret{}, fault.Wrap(fault.Internal, op, "", err)
	}
	sealed, err := a.deps.Keyring.Seal([]byte(key.Secret()), person.ID.String())
	if err != nil {
		return tenancy.Secret{}, err
	}
	stored, err := tx.BeginFactor(ctx, person.ID, sealed, a.clock.Now(), by)
	if pg.IsNoRows(err) {
		return tenancy.Secret{}, fault.New(fault.Conflict, op, "A second factor is enabled; disable it first.")
	}
	if err != nil {
		return tenancy.Secret{}, err
	}
	if bytes.Equal(stored.Secret, sealed) {
		return tenancy.Secret{Text: key.Secret(), URL: key.URL()}, nil
	}
	begun, err := a.deps.Keyring.Open(stored.Secret, person.ID.String())
	if err != nil {
		return tenancy.Secret{}, err
	}
	link := strings.Replace(key.URL(), "secret="+key.Secret(), "secret="+string(begun), 1)
	return tenancy.Secret{Text: string(begun), URL: link}, nil
}

// ConfirmMFA enables the second factor that was begun, with its first code, and returns the recovery codes.
func (a *Accounts) ConfirmMFA(ctx context.Context, p tenancy.Principal, code string) (codes []string, err error) {
	const op = "tenancy.ConfirmMFA"
	if err := refuseBehind(op, p); err != nil {
		return nil, err
	}
	var refusal error
	err = a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, _ tenancy.Person) error {
		codes, refusal, err = a.confirmFactor(ctx, tx, op, p.Person, code, p.From)
		if err != nil || refusal != nil {
			return err
		}
		return tx.SetSessionByFactor(ctx, p.Session)
	})
	return codes, firstError(err, ofInput(op, refusal))
}

// confirmFactor makes a second factor count. A refusal must not roll the transaction back, because the try counts.
func (a *Accounts) confirmFactor(ctx context.Context, tx *tenancystore.GateTx, op string, id tenancy.PersonID,
	code string, from tenancy.Source) (codes []string, refusal, err error) {
	f, err := tx.LockFactor(ctx, id)
	if pg.IsNoRows(err) || err == nil && f.ConfirmedAt != nil {
		return nil, fault.New(fault.Conflict, op, "Begin to enable a second factor first."), nil
	}
	if err != nil {
		return nil, nil, err
	}
	if refusal, err := a.checkCode(ctx, tx, op, id, f, code); err != nil || refusal != nil {
		return nil, refusal, err
	}
	now := a.clock.Now()
	if err := tx.ConfirmFactor(ctx, id, now); err != nil {
		return nil, nil, err
	}
	if codes, err = a.newRecoveryCodes(ctx, tx, op, id); err != nil {
		return nil, nil, err
	}
	person, err := tx.Person(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	err = tx.AuditPerson(ctx, id, personEvent(person, from, tenancy.ActionMFAOn), now)
	if err != nil {
		return nil, nil, err
	}
	return codes, nil, a.notify(ctx, tx, mailMFAOn, person.Email, notice{Address: from.Client})
}

// newRecoveryCodes replaces the recovery codes of a person.
func (a *Accounts) newRecoveryCodes(ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.PersonID) (
	[]string, error) {
	codes, hashes := make([]string, recoveryCodes), make([][]byte, recoveryCodes)
	for i := range codes {
		code, err := secret.Token("", recoveryLength)
		if err != nil {
			return nil, fault.Wrap(fault.Internal, op, "", err)
		}
		codes[i], hashes[i] = code, secret.HashToken(code)
	}
	return codes, tx.ReplaceRecoveryCodes(ctx, person, hashes)
}

// countTry counts a code before it is checked. It returns the factor with the count, or RateLimited when five wrong
// codes were tried in 15 minutes.
func (a *Accounts) countTry(op string, f tenancystore.Factor) (tenancystore.Factor, error) {
	now := a.clock.Now()
	if now.Sub(f.TriesSince) >= codeWindow {
		f.Tries, f.TriesSince = 0, now
	}
	if f.Tries >= maxCodes {
		return f, &fault.Error{
			Kind: fault.RateLimited, Op: op, Message: "Too many wrong codes; wait before the next one.",
			RetryAfter: f.TriesSince.Add(codeWindow).Sub(now),
		}
	}
	f.Tries++
	return f, nil
}

// checkCode checks a code of a locked factor. The refusal is RateLimited after too many wrong codes, and
// Unauthenticated for a wrong code and for one whose step was used. The caller commits the transaction then too,
// because it holds the count.
func (a *Accounts) checkCode(ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.PersonID,
	f tenancystore.Factor, code string) (refusal, err error) {
	counted, refusal := a.countTry(op, f)
	if refusal != nil {
		return refusal, nil
	}
	secret, err := a.deps.Keyring.Open(f.Secret, person.String())
	if err != nil {
		return nil, err
	}
	step, ok := matchingStep(string(secret), code, a.clock.Now())
	if !ok || step <= f.LastStep {
		return wrongCode(op), tx.SaveTries(ctx, person, counted)
	}
	counted.Tries-- // only wrong codes count
	counted.LastStep = step
	return nil, tx.SaveTries(ctx, person, counted)
}

func wrongCode(op string) error {
	return fault.New(fault.Unauthenticated, op, "The code is wrong, or was used before.")
}

// matchingStep returns the time step whose code is code, of the present step and its neighbours.
func matchingStep(secret, code string, now time.Time) (int64, bool) {
	code = strings.ReplaceAll(paste.Word(code), "-", "")
	found, ok := int64(0), false
	for _, offset := range []int64{-1, 0, 1} {
		at := now.Add(time.Duration(offset) * codePeriod * time.Second)
		match, err := totp.ValidateCustom(code, secret, at, totp.ValidateOpts{
			Period: codePeriod, Skew: 0, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1,
		})
		if err == nil && match {
			found, ok = at.Unix()/codePeriod, true
		}
	}
	return found, ok
}

// DisableMFA deletes the second factor and the recovery codes. It needs the proof and a code. When an organization of the
// person requires a second factor it returns fault.Forbidden, unless the code is a recovery code: who has lost the
// authenticator can enroll another one, and has no access to that organization before.
func (a *Accounts) DisableMFA(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) error {
	const op = "tenancy.DisableMFA"
	if _, _, err := a.provePassword(ctx, op, p, proof.Password); err != nil {
		return err
	}
	code, recovery := splitCode(proof.Code)
	return a.withCode(ctx, op, p, code, recovery, func(tx *tenancystore.GateTx, person tenancy.Person) error {
		required, err := tx.RequiresMFA(ctx, p.Person)
		if err != nil {
			return err
		}
		if required && recovery == "" {
			return fault.New(fault.Forbidden, op, "One of your organizations requires a second factor.")
		}
		if err := tx.DeleteFactor(ctx, p.Person); err != nil {
			return err
		}
		if err := tx.AuditPerson(ctx, p.Person, p.Event(tenancy.ActionMFAOff, ""), a.clock.Now()); err != nil {
			return err
		}
		return a.notify(ctx, tx, mailMFAOff, person.Email, notice{Address: p.From.Client})
	})
}

// splitCode returns the code as a code of the second factor or as a recovery code, and "" for the
// other.
func splitCode(text string) (code, recovery string) {
	if len(paste.Word(text)) == recoveryLength {
		return "", text
	}
	return text, ""
}

// ReplaceRecoveryCodes replaces all recovery codes of the principal's person. It needs a code of the second factor.
func (a *Accounts) ReplaceRecoveryCodes(ctx context.Context, p tenancy.Principal, code string) (codes []string, err error) {
	const op = "tenancy.ReplaceRecoveryCodes"
	if err := refuseBehind(op, p); err != nil {
		return nil, err
	}
	err = a.withCode(ctx, op, p, code, "", func(tx *tenancystore.GateTx, person tenancy.Person) error {
		if codes, err = a.newRecoveryCodes(ctx, tx, op, p.Person); err != nil {
			return err
		}
		if err := tx.AuditPerson(ctx, p.Person, p.Event(tenancy.ActionRecoveryCodes, ""), a.clock.Now()); err != nil {
			return err
		}
		return a.notify(ctx, tx, mailRecoveryCodes, person.Email, notice{Address: p.From.Client})
	})
	return codes, err
}

// withCode runs fn in a transaction in which a code of the principal's second factor, or a recovery code, was accepted.
// A wrong code is fault.Invalid, and fault.Conflict means that there is no second factor. After an error of fn the code
// has not been used.
func (a *Accounts) withCode(ctx context.Context, op string, p tenancy.Principal, code, recovery string,
	fn func(tx *tenancystore.GateTx, person tenancy.Person) error) error {
	var refusal error
	err := a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, person tenancy.Person) error {
		f, err := tx.LockFactor(ctx, p.Person)
		if pg.IsNoRows(err) || err == nil && f.ConfirmedAt == nil {
			return fault.New(fault.Conflict, op, "No second factor is enabled.")
		}
		if err != nil {
			return err
		}
		refusal, err = a.checkEither(ctx, tx, op, person, f, code, recovery, p.From)
		if err != nil || refusal != nil {
			return err
		}
		return fn(tx, person)
	})
	return firstError(err, ofInput(op, refusal))
}

// ofInput returns the refusal of a code for a request with a session, where a wrong code is an input and no sign-in.
func ofInput(op string, refusal error) error {
	if fault.Is(refusal, fault.Unauthenticated) {
		return &fault.Error{Kind: fault.Invalid, Op: op, Message: "The code is wrong, or was used before.",
			Fields: []fault.Field{{Name: "code", Message: "is wrong, or was used before"}}}
	}
	return refusal
}

// MFAPolicy returns whether the principal's organization requires a second factor.
func (a *Accounts) MFAPolicy(ctx context.Context, p tenancy.Principal) (bool, error) {
	o, err := a.Organization(ctx, p)
	return o.RequiresMFA, err
}

// SetMFAPolicy stores whether the principal's organization requires a second factor. From then on members without one
// have no access to it. It returns fault.Conflict when the caller has none.
func (a *Accounts) SetMFAPolicy(ctx context.Context, p tenancy.Principal, required bool) error {
	const op = "tenancy.SetMFAPolicy"
	if err := refuseBehind(op, p); err != nil {
		return err
	}
	return a.inPerson(ctx, op, p, func(tx *tenancystore.GateTx, _ tenancy.Person) error {
		f, err := tx.LockFactor(ctx, p.Person)
		if err != nil && !pg.IsNoRows(err) {
			return err
		}
		if required && f.ConfirmedAt == nil {
			return fault.New(fault.Conflict, op, "Enable a second factor of your own first.")
		}
		if err := a.Confirm(ctx, tx.Querier(), p); err != nil {
			return err
		}
		org, err := tx.Enter(ctx, p.Org)
		if err != nil {
			return err
		}
		o, err := org.LockOrganization(ctx)
		if err != nil || o.RequiresMFA == required {
			return err
		}
		o.RequiresMFA = required
		if err := org.UpdateOrganization(ctx, o); err != nil {
			return err
		}
		subject := "not required"
		if required {
			subject = "required"
		}
		return org.Audit(ctx, p.Event(tenancy.ActionMFAPolicy, subject), a.clock.Now())
	})
}

// firstError returns the first error that is not nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
