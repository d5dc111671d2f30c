package security

import (
	"context"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/tenancy"
)

// Factors manages the second factor of a signed-in person. Its methods return Invalid if the
// password or code that proves the person's identity is wrong.
type Factors interface {
	MFAStatus(ctx context.Context, p tenancy.Principal) (tenancy.MFAStatus, error)
	// BeginMFA creates a second factor, which ConfirmMFA then enables. It returns Conflict if the
	// person already has a second factor.
	BeginMFA(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) (tenancy.Secret, error)
	// ConfirmMFA enables the second factor and returns the recovery codes.
	ConfirmMFA(ctx context.Context, p tenancy.Principal, code string) ([]string, error)
	// DisableMFA removes the second factor. The proof must contain the password and either a code
	// or a recovery code. If one of the person's organizations requires a second factor, DisableMFA
	// returns Forbidden unless a recovery code is given.
	DisableMFA(ctx context.Context, p tenancy.Principal, proof tenancy.Proof) error
	// ReplaceRecoveryCodes replaces all recovery codes and returns the new ones.
	ReplaceRecoveryCodes(ctx context.Context, p tenancy.Principal, code string) ([]string, error)
	MFAPolicy(ctx context.Context, p tenancy.Principal) (bool, error)
	// SetMFAPolicy sets whether the organization requires a second factor. It returns Conflict if
	// required is true and the caller has no second factor.
	SetMFAPolicy(ctx context.Context, p tenancy.Principal, required bool) error
}

// MFAStatusResponse is the status of a person's second factor.
type MFAStatusResponse struct {
	Enabled           bool    `json:"enabled"`
	Required          bool    `json:"required" doc:"Whether the organization requires a second factor."`
	EnabledAt         *string `json:"enabledAt" nullable:"true" format:"date-time"`
	RecoveryCodesLeft int     `json:"recoveryCodesLeft"`
}

type mfaStatusOutput struct{ Body MFAStatusResponse }

// MFAStatus returns the endpoint for the status of the person's second factor.
func (a *API) MFAStatus() route.Endpoint {
	return route.JSON(route.Describe("Security", "Get the status of your second factor"), a.mfaStatus)
}

