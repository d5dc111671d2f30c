package appapi

import (
	"context"

	"crier/apps/edge/publicv1"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/tenancy"
)

const tagSecurity = "Security"

// ChangePasswordRequest is the body of POST /user/change-password.
type ChangePasswordRequest struct {
	Old    string  `json:"oldPassword,omitempty" maxLength:"128" doc:"Absent without one: sign in again before."`
	New    string  `json:"newPassword" maxLength:"128" doc:"8 to 128 characters."`
	Repeat *string `json:"repeatPassword,omitempty" maxLength:"128" doc:"The same again, if it is sent."`
	Code   string  `json:"code,omitempty" maxLength:"64" doc:"Of your second factor, if you have one and did not use it in the last 10 minutes."`
}

type changePasswordInput struct{ Body ChangePasswordRequest }

// ChangedAnswer is whether something has changed.
type ChangedAnswer struct {
	Changed bool `json:"changed"`
}

type changedOutput struct{ Body ChangedAnswer }

// ChangePassword returns the endpoint that changes the password and ends the other sessions.
func (a *API) ChangePassword() route.Endpoint {
	return route.JSON(described(created(tagSecurity, "Change your password", 400, 413),
		"Ends your other sessions. Without a password, a sign-in in the last 10 minutes sets the first one."),
		a.changePassword)
}

func (a *API) changePassword(ctx context.Context, in *changePasswordInput) (*changedOutput, error) {
	b := in.Body
	var faults tenancy.Inputs
	faults.Password("newPassword", b.New)
	faults.Check(b.Repeat == nil || *b.Repeat == b.New, "repeatPassword", "must be the same as newPassword")
	if err := faults.Err("appapi.changePassword"); err != nil {
		return nil, err
	}
	err := a.prove(ctx, func(ctx context.Context, p tenancy.Principal) error {
		return a.deps.Accounts.ChangePassword(ctx, p, tenancy.Proof{Password: b.Old, Code: b.Code}, b.New)
	})
	if err != nil {
		return nil, err
	}
	return &changedOutput{Body: ChangedAnswer{Changed: true}}, nil
}

// ChangeEmailRequest is the body of POST /user/change-email.
type ChangeEmailRequest struct {
	Email string `json:"email" maxLength:"254" example:"ada@example.org"`
	ProofRequest
}

type changeEmailInput struct{ Body ChangeEmailRequest }

// ChangeEmail returns the endpoint that begins a change of address.
func (a *API) ChangeEmail() route.Endpoint {
	return route.JSON(described(created(tagSecurity, "Change your address", 400, 409, 413),
		"Links are sent to the old and the new address; the address changes when both were followed. "+
			"An instance without mail changes it at once."), a.changeEmail)
}

func (a *API) changeEmail(ctx context.Context, in *changeEmailInput) (*changedOutput, error) {
	var faults tenancy.Inputs
	email := faults.Email("email", in.Body.Email)
	if err := faults.Err("appapi.changeEmail"); err != nil {
		return nil, err
	}
	var out changedOutput
	err := a.prove(ctx, func(ctx context.Context, p tenancy.Principal) (err error) {
		if err := a.admit(ctx, a.buckets.newAddressOf, p.Person.String()); err != nil {
			return err
		}
		if err := a.admitAddress(ctx, a.buckets.newAddress, email); err != nil {
			return err
		}
		out.Body.Changed, err = a.deps.Accounts.ChangeAddress(ctx, p, email, in.Body.proof())
		return err
	})
	if err != nil {
		return nil, err
	}
	return &out, nil
}

// MFAStatusAnswer is the state of a person's second factor.
type MFAStatusAnswer struct {
	Enabled           bool    `json:"enabled"`
	Required          bool    `json:"required" doc:"Whether the organization requires it."`
	EnabledAt         *string `json:"enabledAt" nullable:"true" format:"date-time"`
	RecoveryCodesLeft int     `json:"recoveryCodesLeft"`
}

type mfaStatusOutput struct{ Body MFAStatusAnswer }

