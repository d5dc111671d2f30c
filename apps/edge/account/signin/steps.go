package signin

import (
	"cmp"
	"context"

	"crier/apps/edge/admission"
	"crier/apps/edge/request"
	"crier/apps/edge/session"
	"crier/platform/fault"
	"crier/tenancy"
)

// Steps performs the steps of a sign-in and enforces their limits. An API's endpoints and the
// sign-in pages call its methods. ctx must belong to the request; see request.Attach.
type Steps struct{ deps Deps }

// Steps returns the steps that the endpoints perform.
func (a *API) Steps() Steps { return Steps{deps: a.deps} }

// CheckPassword signs a person in with an email address and a password. After failed logins, it
// returns RateLimited while the client has to wait. It also returns RateLimited while the client's
// site has to wait before trying this account again.
func (a Steps) CheckPassword(ctx context.Context, in LoginUserDto) (tenancy.SignIn, error) {
	email, err := in.validate()
	if err != nil {
		return tenancy.SignIn{}, err
	}
	from := request.From(ctx).From
	release, err := a.deps.Gate.Logins.WaitTurn(ctx, from.Client)
	if err != nil {
		a.deps.Gate.LogFailure(ctx, "login refused", email, err)
		return tenancy.SignIn{}, err
	}
	defer release()
	forgive, wait := a.deps.Gate.Logins.Begin(ctx, a.deps.Gate.KeysOf(ctx, email, from))
	if wait > 0 {
		err := admission.TooManyFailures("signin.login", "Too many failed sign-ins. Wait before you try again.", wait)
		a.deps.Gate.LogFailure(ctx, "login refused", email, err)
		return tenancy.SignIn{}, err
	}
	signIn, err := a.deps.Accounts.Login(ctx, email, in.Password, from)
	if !fault.Is(err, fault.Invalid) { // only a wrong email address or password counts as a failure
		forgive(context.WithoutCancel(ctx))
	}
	if err != nil {
		a.deps.Gate.LogFailure(ctx, "login failed", email, err)
		return tenancy.SignIn{}, err
	}
	return signIn, nil
}

// CheckFactor uses a code or a recovery code to complete a sign-in that has reached StepMFA. It
// returns Unauthenticated for a wrong code, and RateLimited after too many attempts.
func (a Steps) CheckFactor(ctx context.Context, in MFAVerifyRequest) (tenancy.SignIn, error) {
	if err := a.deps.Gate.AdmitClient(ctx, a.deps.Gate.Buckets.Factor); err != nil {
		return tenancy.SignIn{}, err
	}
	var faults tenancy.Inputs
	faults.Check((in.Code == "") != (in.RecoveryCode == ""), "code", "or recoveryCode is required, but not both")
	if err := faults.Err("signin.verifyMFA"); err != nil {
		return tenancy.SignIn{}, err
	}
	signIn, err := a.deps.Accounts.VerifyMFA(ctx, in.Token, in.Code, in.RecoveryCode, request.From(ctx).From)
	if err != nil {
		a.deps.Log.WarnContext(ctx, "second factor refused",
			"client", request.From(ctx).From.Client, "error", err)
	}
	return signIn, err
}

// StartEnrollment creates a second factor for a sign-in that has reached StepEnroll. It returns
// Unauthenticated if the token has expired.
func (a Steps) StartEnrollment(ctx context.Context, token string) (tenancy.Secret, error) {
	if err := a.deps.Gate.AdmitClient(ctx, a.deps.Gate.Buckets.Factor); err != nil {
		return tenancy.Secret{}, err
	}
	return a.deps.Accounts.BeginEnrollment(ctx, token)
}

// FinishEnrollment uses the new second factor's first code to complete a sign-in that has reached
// StepEnroll.
func (a Steps) FinishEnrollment(ctx context.Context, in MFAEnrollRequest) (tenancy.SignIn, error) {
	if err := a.deps.Gate.AdmitClient(ctx, a.deps.Gate.Buckets.Factor); err != nil {
		return tenancy.SignIn{}, err
	}
	return a.deps.Accounts.ConfirmEnrollment(ctx, in.Token, in.Code, request.From(ctx).From)
}

// RestoreAccount completes a sign-in that has reached StepRestore.
func (a Steps) RestoreAccount(ctx context.Context, token string) (tenancy.SignIn, error) {
	if err := a.deps.Gate.AdmitLink(ctx, token); err != nil {
		return tenancy.SignIn{}, err
	}
	return a.deps.Accounts.Restore(ctx, token, request.From(ctx).From)
}

// ResendLink resends a registration email. Its result does not reveal whether the address has a
// pending registration.
func (a Steps) ResendLink(ctx context.Context, email string) error {
	none := func(context.Context, string) bool { return false }
	return a.deps.Gate.MailTo(ctx, a.deps.Gate.Buckets.ResendAddress, none, email, a.deps.Accounts.ResendActivation)
}

// StartProvider begins a sign-in with an identity provider, which redirects to callback afterward.
// It returns the provider's URL and the state to store in the browser.
func (a Steps) StartProvider(ctx context.Context, provider, callback string) (address, state string, err error) {
	if err := a.deps.Gate.AdmitClient(ctx, a.deps.Gate.Buckets.Provider); err != nil {
		return "", "", err
	}
	return a.deps.Accounts.BeginSignIn(ctx, provider, callback, tenancy.Principal{})
}

// FinishProvider completes a sign-in that StartProvider began.
func (a Steps) FinishProvider(ctx context.Context, provider string, back tenancy.Callback) (
	tenancy.ProviderSignIn, error) {
	if err := a.deps.Gate.AdmitClient(ctx, a.deps.Gate.Buckets.Provider); err != nil {
		return tenancy.ProviderSignIn{}, err
	}
	back.From = request.From(ctx).From
	return a.deps.Accounts.FinishSignIn(ctx, provider, back, tenancy.Principal{})
}

// Complete returns the headers for a completed sign-in. It ends the browser's previous session,
// because another site may have planted that session's cookie.
func (a Steps) Complete(ctx context.Context, s tenancy.SignIn, b BrowserCookies) (SignInHeaders, error) {
	if b.Auth != "" {
		if err := a.deps.Accounts.Logout(ctx, b.Auth, request.From(ctx).From); err != nil {
			return SignInHeaders{}, err
		}
	}
	h := SignInHeaders{Cookies: a.deps.Cookies.Cookie(session.CookieAuth, s.Session, session.SessionLife)}
	// Set the device cookie in a new browser, or renew it in a known one.
	if device := cmp.Or(s.Device, request.From(ctx).From.Device); device != "" {
		h.Cookies = append(h.Cookies, a.deps.Cookies.Cookie(session.CookieDevice, device, tenancy.DeviceMemory)...)
	}
	if b.Person != "" {
		h.Cookies = append(h.Cookies, a.deps.Cookies.Expired(session.CookiePerson)...)
	}
	if !s.Org.IsZero() {
		h.Cookies = append(h.Cookies, a.deps.Cookies.Cookie(session.CookieOrg, s.Org.String(), session.SessionLife)...)
	}
	if s.Onboarding {
		h.Onboarding = "true"
	} else {
		h.Reload = "true"
	}
	return h, nil
}
