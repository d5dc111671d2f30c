package admission

import (
	"context"
	"errors"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/tenancy"
)

// Prove calls do, which checks a proof given by ctx's principal. The limits for logins apply: only
// one call per client runs at a time, and each wrong proof counts as a failed login to the account.
// Prove returns do's error, or RateLimited if a limit has been reached.
func (g *Gate) Prove(ctx context.Context, do func(context.Context, tenancy.Principal) error) error {
	p := request.Principal(ctx)
	release, err := g.Logins.WaitTurn(ctx, p.From.Client)
	if err != nil {
		return err
	}
	defer release()
	forgive, wait := g.Logins.Begin(ctx, loginKeys(p.From.Client, p.From.Site, g.accountName(p.Name)))
	if wait > 0 {
		err := TooManyFailures("admission.prove", "Too many wrong passwords. Wait before you try again.", wait)
		g.LogFailure(ctx, "proof of identity refused", p.Name, err)
		return err
	}
	err = do(ctx, p)
	if !isWrongProof(err) {
		forgive(context.WithoutCancel(ctx))
		return err
	}
	g.LogFailure(ctx, "proof of identity failed", p.Name, err)
	return err
}

// ProveIfSent calls Prove if the request contains a proof. Otherwise, it calls do directly, because
// a request without a proof cannot be a guess.
func (g *Gate) ProveIfSent(
	ctx context.Context, sent record.ProofRequest, do func(context.Context, tenancy.Principal) error,
) error {
	if sent == (record.ProofRequest{}) {
		return do(ctx, request.Principal(ctx))
	}
	return g.Prove(ctx, do)
}

// isWrongProof reports whether err may have been caused by a wrong proof. That is possible only if
// err is Invalid and does not request a missing code. If err names fields, at least one of them
// must also be a field of the proof.
func isWrongProof(err error) bool {
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Invalid || f.Remedy == fault.RemedyCode {
		return false
	}
	for _, field := range f.Fields {
		switch field.Name {
		case "password", "oldPassword", "code":
			return true
		}
	}
	return len(f.Fields) == 0
}
