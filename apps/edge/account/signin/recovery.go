package signin

import (
	"context"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/tenancy"
)

// ForgotPasswordDto is the body of POST /auth/forgot.
type ForgotPasswordDto struct {
	Email string `json:"email" maxLength:"254" example:"ada@example.org"`
}

type forgotInput struct{ Body ForgotPasswordDto }

// ForgotResponse is the response to POST /auth/forgot.
type ForgotResponse struct {
	Forgot bool `json:"forgot" doc:"Always true, whether or not the email address has an account."`
}

type forgotOutput struct{ Body ForgotResponse }

// Forgot returns the endpoint that emails a link for setting a new password.
func (a *API) Forgot() route.Endpoint {
	return route.JSON(route.Created("Sign-in", "Send a password reset link", 400, 403, 413, 429), a.forgot)
}

func (a *API) forgot(ctx context.Context, in *forgotInput) (*forgotOutput, error) {
	err := a.deps.Gate.MailTo(ctx, a.deps.Gate.Buckets.ResetAddress, a.deps.Gate.AdmitDevice, in.Body.Email, a.deps.Accounts.Forgot)
	if err != nil {
		return nil, err
	}
	return &forgotOutput{Body: ForgotResponse{Forgot: true}}, nil
}

// ForgotReturnPasswordDto is the body of POST /auth/forgot-return.
type ForgotReturnPasswordDto struct {
	Password       string `json:"password" maxLength:"128" doc:"8 to 128 characters."`
	RepeatPassword string `json:"repeatPassword" maxLength:"128" doc:"Must be equal to password."`
	Token          string `json:"token" minLength:"5" maxLength:"512" doc:"Token from the link in the email."`
}

type forgotReturnInput struct{ Body ForgotReturnPasswordDto }

// ForgotReturnResponse is the response to POST /auth/forgot-return.
type ForgotReturnResponse struct {
	Reset bool `json:"reset" doc:"Whether the password was changed; false if the link has expired or was already used."`
}

type forgotReturnOutput struct{ Body ForgotReturnResponse }

// ForgotReturn returns the endpoint that sets a new password with the token from an emailed link.
// The endpoint also ends all of the person's sessions.
func (a *API) ForgotReturn() route.Endpoint {
	return route.JSON(route.Described(route.Created("Sign-in", "Set a new password", 400, 403, 413, 429),
		"Send the token from the link in the email, which is valid for 20 minutes. All of the person's sessions "+
			"end."), a.forgotReturn)
}

func (a *API) forgotReturn(ctx context.Context, in *forgotReturnInput) (*forgotReturnOutput, error) {
	if err := a.deps.Gate.AdmitLink(ctx, in.Body.Token); err != nil {
		return nil, err
	}
	var faults tenancy.Inputs
	faults.Password("password", in.Body.Password)
	faults.Check(in.Body.Password == in.Body.RepeatPassword, "repeatPassword", "must be the same as password")
	if err := faults.Err("signin.forgotReturn"); err != nil {
		return nil, err
	}
	reset, err := a.deps.Accounts.ResetPassword(ctx, in.Body.Token, in.Body.Password, request.From(ctx).From)
	if err != nil {
		return nil, err
	}
	return &forgotReturnOutput{Body: ForgotReturnResponse{Reset: reset}}, nil
}

// TokenRequest is the request body for routes that accept a token from a link or from a sign-in
// step.
type TokenRequest struct {
	Token string `json:"token" minLength:"1" maxLength:"512"`
}

type tokenInput struct{ Body TokenRequest }

// ConfirmResponse is the response to POST /auth/confirm-email.
type ConfirmResponse struct {
	Confirmed bool `json:"confirmed" doc:"Always true."`
	Changed   bool `json:"changed" doc:"Whether the email address has changed; false until both links have been followed."`
}

type confirmOutput struct{ Body ConfirmResponse }

// ConfirmAddress returns the endpoint that processes one of the two links that confirm a new email
// address.
func (a *API) ConfirmAddress() route.Endpoint {
	return route.JSON(route.Described(
		route.Created("Sign-in", "Confirm a new email address", 400, 403, 404, 409, 413, 429),
		"The address changes once the links sent to both the old and the new address have been followed."),
		a.confirm)
}

func (a *API) confirm(ctx context.Context, in *tokenInput) (*confirmOutput, error) {
	if err := a.deps.Gate.AdmitLink(ctx, in.Body.Token); err != nil {
		return nil, err
	}
	changed, err := a.deps.Accounts.ConfirmAddress(ctx, in.Body.Token, request.From(ctx).From)
	if err != nil {
		return nil, err
	}
	return &confirmOutput{Body: ConfirmResponse{Confirmed: true, Changed: changed}}, nil
}

type restoreInput struct {
	BrowserCookies
	Body TokenRequest
}

// Restore returns the endpoint that restores an account marked for deletion and completes the
// sign-in.
func (a *API) Restore() route.Endpoint {
	return route.JSON(route.Described(route.Created("Sign-in", "Undo the deletion of the account", 400, 401, 403, 410, 413, 429),
		"Requires the restoreToken from a sign-in. Organizations whose only member is this person are also restored."),
		a.restore)
}

func (a *API) restore(ctx context.Context, in *restoreInput) (*loginOutput, error) {
	signIn, err := a.Steps().RestoreAccount(ctx, in.Body.Token)
	if err != nil {
		return nil, err
	}
	return a.loginAnswer(ctx, signIn, in.BrowserCookies)
}
