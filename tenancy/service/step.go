package service

import (
	"context"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// maxStepTries is how often the token of a step can be used.
const maxStepTries = 5

// takeStep counts a use of a token and returns its person, locked. The refusal is Unauthenticated for a token that is
// over or none of the purpose, and RateLimited after five uses.
func (a *Accounts) takeStep(ctx context.Context, tx *tenancystore.GateTx, op string, hash []byte, step tenancy.Step) (
	person tenancy.Person, refusal, err error) {
	person, tries, err := tx.TryStep(ctx, hash, step, a.clock.Now())
	if pg.IsNoRows(err) {
		return person, fault.New(fault.Unauthenticated, op, "This sign-in is over; begin it again."), nil
	}
	if err == nil && tries > maxStepTries {
		return person, &fault.Error{
			Kind: fault.RateLimited, Op: op, Message: "Too many tries; begin the sign-in again.",
			RetryAfter: tenancy.SignInStepLife,
		}, nil
	}
	return person, nil, err
}

// VerifyMFA completes a sign-in of StepMFA with a code of the second factor or with a recovery code, which is used up. A
// wrong one is fault.Unauthenticated. After five tries of a token, and after five wrong codes of the account in 15
// minutes, it is fault.RateLimited.
func (a *Accounts) VerifyMFA(ctx context.Context, token, code, recovery string, from tenancy.Source) (
	out tenancy.SignIn, err error) {
	const op = "tenancy.VerifyMFA"
	var refusal error
	hash := secret.HashToken(token)
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		var person tenancy.Person
		person, refusal, err = a.takeStep(ctx, tx, op, hash, tenancy.StepMFA)
		if err != nil || refusal != nil {
			return err
		}
		if refusal, err = a.checkFactor(ctx, tx, op, person, code, recovery, from); err != nil || refusal != nil {
			return err
		}
		if err := tx.DeleteStep(ctx, hash); err != nil {
			return err
		}
		out, err = a.lastStep(ctx, tx, op, person, from)
		return err
	})
	return out, firstError(err, refusal)
}

// checkFactor checks a code or, with one, a recovery code of a person.
func (a *Accounts) checkFactor(ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.Person,
	code, recovery string, from tenancy.Source) (refusal, err error) {
	f, err := tx.LockFactor(ctx, person.ID)
	if pg.IsNoRows(err) || err == nil && f.ConfirmedAt == nil { // it was disabled meanwhile
		return fault.New(fault.Unauthenticated, op, "This sign-in is over; begin it again."), nil
	}
	if err != nil {
		return nil, err
	}
	return a.checkEither(ctx, tx, op, person, f, code, recovery, from)
}

// checkEither is checkCode, or the same with a recovery code if there is one.
func (a *Accounts) checkEither(ctx context.Context, tx *tenancystore.GateTx, op string, person tenancy.Person,
	f tenancystore.Factor, code, recovery string, from tenancy.Source) (refusal, err error) {
	if recovery == "" {
		return a.checkCode(ctx, tx, op, person.ID, f, code)
	}
	counted, refusal := a.countTry(op, f)
	if refusal != nil {
		return refusal, nil
	}
	err = tx.UseRecoveryCode(ctx, person.ID, pastedHash(recovery))
	if pg.IsNoRows(err) {
		return wrongCode(op), tx.SaveTries(ctx, person.ID, counted)
	}
	if err != nil {
		return nil, err
	}
	return nil, tx.AuditPerson(ctx, person.ID, personEvent(person, from, tenancy.ActionRecoveryUsed), a.clock.Now())
}

// BeginEnrollment returns a new second factor for a sign-in of StepEnroll. A token that is over is
// fault.Unauthenticated.
func (a *Accounts) BeginEnrollment(ctx context.Context, token string) (out tenancy.Secret, err error) {
	const op = "tenancy.BeginEnrollment"
	var refusal error
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		var person tenancy.Person
		person, refusal, err = a.takeStep(ctx, tx, op, secret.HashToken(token), tenancy.StepEnroll)
		if err != nil || refusal != nil {
			return err
		}
		out, err = a.beginFactor(ctx, tx, op, person, secret.HashToken(token))
		return err
	})
	return out, firstError(err, refusal)
}

// ConfirmEnrollment completes a sign-in of StepEnroll with the first code of the second factor. The result has the
// recovery codes. A wrong code is fault.Unauthenticated.
func (a *Accounts) ConfirmEnrollment(ctx context.Context, token, code string, from tenancy.Source) (
	out tenancy.SignIn, err error) {
	const op = "tenancy.ConfirmEnrollment"
	var refusal error
	hash := secret.HashToken(token)
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		var person tenancy.Person
		person, refusal, err = a.takeStep(ctx, tx, op, hash, tenancy.StepEnroll)
		if err != nil || refusal != nil {
			return err
		}
		var codes []string
		if codes, refusal, err = a.confirmFactor(ctx, tx, op, person.ID, code, from); err != nil || refusal != nil {
			return err
		}
		if err := tx.DeleteStep(ctx, hash); err != nil {
			return err
		}
		out, err = a.lastStep(ctx, tx, op, person, from)
		out.RecoveryCodes = codes
		return err
	})
	return out, firstError(err, refusal)
}

// Restore completes a sign-in of StepRestore: it undoes the deletion of the account, and of the organizations whose only
// member the person is. What fell due meanwhile is not published.
func (a *Accounts) Restore(ctx context.Context, token string, from tenancy.Source) (out tenancy.SignIn, err error) {
	const op = "tenancy.Restore"
	var refusal error
	var restored []tenancy.OrgID
	hash := secret.HashToken(token)
	now, err := a.databaseTime(ctx, op)
	if err != nil {
		return out, err
	}
	err = a.inGate(ctx, op, func(tx *tenancystore.GateTx) error {
		var person tenancy.Person
		person, refusal, err = a.takeStep(ctx, tx, op, hash, tenancy.StepRestore)
		if err != nil || refusal != nil {
			return err
		}
		if err := tx.DeleteStep(ctx, hash); err != nil {
			return err
		}
		if restored, err = a.restoreAccount(ctx, tx, person, now, from); err != nil {
			return err
		}
		out, err = a.startSession(ctx, tx, op, person, from)
		return err
	})
	if err := firstError(err, refusal); err != nil {
		return tenancy.SignIn{}, err
	}
	a.keys.forgetOrgs(restored...)
	return out, a.syncPublishing(ctx, restored...)
}