// MFAStatus returns the endpoint of the state of the person's second factor.
func (a *API) MFAStatus() route.Endpoint {
	return route.JSON(describe(tagSecurity, "Get the state of your second factor"), a.mfaStatus)
}

func (a *API) mfaStatus(ctx context.Context, _ *struct{}) (*mfaStatusOutput, error) {
	s, err := a.deps.Accounts.MFAStatus(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	return &mfaStatusOutput{Body: MFAStatusAnswer{
		Enabled: s.Enabled, Required: s.Required, EnabledAt: optionalTime(s.EnabledAt),
		RecoveryCodesLeft: s.RecoveryCodesLeft,
	}}, nil
}

type proofInput struct{ Body ProofRequest }

// BeginMFA returns the endpoint that begins a second factor.
func (a *API) BeginMFA() route.Endpoint {
	return route.JSON(described(created(tagSecurity, "Begin a second factor", 400, 409, 413),
		"It works only when /user/mfa/confirm has got its first code."), a.beginMFA)
}

func (a *API) beginMFA(ctx context.Context, in *proofInput) (*mfaSecretOutput, error) {
	var secret tenancy.Secret
	err := a.prove(ctx, func(ctx context.Context, p tenancy.Principal) (err error) {
		secret, err = a.deps.Accounts.BeginMFA(ctx, p, in.Body.proof())
		return err
	})
	if err != nil {
		return nil, err
	}
	return newMFASecret(secret), nil
}

// MFACodeRequest is a body with a code of the second factor.
type MFACodeRequest struct {
	Code string `json:"code" minLength:"1" maxLength:"64" doc:"Six digits of the authenticator." example:"123456"`
}

type mfaCodeInput struct{ Body MFACodeRequest }

// MFAEnabledAnswer is the answer after a second factor was enabled, or got new recovery codes.
type MFAEnabledAnswer struct {
	Enabled       bool     `json:"enabled" doc:"Always true."`
	RecoveryCodes []string `json:"recoveryCodes" doc:"Shown only here. Each works once in place of a code."`
}

type mfaEnabledOutput struct{ Body MFAEnabledAnswer }

// ConfirmMFA returns the endpoint that enables a second factor with its first code.
func (a *API) ConfirmMFA() route.Endpoint {
	return route.JSON(created(tagSecurity, "Enable the second factor", 400, 409, 413), a.confirmMFA)
}

func (a *API) confirmMFA(ctx context.Context, in *mfaCodeInput) (*mfaEnabledOutput, error) {
	codes, err := a.deps.Accounts.ConfirmMFA(ctx, request.Principal(ctx), in.Body.Code)
	if err != nil {
		return nil, err
	}
	return &mfaEnabledOutput{Body: MFAEnabledAnswer{Enabled: true, RecoveryCodes: codes}}, nil
}

// ReplaceRecoveryCodes returns the endpoint that replaces all recovery codes.
func (a *API) ReplaceRecoveryCodes() route.Endpoint {
	return route.JSON(created(tagSecurity, "Replace your recovery codes", 400, 409, 413), a.replaceRecoveryCodes)
}

func (a *API) replaceRecoveryCodes(ctx context.Context, in *mfaCodeInput) (*mfaEnabledOutput, error) {
	codes, err := a.deps.Accounts.ReplaceRecoveryCodes(ctx, request.Principal(ctx), in.Body.Code)
	if err != nil {
		return nil, err
	}
	return &mfaEnabledOutput{Body: MFAEnabledAnswer{Enabled: true, RecoveryCodes: codes}}, nil
}

// MFADisabledAnswer is the answer of POST /user/mfa/disable.
type MFADisabledAnswer struct {
	Enabled bool `json:"enabled" doc:"Always false."`
}

type mfaDisabledOutput struct{ Body MFADisabledAnswer }

// DisableMFA returns the endpoint that removes the second factor.
func (a *API) DisableMFA() route.Endpoint {
	return route.JSON(described(created(tagSecurity, "Disable your second factor", 400, 409, 413),
		"Needs the password and a code. An answer of 403 means that an organization of yours requires it. A recovery code "+
			"in place of the code is for a lost authenticator: it is accepted then too, and you enroll another one."),
		a.disableMFA)
}

func (a *API) disableMFA(ctx context.Context, in *proofInput) (*mfaDisabledOutput, error) {
	err := a.prove(ctx, func(ctx context.Context, p tenancy.Principal) error {
		return a.deps.Accounts.DisableMFA(ctx, p, in.Body.proof())
	})
	if err != nil {
		return nil, err
	}
	return &mfaDisabledOutput{}, nil
}

// MFAPolicyBody is whether an organization requires second factors.
type MFAPolicyBody struct {
	Required bool `json:"required" doc:"Members without a second factor have no access until they enable one."`
}

type mfaPolicyBody struct{ Body MFAPolicyBody }

// MFAPolicy returns the endpoint that answers whether the organization requires second factors.
func (a *API) MFAPolicy() route.Endpoint {
	return route.JSON(describe(tagSecurity, "Ask whether the organization requires a second factor"), a.mfaPolicy)
}

func (a *API) mfaPolicy(ctx context.Context, _ *struct{}) (*mfaPolicyBody, error) {
	required, err := a.deps.Accounts.MFAPolicy(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	return &mfaPolicyBody{Body: MFAPolicyBody{Required: required}}, nil
}

// SetMFAPolicy returns the endpoint that makes the organization require second factors, or ends that.
func (a *API) SetMFAPolicy() route.Endpoint {
	return route.JSON(described(describe(tagSecurity, "Require a second factor of all members", 400, 409, 413),
		"An answer of 409 means that you have no second factor yourself."), a.setMFAPolicy)
}

func (a *API) setMFAPolicy(ctx context.Context, in *mfaPolicyBody) (*mfaPolicyBody, error) {
	if err := a.deps.Accounts.SetMFAPolicy(ctx, request.Principal(ctx), in.Body.Required); err != nil {
		return nil, err
	}
	return in, nil
}

// SessionRecord is a live session of the person.
type SessionRecord struct {
	ID        string `json:"id"`
	Current   bool   `json:"current" doc:"The session of this request."`
	CreatedAt string `json:"createdAt" format:"date-time"`
	SeenAt    string `json:"lastSeenAt" format:"date-time" doc:"To the minute."`
	ExpiresAt string `json:"expiresAt" format:"date-time"`
	Address   string `json:"address" doc:"Network address of the last use."`
	Agent     string `json:"userAgent"`
}

type sessionsOutput struct{ Body []SessionRecord }

// ListSessions returns the endpoint that lists the sessions of the person.
func (a *API) ListSessions() route.Endpoint {
	return route.JSON(describe(tagSecurity, "List your sessions"), a.listSessions)
}

func (a *API) listSessions(ctx context.Context, _ *struct{}) (*sessionsOutput, error) {
	list, err := a.deps.Accounts.ListSessions(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &sessionsOutput{Body: make([]SessionRecord, 0, len(list))}
	for _, s := range list {
		out.Body = append(out.Body, SessionRecord{
			ID: s.ID.String(), Current: s.Current, CreatedAt: publicv1.FormatTime(s.CreatedAt),
			SeenAt: publicv1.FormatTime(s.SeenAt), ExpiresAt: publicv1.FormatTime(s.ExpiresAt),
			Address: s.Address, Agent: s.Agent,
		})
	}
	return out, nil
}

type endSessionsInput struct {
	ID string `query:"id" maxLength:"64" doc:"Id of a session; without it all but that of the request."`
}

// EndedAnswer is the number of sessions that ended.
type EndedAnswer struct {
	Ended int `json:"ended"`
}

type endedOutput struct{ Body EndedAnswer }

// EndSessions returns the endpoint that ends one session, or all but that of the request.
func (a *API) EndSessions() route.Endpoint {
	return route.JSON(describe(tagSecurity, "End a session, or all others", 400, 404), a.endSessions)
}

func (a *API) endSessions(ctx context.Context, in *endSessionsInput) (*endedOutput, error) {
	n, err := a.deps.Accounts.EndSessions(ctx, request.Principal(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return &endedOutput{Body: EndedAnswer{Ended: n}}, nil
}
