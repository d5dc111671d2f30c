package signin

import (
	"context"

	"crier/apps/edge/record"
	"crier/apps/edge/route"
)

// MFAVerifyRequest is the body of POST /auth/mfa/verify. It must contain either a code or a
// recovery code, but not both.
type MFAVerifyRequest struct {
	Token        string `json:"mfaToken" minLength:"1" maxLength:"512"`
	Code         string `json:"code,omitempty" maxLength:"16" doc:"Six-digit code from the authenticator app." example:"123456"`
	RecoveryCode string `json:"recoveryCode,omitempty" maxLength:"64"`
}

type mfaVerifyInput struct {
	BrowserCookies
	Body MFAVerifyRequest
}

// VerifyMFA returns the endpoint that completes a sign-in with a second factor.
func (a *API) VerifyMFA() route.Endpoint {
	return route.JSON(route.Described(route.Created("Sign-in", "Complete a sign-in with a second factor", 400, 401, 403, 413, 429),
		"A wrong code returns 401. After five wrong codes for an account within 15 minutes, all codes return 429."),
		a.verifyMFA)
}

func (a *API) verifyMFA(ctx context.Context, in *mfaVerifyInput) (*loginOutput, error) {
	signIn, err := a.Steps().CheckFactor(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	return a.loginAnswer(ctx, signIn, in.BrowserCookies)
}

// MFATokenRequest is the body of POST /auth/mfa/enroll/begin.
type MFATokenRequest struct {
	Token string `json:"mfaToken" minLength:"1" maxLength:"512"`
}

type mfaTokenInput struct{ Body MFATokenRequest }

// BeginEnrollment returns the endpoint that starts setting up a second factor during a sign-in.
func (a *API) BeginEnrollment() route.Endpoint {
	return route.JSON(
		route.Created("Sign-in", "Start enrolling a second factor that a sign-in requires", 400, 401, 403, 409, 413, 429),
		a.beginEnrollment)
}

func (a *API) beginEnrollment(ctx context.Context, in *mfaTokenInput) (*record.MFASecretOutput, error) {
	secret, err := a.Steps().StartEnrollment(ctx, in.Body.Token)
	if err != nil {
		return nil, err
	}
	return record.NewMFASecret(secret), nil
}

// MFAEnrollRequest is the body of POST /auth/mfa/enroll/confirm.
type MFAEnrollRequest struct {
	Token string `json:"mfaToken" minLength:"1" maxLength:"512"`
	Code  string `json:"code" minLength:"1" maxLength:"16" doc:"Six-digit code from the authenticator app." example:"123456"`
}

type mfaEnrollInput struct {
	BrowserCookies
	Body MFAEnrollRequest
}

// ConfirmEnrollment returns the endpoint that completes a sign-in with the first code from a new
// second factor.
func (a *API) ConfirmEnrollment() route.Endpoint {
	return route.JSON(route.Described(
		route.Created("Sign-in", "Complete a sign-in with a new second factor", 400, 401, 403, 409, 413, 429),
		"The response contains the recovery codes."), a.confirmEnrollment)
}

func (a *API) confirmEnrollment(ctx context.Context, in *mfaEnrollInput) (*loginOutput, error) {
	signIn, err := a.Steps().FinishEnrollment(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	return a.loginAnswer(ctx, signIn, in.BrowserCookies)
}
