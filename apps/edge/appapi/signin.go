package appapi

import (
	"cmp"
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"crier/apps/edge/publicv1"
	"crier/apps/edge/request"
	"crier/platform/fault"
	"crier/tenancy"
)

const tagSignIn = "Sign-in"

// BrowserCookies are the cookies that a sign-in reads.
type BrowserCookies struct {
	Auth       string `cookie:"auth" doc:"The session that the browser had before. It ends when a new one begins."`
	Invitation string `cookie:"org" doc:"Token of an invitation, which is used when the sign-in is complete."`
	Person     string `cookie:"impersonate" doc:"Deleted when the sign-in is complete."`
}

// SignInHeaders are the headers of an answer that can begin a session.
type SignInHeaders struct {
	Cookies    []string `header:"Set-Cookie" doc:"auth, device and showorg of a complete sign-in."`
	Reload     string   `header:"reload" doc:"true when somebody has signed in again."`
	Onboarding string   `header:"onboarding" doc:"true when a new person has signed in."`
	Activate   string   `header:"activate" doc:"true when a link in a mail must be followed first."`
}

// SignInStep are the members of an answer to a sign-in that is not complete, and the recovery codes of one that is.
type SignInStep struct {
	MFARequired           bool     `json:"mfaRequired,omitempty" doc:"Send a code to /auth/mfa/verify."`
	MFAEnrollmentRequired bool     `json:"mfaEnrollmentRequired,omitempty" doc:"See /auth/mfa/enroll/begin."`
	MFAToken              string   `json:"mfaToken,omitempty" doc:"For these routes; works for 5 minutes."`
	Methods               []string `json:"methods,omitempty" enum:"totp,recovery" doc:"What /auth/mfa/verify accepts."`
	DeletionRequested     bool     `json:"deletionRequested,omitempty" doc:"/auth/restore undoes it."`
	RestoreToken          string   `json:"restoreToken,omitempty" doc:"For /auth/restore."`
	Until                 string   `json:"until,omitempty" format:"date-time" doc:"When the account will be gone."`
	RecoveryCodes         []string `json:"recoveryCodes,omitempty" doc:"Shown only here. Each works once."`
}

func newSignInStep(s tenancy.SignIn) SignInStep {
	out := SignInStep{RecoveryCodes: s.RecoveryCodes}
	switch s.Step {
	case tenancy.StepMFA:
		out.MFARequired, out.MFAToken, out.Methods = true, s.Token, []string{"totp", "recovery"}
	case tenancy.StepEnroll:
		out.MFAEnrollmentRequired, out.MFAToken = true, s.Token
	case tenancy.StepRestore:
		out.DeletionRequested, out.RestoreToken, out.Until = true, s.Token, publicv1.FormatTime(s.Until)
	}
	return out
}

// LoginAnswer is the answer to a step of a sign-in. The session is in the cookie auth.
type LoginAnswer struct {
	Login bool `json:"login" doc:"Whether the sign-in is complete."`
	SignInStep
}

type loginOutput struct {
	SignInHeaders
	Body LoginAnswer
}

// loginAnswer returns the answer to a step of a sign-in.
func (a *API) loginAnswer(ctx context.Context, s tenancy.SignIn, b BrowserCookies) (*loginOutput, error) {
	headers, err := a.signInHeaders(ctx, s, b)
	if err != nil {
		return nil, err
	}
	body := LoginAnswer{Login: s.Step == tenancy.StepDone, SignInStep: newSignInStep(s)}
	return &loginOutput{SignInHeaders: headers, Body: body}, nil
}

// signInHeaders returns the headers of a step of a sign-in. When the sign-in is complete, it ends the session that the
// browser had before: another site may have planted it there. Then it uses the invitation of the browser.
func (a *API) signInHeaders(ctx context.Context, s tenancy.SignIn, b BrowserCookies) (SignInHeaders, error) {
	switch s.Step {
	case tenancy.StepDone:
	case tenancy.StepConfirm:
		h := SignInHeaders{Activate: "true"}
		if s.Device != "" { // by which Activate recognizes the browser
			h.Cookies = a.cookie(cookieDevice, s.Device, tenancy.DeviceMemory)
		}
		return h, nil
	default:
		return SignInHeaders{}, nil
	}
	if b.Auth != "" {
		if err := a.deps.Accounts.Logout(ctx, b.Auth, request.From(ctx).From); err != nil {
			return SignInHeaders{}, err
		}
	}
	h := SignInHeaders{Cookies: a.cookie(cookieAuth, s.Session, sessionLife)}
	if device := cmp.Or(s.Device, request.From(ctx).From.Device); device != "" { // a known browser is known for longer
		h.Cookies = append(h.Cookies, a.cookie(cookieDevice, device, tenancy.DeviceMemory)...)
	}
	if b.Person != "" {
		h.Cookies = append(h.Cookies, a.expired(cookiePerson)...)
	}
	h.Cookies = append(h.Cookies, a.invitationCookies(ctx, s, b.Invitation)...)
	if s.Onboarding {
		h.Onboarding = "true"
	} else {
		h.Reload = "true"
	}
	return h, nil
}

// invitationCookies uses the invitation of a browser whose person has signed in, unless the sign-in has used one. It
// returns the cookies that choose the organization and delete the invitation. An invitation that is refused is deleted
// too; one that could not be used now stays for the next sign-in.
func (a *API) invitationCookies(ctx context.Context, s tenancy.SignIn, token string) []string {
	org := s.Org
	if org.IsZero() && token != "" {
		var err error
		org, err = a.join(ctx, s.Session, token)
		switch fault.KindOf(err) {
		case "", fault.Forbidden, fault.Quota, fault.Conflict, fault.NotFound, fault.Invalid:
		default:
			a.deps.Log.WarnContext(ctx, "an invitation could not be used after a sign-in", "error", err)
			return nil
		}
	}
	var cookies []string
	if !org.IsZero() {
		cookies = append(cookies, a.cookie(cookieOrg, org.String(), sessionLife)...)
	}
	if token != "" {
		cookies = append(cookies, a.expired(cookieInvite)...)
	}
	return cookies
}

// join lets the person of a session token use an invitation.
func (a *API) join(ctx context.Context, session, token string) (tenancy.OrgID, error) {
	from := request.From(ctx).From
	p, err := a.deps.Accounts.Session(ctx, session, "", "", from)
	if err != nil {
		return tenancy.OrgID{}, err
	}
	p.From = from
	return a.deps.Accounts.JoinOrganization(ctx, p, token)
}

// created returns the description of a POST endpoint. See describe.
func created(tag, summary string, errors ...int) huma.Operation {
	d := describe(tag, summary, errors...)
	d.DefaultStatus = http.StatusCreated
	return d
}

// described returns the description with a text of more than its summary.
func described(d huma.Operation, text string) huma.Operation {
	d.Description = text
	return d
}
