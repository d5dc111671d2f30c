package signin

import (
	"context"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/session"
	"crier/tenancy"
)

// Offers looks up the invitation that a browser has stored for its next sign-in.
type Offers interface {
	// Offer returns the organization and role that the invitation offers the person. ok is false if
	// the person cannot use the invitation or is already a member of the organization.
	Offer(ctx context.Context, p tenancy.Principal, token string) (offer tenancy.Offer, ok bool, err error)
}

// BrowserCookies holds the cookies that a sign-in reads.
type BrowserCookies struct {
	Auth       string `cookie:"auth" doc:"The browser's previous session. It ends when a new session begins."`
	Invitation string `cookie:"org" doc:"Token of an invitation. When the sign-in is complete, the response includes the invitation but does not accept it."`
	Person     string `cookie:"impersonate" doc:"The cookie is deleted once the sign-in is complete."`
}

// SignInHeaders holds the headers of a response that can start a session.
type SignInHeaders struct {
	Cookies    []string `header:"Set-Cookie" doc:"auth and device when the sign-in is complete; showorg after a registration."`
	Reload     string   `header:"reload" doc:"true if an existing person has signed in."`
	Onboarding string   `header:"onboarding" doc:"true if a new person has signed in."`
	Activate   string   `header:"activate" doc:"true if the person must follow the link in an email first."`
}

// SignInStep describes what is still required to complete a sign-in. Once the sign-in is complete,
// it holds any new recovery codes and the invitation to offer.
type SignInStep struct {
	MFARequired           bool     `json:"mfaRequired,omitempty" doc:"true if a code from the second factor must be sent to /auth/mfa/verify."`
	MFAEnrollmentRequired bool     `json:"mfaEnrollmentRequired,omitempty" doc:"true if a second factor must be enrolled; see /auth/mfa/enroll/begin."`
	MFAToken              string   `json:"mfaToken,omitempty" doc:"Token for the /auth/mfa routes. It is valid for 5 minutes."`
	Methods               []string `json:"methods,omitempty" enum:"totp,recovery" doc:"The kinds of code that /auth/mfa/verify accepts."`
	DeletionRequested     bool     `json:"deletionRequested,omitempty" doc:"true if the account is being deleted; /auth/restore undoes it."`
	RestoreToken          string   `json:"restoreToken,omitempty" doc:"Token for /auth/restore."`
	Until                 string   `json:"until,omitempty" format:"date-time" doc:"When the account will be deleted."`
	RecoveryCodes         []string `json:"recoveryCodes,omitempty" doc:"Recovery codes, returned only in this response. Each works once."`

	Invitation *InvitationOffer `json:"invitation,omitempty" doc:"The invitation in the cookie org. To accept the invitation, call POST /user/join-org."`
}

// InvitationOffer is the organization and role that an invitation offers the person who has signed
// in.
type InvitationOffer struct {
	Organization string `json:"organization" doc:"Name of the organization." example:"Acme"`
	Role         string `json:"role" enum:"USER,ADMIN"`
}

func newSignInStep(s tenancy.SignIn) SignInStep {
	out := SignInStep{RecoveryCodes: s.RecoveryCodes}
	switch s.Step {
	case tenancy.StepMFA:
		out.MFARequired, out.MFAToken, out.Methods = true, s.Token, []string{"totp", "recovery"}
	case tenancy.StepEnroll:
		out.MFAEnrollmentRequired, out.MFAToken = true, s.Token
	case tenancy.StepRestore:
		out.DeletionRequested, out.RestoreToken, out.Until = true, s.Token, record.FormatTime(s.Until)
	}
	return out
}

// LoginResponse is the response to a sign-in step. The session is in the auth cookie.
type LoginResponse struct {
	Login bool `json:"login" doc:"Whether the sign-in is complete."`
	SignInStep
}

type loginOutput struct {
	SignInHeaders
	Body LoginResponse
}

// loginAnswer returns the response to a sign-in step.
func (a *API) loginAnswer(ctx context.Context, s tenancy.SignIn, b BrowserCookies) (*loginOutput, error) {
	headers, step, err := a.signInAnswer(ctx, s, b)
	if err != nil {
		return nil, err
	}
	body := LoginResponse{Login: s.Step == tenancy.StepDone, SignInStep: step}
	return &loginOutput{SignInHeaders: headers, Body: body}, nil
}

// signInAnswer returns the headers and the body fields of the response to a sign-in step.
func (a *API) signInAnswer(ctx context.Context, s tenancy.SignIn, b BrowserCookies) (
	h SignInHeaders, step SignInStep, err error) {
	step = newSignInStep(s)
	switch s.Step {
	case tenancy.StepDone:
		h, err = a.Steps().Complete(ctx, s, b)
		if err == nil && b.Invitation != "" {
			step.Invitation = a.offer(ctx, s.Session, b.Invitation, &h)
		}
	case tenancy.StepConfirm:
		h.Activate = "true"
		if s.Device != "" { // Activate recognizes the browser by this cookie
			h.Cookies = a.deps.Cookies.Cookie(session.CookieDevice, s.Device, tenancy.DeviceMemory)
		}
	}
	return h, step, err
}

// offer looks up the browser's invitation for the person who has signed in. It does not add the
// person to the organization, because anybody can send a link that stores an invitation in a
// browser.
//
// If the person cannot use the invitation, offer deletes the invitation's cookie and returns nil.
// If the lookup fails, offer returns nil but keeps the cookie for the next sign-in.
func (a *API) offer(ctx context.Context, live, token string, h *SignInHeaders) *InvitationOffer {
	p, err := a.deps.Accounts.Session(ctx, live, "", "", request.From(ctx).From)
	if err != nil {
		a.deps.Log.WarnContext(ctx, "cannot look up an invitation after a sign-in", "error", err)
		return nil
	}
	offer, ok, err := a.deps.Accounts.Offer(ctx, p, token)
	if err != nil {
		a.deps.Log.WarnContext(ctx, "cannot look up an invitation after a sign-in", "error", err)
		return nil
	}
	if !ok {
		h.Cookies = append(h.Cookies, a.deps.Cookies.Expired(session.CookieInvite)...)
		return nil
	}
	return &InvitationOffer{Organization: offer.Organization, Role: string(offer.Role)}
}
