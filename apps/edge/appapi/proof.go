package appapi

import (
	"context"
	"errors"

	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/tenancy"
)

// ProofRequest are the members by which a person with a session shows again who makes the request.
type ProofRequest struct {
	Password string `json:"password,omitempty" maxLength:"128" doc:"Absent without one: sign in again before."`
	Code     string `json:"code,omitempty" maxLength:"64" doc:"Of your second factor, if you have one and did not use it in the last 10 minutes."`
}

func (r ProofRequest) proof() tenancy.Proof { return tenancy.Proof{Password: r.Password, Code: r.Code} }

// prove runs do, which checks a proof of the principal of ctx, as log-ins are run: one of a client at a time, and wrong
// proofs count like log-ins into the account that failed. It returns the error of do, or RateLimited.
func (a *API) prove(ctx context.Context, do func(context.Context, tenancy.Principal) error) error {
	p := request.Principal(ctx)
	release, err := a.logins.waitTurn(ctx, p.From.Client)
	if err != nil {
		return err
	}
	defer release()
	forgive, wait := a.logins.begin(ctx, loginKeys(p.From.Client, p.From.Site, a.accountName(p.Name)))
	if wait > 0 {
		err := tooManyFailures("appapi.prove", "Too many wrong passwords; wait before the next one.", wait)
		a.logFailure(ctx, "a proof of identity was refused", p.Name, err)
		return err
	}
	err = do(ctx, p)
	if !isWrongProof(err) {
		forgive(context.WithoutCancel(ctx))
		return err
	}
	a.logFailure(ctx, "a proof of identity failed", p.Name, err)
	return err
}

// proveIfSent calls prove if the request has a proof, and otherwise only do: the proof is optional,
// and without one there is nothing to guess.
func (a *API) proveIfSent(
	ctx context.Context, sent ProofRequest, do func(context.Context, tenancy.Principal) error,
) error {
	if sent == (ProofRequest{}) {
		return do(ctx, request.Principal(ctx))
	}
	return a.prove(ctx, do)
}

// isWrongProof reports whether an error can be that of a wrong proof: it is Invalid, and its fields, if it has any,
// name one of the proof.
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