func (a *API) mfaStatus(ctx context.Context, _ *struct{}) (*mfaStatusOutput, error) {
	s, err := a.deps.Accounts.MFAStatus(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	return &mfaStatusOutput{Body: MFAStatusResponse{
		Enabled: s.Enabled, Required: s.Required, EnabledAt: record.OptionalTime(s.EnabledAt),
		RecoveryCodesLeft: s.RecoveryCodesLeft,
	}}, nil
}

type proofInput struct{ Body record.ProofRequest }

// BeginMFA returns the endpoint that starts setting up a second factor.
func (a *API) BeginMFA() route.Endpoint {
	return route.JSON(route.Described(route.Created("Security", "Start enrolling a second factor", 400, 409, 413),
		"The second factor becomes active when you send its first code to /user/mfa/confirm."), a.beginMFA)
}

func (a *API) beginMFA(ctx context.Context, in *proofInput) (*record.MFASecretOutput, error) {
	var secret tenancy.Secret
	err := a.deps.Gate.Prove(ctx, func(ctx context.Context, p tenancy.Principal) (err error) {
		secret, err = a.deps.Accounts.BeginMFA(ctx, p, in.Body.Proof())
		return err
	})
	if err != nil {
		return nil, err
	}
	return record.NewMFASecret(secret), nil
}

// MFACodeRequest is a request body with a second-factor code.
type MFACodeRequest struct {
	Code string `json:"code" minLength:"1" maxLength:"64" doc:"Six-digit code from the authenticator app." example:"123456"`
}

type mfaCodeInput struct{ Body MFACodeRequest }

// MFAEnabledResponse is the response to a request that enables a second factor or replaces its
// recovery codes.
type MFAEnabledResponse struct {
	Enabled       bool     `json:"enabled" doc:"Always true."`
	RecoveryCodes []string `json:"recoveryCodes" doc:"Recovery codes, returned only in this response. Each works once in place of a code."`
}

type mfaEnabledOutput struct{ Body MFAEnabledResponse }

// ConfirmMFA returns the endpoint that enables a second factor with its first code.
func (a *API) ConfirmMFA() route.Endpoint {
	return route.JSON(route.Created("Security", "Enable the second factor", 400, 409, 413), a.confirmMFA)
}

func (a *API) confirmMFA(ctx context.Context, in *mfaCodeInput) (*mfaEnabledOutput, error) {
	codes, err := a.deps.Accounts.ConfirmMFA(ctx, request.Principal(ctx), in.Body.Code)
	if err != nil {
		return nil, err
	}
	return &mfaEnabledOutput{Body: MFAEnabledResponse{Enabled: true, RecoveryCodes: codes}}, nil
}

// ReplaceRecoveryCodes returns the endpoint that replaces all recovery codes.
func (a *API) ReplaceRecoveryCodes() route.Endpoint {
	return route.JSON(route.Created("Security", "Replace your recovery codes", 400, 409, 413), a.replaceRecoveryCodes)
}

func (a *API) replaceRecoveryCodes(ctx context.Context, in *mfaCodeInput) (*mfaEnabledOutput, error) {
	codes, err := a.deps.Accounts.ReplaceRecoveryCodes(ctx, request.Principal(ctx), in.Body.Code)
	if err != nil {
		return nil, err
	}
	return &mfaEnabledOutput{Body: MFAEnabledResponse{Enabled: true, RecoveryCodes: codes}}, nil
}

// MFADisabledResponse is the response to POST /user/mfa/disable.
type MFADisabledResponse struct {
	Enabled bool `json:"enabled" doc:"Always false."`
}

type mfaDisabledOutput struct{ Body MFADisabledResponse }

// DisableMFA returns the endpoint that removes the second factor.
func (a *API) DisableMFA() route.Endpoint {
	return route.JSON(route.Described(route.Created("Security", "Disable your second factor", 400, 409, 413),
		"Requires the password and a code. 403 means that one of your organizations requires a second factor. If you "+
			"have lost your authenticator app, send a recovery code as the code; it is accepted even if a second "+
			"factor is required, and you then have to enroll a new one."),
		a.disableMFA)
}

func (a *API) disableMFA(ctx context.Context, in *proofInput) (*mfaDisabledOutput, error) {
	err := a.deps.Gate.Prove(ctx, func(ctx context.Context, p tenancy.Principal) error {
		return a.deps.Accounts.DisableMFA(ctx, p, in.Body.Proof())
	})
	if err != nil {
		return nil, err
	}
	return &mfaDisabledOutput{}, nil
}

// MFAPolicyBody indicates whether an organization requires a second factor.
type MFAPolicyBody struct {
	Required bool `json:"required" doc:"Whether members must enable a second factor before they have access."`
}

type mfaPolicyBody struct{ Body MFAPolicyBody }

// MFAPolicy returns the endpoint that reports whether the organization requires a second factor.
func (a *API) MFAPolicy() route.Endpoint {
	return route.JSON(route.Describe("Security", "Get the organization's second factor policy"), a.mfaPolicy)
}

func (a *API) mfaPolicy(ctx context.Context, _ *struct{}) (*mfaPolicyBody, error) {
	required, err := a.deps.Accounts.MFAPolicy(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	return &mfaPolicyBody{Body: MFAPolicyBody{Required: required}}, nil
}

// SetMFAPolicy returns the endpoint that sets whether the organization requires a second factor.
func (a *API) SetMFAPolicy() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Security", "Require a second factor for all members", 400, 409, 413),
		"409 means that you have no second factor yourself."), a.setMFAPolicy)
}

func (a *API) setMFAPolicy(ctx context.Context, in *mfaPolicyBody) (*mfaPolicyBody, error) {
	if err := a.deps.Accounts.SetMFAPolicy(ctx, request.Principal(ctx), in.Body.Required); err != nil {
		return nil, err
	}
	return in, nil
}
