package login

import (
	"cmp"
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
	loginstore "crier/tenancy/login/store"
	"crier/tenancy/proof"
)

// maxStepTries is how many times a step's token can be used.
const maxStepTries = 5

// takeStep counts a use of a step's token, and locks and returns the person who is signing in.
// refusal is Unauthenticated if the token has expired or belongs to another step, and RateLimited
// if the token has already been used five times.
func (s *Logins) takeStep(ctx context.Context, tx *db.GateTx, op string, hash []byte, step tenancy.Step) (
	person tenancy.Person, refusal, err error) {
	person, tries, err := loginstore.TryStep(ctx, tx, hash, step, s.clock.Now())
	if pg.IsNoRows(err) {
		return person, fault.New(fault.Unauthenticated, op, "This sign-in is no longer valid; start again."), nil
	}
	if err == nil && tries > maxStepTries {
		return person, &fault.Error{
			Kind: fault.RateLimited, Op: op, Message: "Too many attempts; start the sign-in again.",
			RetryAfter: tenancy.SignInStepLife,
		}, nil
	}
	return person, nil, err
}

// VerifyMFA completes the StepMFA step of a sign-in, either with a code from the second factor or
// with a recovery code. A recovery code can be used only once. VerifyMFA returns
// fault.Unauthenticated if the code is wrong. It returns fault.RateLimited after five tries with
// the same token, and after five wrong codes for the account within 15 minutes.
func (s *Logins) VerifyMFA(ctx context.Context, token, code, recovery string, from tenancy.Source) (
	out tenancy.SignIn, err error) {
	const op = "tenancy.VerifyMFA"
	var refusal error
	hash := secret.HashToken(token)
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		var person tenancy.Person
		person, refusal, err = s.takeStep(ctx, tx, op, hash, tenancy.StepMFA)
		if err != nil || refusal != nil {
			return err
		}
		if refusal, err = s.checkFactor(ctx, tx, op, person, code, recovery, from); err != nil || refusal != nil {
			return err
		}
		if err := loginstore.DeleteStep(ctx, tx, hash); err != nil {
			return err
		}
		out, err = s.entry.LastStep(ctx, tx, op, person, from)
		return err
	})
	return out, cmp.Or(err, refusal)
}

// checkFactor checks the code from the person's second factor, or the recovery code if one is
// given.
func (s *Logins) checkFactor(ctx context.Context, tx *db.GateTx, op string, person tenancy.Person,
	code, recovery string, from tenancy.Source) (refusal, err error) {
	f, err := proof.LockFactor(ctx, tx, person.ID)
	if pg.IsNoRows(err) || err == nil && f.ConfirmedAt == nil { // the factor was disabled in the meantime
		return fault.New(fault.Unauthenticated, op, "This sign-in is no longer valid; start again."), nil
	}
	if err != nil {
		return nil, err
	}
	return s.proofs.CheckEither(ctx, tx, op, person, f, code, recovery, from)
}
