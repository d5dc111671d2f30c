package edgetest

import (
	"context"

	"crier/platform/fault"
	"crier/tenancy"
)

// LoginBody is the body of a successful log-in, WrongLoginBody the body of a failing one, and
// RegistrationBody the body of a registration.
const (
	LoginBody        = `{"provider":"LOCAL","email":" Ada@Example.org","password":"right"}`
	WrongLoginBody   = `{"email":"ada@example.org","password":"wrong"}`
	RegistrationBody = `{"provider":"LOCAL","email":" Ada@Example.org","password":"correct horse","company":"Acme","fullname":"Ada"}`
)

// SignIn is a request that completes a sign-in.
type SignIn struct {
	Path, Body string
	Done       string // the beginning of the response's body if the sign-in is complete
}

// SignIns returns one request that completes a sign-in for each route that can.
func SignIns() map[string]SignIn {
	return map[string]SignIn{
		"log-in": {Path: "/auth/login", Body: LoginBody, Done: `{"login":true`},
		"verify": {Path: "/auth/mfa/verify", Body: `{"mfaToken":"t","code":"123456"}`, Done: `{"login":true`},
		"enrol": {
			Path: "/auth/mfa/enroll/confirm", Body: `{"mfaToken":"t","code":"123456"}`, Done: `{"login":true`,
		},
		"restore":      {Path: "/auth/restore", Body: `{"token":"t"}`, Done: `{"login":true`},
		"provider":     {Path: "/auth/oauth/GITHUB/exists", Body: `{"code":"c","state":"s"}`, Done: `{"login":true`},
		"activation":   {Path: "/auth/activate", Body: `{"code":"c"}`, Done: `{"can":true,"login":true`},
		"registration": {Path: "/auth/register", Body: RegistrationBody, Done: `{"register":true,"login":true`},
	}
}

func (a accounts) CanRegister(context.Context) (bool, error) {
	return !a.Private.Load(), a.record("CanRegister")
}

func (a accounts) Register(_ context.Context, r tenancy.Registration) (tenancy.SignIn, error) {
	return a.signed("Register", r.From, r.Email, r.Name, r.Password, r.Organization, r.Invitation, r.Provider)
}

func (a accounts) Activate(
	_ context.Context, code, password string, from tenancy.Source,
) (tenancy.SignIn, bool, error) {
	if code == "another-browser" && password == "" {
		return tenancy.SignIn{Step: tenancy.StepPassword}, false, a.record("Activate", code)
	}
	s, err := a.signed("Activate", from, code)
	return s, code != "used", err
}

func (a accounts) ResendActivation(_ context.Context, email string) error {
	return a.record("ResendActivation", email)
}

func (a accounts) Forgot(_ context.Context, email string) error { return a.record("Forgot", email) }

func (a accounts) ResetPassword(_ context.Context, token, password string, _ tenancy.Source) (bool, error) {
	return token != "used-token", a.record("ResetPassword", token, password)
}

func (a accounts) ConfirmAddress(_ context.Context, token string, _ tenancy.Source) (bool, error) {
	return true, a.record("ConfirmAddress", token)
}

func (a accounts) Login(_ context.Context, email, password string, from tenancy.Source) (tenancy.SignIn, error) {
	if err := sql(email); err != nil {
		return tenancy.SignIn{}, err
	}
	switch password {
	case "site":
		return tenancy.SignIn{}, fault.New(fault.Invalid, "fake", "The site is "+from.Site+".")
	case "slow":
		a.Entering <- email
		<-a.Release
	case "unavailable":
		return tenancy.SignIn{}, fault.New(fault.Unavailable, "fake", "The service is not available.")
	}
	if email != Ada || password != "right" {
		return tenancy.SignIn{}, fault.New(fault.Invalid, "fake", "The e-mail address or the password is wrong.")
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	a.From = from
	return a.signIn, nil
}

func (a accounts) KnownDevice(_ context.Context, email string, from tenancy.Source) (bool, error) {
	if from.Device == "broken-device" {
		return false, fault.New(fault.Unavailable, "fake", "The service is not available.")
	}
	return email == Ada && from.Device == "known-device", nil
}

func (a accounts) VerifyMFA(
	_ context.Context, token, code, recovery string, from tenancy.Source,
) (tenancy.SignIn, error) {
	return a.signed("VerifyMFA", from, token, code, recovery)
}

func (a accounts) BeginEnrollment(_ context.Context, token string) (tenancy.Secret, error) {
	return tenancy.Secret{Text: "SECRET", URL: "otpauth://totp/x"}, a.record("BeginEnrollment", token)
}

func (a accounts) ConfirmEnrollment(
	_ context.Context, token, code string, from tenancy.Source,
) (tenancy.SignIn, error) {
	return a.signed("ConfirmEnrollment", from, token, code)
}

func (a accounts) Restore(_ context.Context, token string, from tenancy.Source) (tenancy.SignIn, error) {
	return a.signed("Restore", from, token)
}

func (a accounts) BeginSignIn(
	_ context.Context, provider, redirectURI string, p tenancy.Principal,
) (string, string, error) {
	if provider == "APPLE" {
		return "", "", fault.New(fault.NotFound, "fake", "There is no such provider.")
	}
	return "https://provider.test/authorize?x=1", NewToken, a.record("BeginSignIn", provider, redirectURI, p.Name)
}

func (a accounts) FinishSignIn(
	_ context.Context, provider string, back tenancy.Callback, p tenancy.Principal,
) (tenancy.ProviderSignIn, error) {
	s, err := a.signed(
		"FinishSignIn", back.From, provider, back.Code, back.State, back.Cookie, back.Issuer, back.RedirectURI, p.Name,
	)
	switch {
	case back.Code == "stranger":
		return tenancy.ProviderSignIn{Claim: NewToken}, err
	case p.Name != "":
		return tenancy.ProviderSignIn{Linked: true}, err
	}
	return tenancy.ProviderSignIn{SignIn: s}, err
}
