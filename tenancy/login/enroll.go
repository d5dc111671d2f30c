package login

import (
	"cmp"
	"context"

	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/db"
	loginstore "crier/tenancy/login/store"
)

// BeginEnrollment begins the enrollment of a second factor for a sign-in at StepEnroll, and returns
// the factor's secret. It returns fault.Unauthenticated if the token is no longer valid.
func (s *Logins) BeginEnrollment(ctx context.Context, token string) (out tenancy.Secret, err error) {
	const op = "tenancy.BeginEnrollment"
	var refusal error
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		var person tenancy.Person
		person, refusal, err = s.takeStep(ctx, tx, op, secret.HashToken(token), tenancy.StepEnroll)
		if err != nil || refusal != nil {
			return err
		}
		out, err = s.factors.BeginFactor(ctx, tx, op, person, secret.HashToken(token))
		return err
	})
	return out, cmp.Or(err, refusal)
}

// ConfirmEnrollment completes the StepEnroll step of a sign-in. code is the first code from the new
// second factor. The result includes the recovery codes. ConfirmEnrollment returns
// fault.Unauthenticated if the code is wrong.
func (s *Logins) ConfirmEnrollment(ctx context.Context, token, code string, from tenancy.Source) (
	out tenancy.SignIn, err error) {
	const op = "tenancy.ConfirmEnrollment"
	var refusal error
	hash := secret.HashToken(token)
	err = s.db.InGate(ctx, op, func(tx *db.GateTx) error {
		var person tenancy.Person
		person, refusal, err = s.takeStep(ctx, tx, op, hash, tenancy.StepEnroll)
		if err != nil || refusal != nil {
			return err
		}
		var codes []string
		if codes, refusal, err = s.factors.ConfirmFactor(ctx, tx, op, person.ID, code, from); err != nil || refusal != nil {
			return err
		}
		if err := loginstore.DeleteStep(ctx, tx, hash); err != nil {
			return err
		}
		out, err = s.entry.LastStep(ctx, tx, op, person, from)
		out.RecoveryCodes = codes
		return err
	})
	return out, cmp.Or(err, refusal)
}
