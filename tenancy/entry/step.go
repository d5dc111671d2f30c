package entry

import (
	"context"

	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/credential"
	"crier/tenancy/db"
	"crier/tenancy/proof"
)

// NextStep begins the next sign-in step for a person whose first factor has been verified. If no
// further step is needed, it begins the session. The caller must have locked the person.
func (s *Entry) NextStep(ctx context.Context, tx *db.GateTx, op string, person tenancy.Person,
	from tenancy.Source) (tenancy.SignIn, error) {
	factor, err := proof.LockFactor(ctx, tx, person.ID)
	if err != nil && !pg.IsNoRows(err) {
		return tenancy.SignIn{}, err
	}
	if err == nil && factor.ConfirmedAt != nil {
		return s.beginStep(ctx, tx, op, person, tenancy.StepMFA)
	}
	required, err := proof.RequiresMFA(ctx, tx, person.ID)
	if err != nil {
		return tenancy.SignIn{}, err
	}
	if required {
		return s.beginStep(ctx, tx, op, person, tenancy.StepEnroll)
	}
	return s.LastStep(ctx, tx, op, person, from)
}

// LastStep begins a session for a person whose factors have all been verified. If the account is
// marked for deletion, it begins StepRestore instead.
func (s *Entry) LastStep(ctx context.Context, tx *db.GateTx, op string, person tenancy.Person,
	from tenancy.Source) (tenancy.SignIn, error) {
	if person.DeletedAt != nil {
		return s.beginStep(ctx, tx, op, person, tenancy.StepRestore)
	}
	return s.StartSession(ctx, tx, op, person, from)
}

func (s *Entry) beginStep(ctx context.Context, tx *db.GateTx, op string, person tenancy.Person,
	step tenancy.Step) (tenancy.SignIn, error) {
	t, hash, err := credential.New(op)
	if err != nil {
		return tenancy.SignIn{}, err
	}
	err = createStep(ctx, tx, hash, person.ID, step, s.clock.Now().Add(tenancy.SignInStepLife))
	out := tenancy.SignIn{Step: step, Token: t}
	if person.DeletedAt != nil {
		out.Until = person.DeletedAt.Add(s.grace)
	}
	return out, err
}

// IsGone reports whether an account can no longer be restored and is only waiting to be purged.
func (s *Entry) IsGone(p tenancy.Person) bool {
	return p.DeletedAt != nil && !s.clock.Now().Before(p.DeletedAt.Add(s.grace))
}
