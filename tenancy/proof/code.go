package proof

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"crier/platform/fault"
	"crier/platform/paste"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
)

// CheckCode checks a code from a locked second factor. refusal is RateLimited after too many wrong
// codes. It is Unauthenticated if the code is wrong or if the code's time step was already used.
// The caller must commit the transaction even if the code is rejected, because the transaction also
// counts the wrong code.
func (s *Proofs) CheckCode(ctx context.Context, tx *db.GateTx, op string, person tenancy.PersonID,
	f Factor, code string) (refusal, err error) {
	counted, refusal := s.countTry(op, f)
	if refusal != nil {
		return refusal, nil
	}
	secret, err := s.keyring.Open(f.Secret, person.String())
	if err != nil {
		return nil, err
	}
	step, ok := matchingStep(string(secret), code, s.clock.Now())
	if !ok || step <= f.LastStep {
		return wrongCode(op), SaveTries(ctx, tx, person, counted)
	}
	counted.Tries-- // only wrong codes count
	counted.LastStep = step
	return nil, SaveTries(ctx, tx, person, counted)
}

const (
	// CodePeriod is the length of a time step in seconds. Codes from the previous and the next time
	// step are also accepted.
	CodePeriod = 30
	// maxCodes is the maximum number of wrong codes that an account may enter within codeWindow,
	// across all sessions and sign-ins.
	maxCodes   = 5
	codeWindow = 15 * time.Minute
)

// countTry counts a code as wrong before it is checked. It returns the factor with the new count.
// It returns RateLimited if there have already been maxCodes wrong codes within codeWindow.
func (s *Proofs) countTry(op string, f Factor) (Factor, error) {
	now := s.clock.Now()
	if now.Sub(f.TriesSince) >= codeWindow {
		f.Tries, f.TriesSince = 0, now
	}
	if f.Tries >= maxCodes {
		return f, &fault.Error{
			Kind: fault.RateLimited, Op: op, Message: "Too many wrong codes; wait before you try again.",
			RetryAfter: f.TriesSince.Add(codeWindow).Sub(now),
		}
	}
	f.Tries++
	return f, nil
}

// CheckEither calls CheckCode if recovery is empty. Otherwise it checks the recovery code in the
// same way, and deletes the code if it is correct.
func (s *Proofs) CheckEither(ctx context.Context, tx *db.GateTx, op string, person tenancy.Person,
	f Factor, code, recovery string, from tenancy.Source) (refusal, err error) {
	if recovery == "" {
		return s.CheckCode(ctx, tx, op, person.ID, f, code)
	}
	counted, refusal := s.countTry(op, f)
	if refusal != nil {
		return refusal, nil
	}
	err = UseRecoveryCode(ctx, tx, person.ID, credential.HashPasted(recovery))
	if pg.IsNoRows(err) {
		return wrongCode(op), SaveTries(ctx, tx, person.ID, counted)
	}
	if err != nil {
		return nil, err
	}
	return nil, db.AuditPerson(ctx, tx, person.ID, db.PersonEvent(person, from, tenancy.ActionRecoveryUsed), s.clock.Now())
}

// WithCode checks a code from the principal's second factor, or a recovery code. If the code is
// accepted, WithCode runs fn in the same transaction. If fn then returns an error, the code remains
// unused. WithCode returns fault.Invalid for a wrong code, fault.RateLimited after too many wrong
// codes, and fault.Conflict if there is no second factor.
func (s *Proofs) WithCode(ctx context.Context, op string, p tenancy.Principal, code, recovery string,
	fn func(tx *db.GateTx, person tenancy.Person) error) error {
	var refusal error
	err := s.db.InPerson(ctx, op, p, func(tx *db.GateTx, person tenancy.Person) error {
		f, err := LockFactor(ctx, tx, p.Person)
		if pg.IsNoRows(err) || err == nil && f.ConfirmedAt == nil {
			return fault.New(fault.Conflict, op, "No second factor is enabled.")
		}
		if err != nil {
			return err
		}
		refusal, err = s.CheckEither(ctx, tx, op, person, f, code, recovery, p.From)
		if err != nil || refusal != nil {
			return err
		}
		return fn(tx, person)
	})
	return cmp.Or(err, OfInput(op, refusal))
}

// matchingStep returns the time step that the code belongs to. It accepts codes from the current
// time step, the previous one and the next one.
func matchingStep(secret, code string, now time.Time) (int64, bool) {
	code = strings.ReplaceAll(paste.Word(code), "-", "")
	found, ok := int64(0), false
	for _, offset := range []int64{-1, 0, 1} {
		at := now.Add(time.Duration(offset) * CodePeriod * time.Second)
		match, err := totp.ValidateCustom(code, secret, at, totp.ValidateOpts{
			Period: CodePeriod, Skew: 0, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1,
		})
		if err == nil && match {
			found, ok = at.Unix()/CodePeriod, true
		}
	}
	return found, ok
}

func wrongCode(op string) error {
	return fault.New(fault.Unauthenticated, op, "The code is wrong or has already been used.")
}

// RecoveryLength is the length of a recovery code in base62 characters. A code has 95 bits of
// entropy.
const RecoveryLength = 16

// SplitCode returns text as a recovery code if it is as long as a recovery code. Otherwise, it
// returns text as a second-factor code. The other result is "".
func SplitCode(text string) (code, recovery string) {
	if len(paste.Word(text)) == RecoveryLength {
		return "", text
	}
	return text, ""
}

// OfInput converts a refusal from CheckCode or CheckEither to the error for a request that already
// has a session. In such a request, a wrong code is invalid input rather than a failed sign-in.
func OfInput(op string, refusal error) error {
	if fault.Is(refusal, fault.Unauthenticated) {
		return &fault.Error{Kind: fault.Invalid, Op: op, Message: "The code is wrong or has already been used.",
			Fields: []fault.Field{{Name: "code", Message: "is wrong or has already been used"}}}
	}
	return refusal
}
