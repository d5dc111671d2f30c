// Package security provides the endpoints for a person's password, second factors, sessions and
// identities.
package security

import (
	"context"

	"crier/apps/edge/admission"
	"crier/apps/edge/record"
	"crier/apps/edge/route"
	"crier/tenancy"
)

// Deps holds the dependencies of an API.
type Deps struct {
	Accounts Accounts
	Gate     *admission.Gate
}

// Accounts provides the account operations that this package calls.
type Accounts interface {
	Security
	Factors
	SessionLists
	Identities
}

// API provides this package's endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API that uses d. It does not check that all fields of d are set.
func New(d Deps) *API { return &API{deps: d} }

// Security changes a person's password and email address. Its methods return Invalid if the
// password or code that proves the person's identity is wrong.
type Security interface {
	// ChangePassword sets a new password and ends the person's other sessions. The proof must
	// contain the current password. A person who does not have a password yet must instead have
	// signed in within the last ten minutes.
	ChangePassword(ctx context.Context, p tenancy.Principal, proof tenancy.Proof, password string) error
	// ChangeAddress emails one link to the old address and one to the new address. The address
	// changes once both links have been followed. If the instance sends no email, the address
	// changes immediately. ChangeAddress reports whether the address has changed.
	ChangeAddress(ctx context.Context, p tenancy.Principal, email string, proof tenancy.Proof) (bool, error)
}

// ChangePasswordRequest is the body of POST /user/change-password.
type ChangePasswordRequest struct {
	Old    string  `json:"oldPassword,omitempty" maxLength:"128" doc:"Your password. If you do not have a password, sign in again, then send the request without this field."`
	New    string  `json:"newPassword" maxLength:"128" doc:"8 to 128 characters."`
	Repeat *string `json:"repeatPassword,omitempty" maxLength:"128" doc:"If sent, must be equal to newPassword."`
	Code   string  `json:"code,omitempty" maxLength:"64" doc:"Code from your second factor. Needed only if you have a second factor and have not used it in the last 10 minutes."`
}

type changePasswordInput struct{ Body ChangePasswordRequest }

// ChangedResponse says whether something has changed.
type ChangedResponse struct {
	Changed bool `json:"changed"`
}

type changedOutput struct{ Body ChangedResponse }

// ChangePassword returns the endpoint that changes the password and ends the person's other
// sessions.
func (a *API) ChangePassword() route.Endpoint {
	return route.JSON(route.Described(route.Created("Security", "Change your password", 400, 413),
		"This ends your other sessions. If you have no password yet, you can set one within 10 minutes of signing in."),
		a.changePassword)
}

func (a *API) changePassword(ctx context.Context, in *changePasswordInput) (*changedOutput, error) {
	b := in.Body
	var faults tenancy.Inputs
	faults.Password("newPassword", b.New)
	faults.Check(b.Repeat == nil || *b.Repeat == b.New, "repeatPassword", "must be the same as newPassword")
	if err := faults.Err("security.changePassword"); err != nil {
		return nil, err
	}
	err := a.deps.Gate.Prove(ctx, func(ctx context.Context, p tenancy.Principal) error {
		return a.deps.Accounts.ChangePassword(ctx, p, tenancy.Proof{Password: b.Old, Code: b.Code}, b.New)
	})
	if err != nil {
		return nil, err
	}
	return &changedOutput{Body: ChangedResponse{Changed: true}}, nil
}

// ChangeEmailRequest is the body of POST /user/change-email.
type ChangeEmailRequest struct {
	Email string `json:"email" maxLength:"254" example:"ada@example.org"`
	record.ProofRequest
}

type changeEmailInput struct{ Body ChangeEmailRequest }

// ChangeEmail returns the endpoint that starts changing the person's email address.
func (a *API) ChangeEmail() route.Endpoint {
	return route.JSON(route.Described(route.Created("Security", "Change your email address", 400, 409, 413),
		"Links are sent to the old and the new address, and the address changes once both links have been followed. "+
			"An instance that sends no emails changes the address immediately."), a.changeEmail)
}

func (a *API) changeEmail(ctx context.Context, in *changeEmailInput) (*changedOutput, error) {
	var faults tenancy.Inputs
	email := faults.Email("email", in.Body.Email)
	if err := faults.Err("security.changeEmail"); err != nil {
		return nil, err
	}
	var out changedOutput
	err := a.deps.Gate.Prove(ctx, func(ctx context.Context, p tenancy.Principal) (err error) {
		if err := a.deps.Gate.Admit(ctx, a.deps.Gate.Buckets.NewAddressOf, p.Person.String()); err != nil {
			return err
		}
		if err := a.deps.Gate.AdmitAddress(ctx, a.deps.Gate.Buckets.NewAddress, email); err != nil {
			return err
		}
		out.Body.Changed, err = a.deps.Accounts.ChangeAddress(ctx, p, email, in.Body.Proof())
		return err
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}
