package signin

import (
	"context"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/tenancy"
)

// SignUp registers people and recovers accounts for people who are not signed in. Unless a method's
// comment says otherwise, its result does not reveal whether the address has an account.
type SignUp interface {
	// CanRegister reports whether a person without an invitation can register.
	CanRegister(ctx context.Context) (bool, error)
	// Register starts a registration. If the instance sends email, the result is StepConfirm for
	// every address; otherwise, the result is a session. In addition to the usual input checks,
	// Register returns Invalid if
	//
	//   - the instance accepts no registrations, or requires an invitation and none was given
	//   - the invitation is invalid or is for a different address
	//   - the instance sends no email and the address is already in use
	Register(ctx context.Context, r tenancy.Registration) (tenancy.SignIn, error)
	// Activate completes the registration that the code from a link identifies. ok is false if the
	// link is invalid or has been used, or if the address now has an account. If the registration's
	// password is required but missing, ok is also false, the step is StepPassword, and the link
	// stays valid.
	Activate(ctx context.Context, code, password string, from tenancy.Source) (s tenancy.SignIn, ok bool, err error)
	// ResendActivation resends the link for the most recent registration with this address, if
	// there is one.
	ResendActivation(ctx context.Context, email string) error
	// Forgot emails a link for setting a new password, if an account has this address.
	Forgot(ctx context.Context, email string) error
	// ResetPassword sets the password of the person to whom the link was sent, and ends all of that
	// person's sessions. It returns false if the link is invalid or has already been used.
	ResetPassword(ctx context.Context, token, password string, from tenancy.Source) (bool, error)
	// ConfirmAddress processes one of the two links that confirm a new email address. done reports
	// whether the address has changed. ConfirmAddress returns NotFound if the link is no longer
	// valid, and Conflict if another account has taken the address in the meantime.
	ConfirmAddress(ctx context.Context, token string, from tenancy.Source) (done bool, err error)
}

// CanRegister returns the endpoint that reports whether people without an invitation can register.
func (a *API) CanRegister() route.Endpoint {
	return route.JSON(route.Describe("Sign-in", "Check whether the instance accepts registrations"), a.canRegister)
}

// CanRegisterResponse indicates whether people without an invitation can register.
type CanRegisterResponse struct {
	Register bool `json:"register"`
}

type canRegisterOutput struct{ Body CanRegisterResponse }

func (a *API) canRegister(ctx context.Context, _ *struct{}) (*canRegisterOutput, error) {
	can, err := a.deps.Accounts.CanRegister(ctx)
	if err != nil {
		return nil, err
	}
	return &canRegisterOutput{Body: CanRegisterResponse{Register: can}}, nil
}

// CreateOrgUserDto is the body of POST /auth/register.
type CreateOrgUserDto struct {
	Provider      string `json:"provider,omitempty" maxLength:"32" doc:"LOCAL, or the provider that issued providerToken."`
	Email         string `json:"email,omitempty" maxLength:"254" doc:"Not allowed with providerToken."`
	Password      string `json:"password,omitempty" maxLength:"128" doc:"8 to 128 characters. Not allowed with providerToken."`
	ProviderToken string `json:"providerToken,omitempty" maxLength:"512" doc:"Token from POST /auth/oauth/{provider}/exists."`
	Company       string `json:"company,omitempty" maxLength:"256" doc:"Name of the organization, 3 to 128 characters." example:"Acme"`
	Name          string `json:"fullname,omitempty" maxLength:"256" doc:"Name of the person." example:"Ada Lovelace"`
	Invitation    string `json:"org,omitempty" maxLength:"512" doc:"Token of the invitation that the person accepts."`
}

type registerInput struct {
	BrowserCookies
	Body CreateOrgUserDto
}

// RegisterResponse is the response to a registration.
type RegisterResponse struct {
	Register bool  `json:"register,omitempty" doc:"true if the account exists."`
	Activate bool  `json:"activate,omitempty" doc:"true if the person must follow the link in an email next."`
	Login    *bool `json:"login,omitempty" doc:"Whether the sign-in is complete; only set if the account exists."`
	SignInStep
}

type registerOutput struct {
	SignInHeaders
	Body RegisterResponse
}

// Register returns the endpoint that registers a person.
func (a *API) Register() route.Endpoint {
	return route.JSON(route.Described(route.Created("Sign-in", "Register", 400, 402, 403, 413, 429),
		"On an instance that sends emails, the response always contains activate: true, whether or not the address has "+
			"an account, and an email is sent to the address. With an invitation, the organization name is ignored. "+
			"400 can also mean that the instance accepts no registrations, or only those with an invitation. The "+
			"invitation in the cookie org is not accepted; it is returned when the sign-in is complete."), a.register)
}

func (a *API) register(ctx context.Context, in *registerInput) (*registerOutput, error) {
	if err := a.deps.Gate.AdmitClient(ctx, a.deps.Gate.Buckets.SignUp); err != nil {
		return nil, err
	}
	r, err := in.registration()
	if err != nil {
		return nil, err
	}
	if r.Email != "" {
		if err := a.deps.Gate.AdmitAddress(ctx, a.deps.Gate.Buckets.SignUpAddress, r.Email); err != nil {
			return nil, err
		}
	}
	r.From = request.From(ctx).From
	signIn, err := a.deps.Accounts.Register(ctx, r)
	if err != nil {
		return nil, err
	}
	headers, step, err := a.signInAnswer(ctx, signIn, in.BrowserCookies)
	if err != nil {
		return nil, err
	}
	body := RegisterResponse{SignInStep: step}
	if signIn.Step == tenancy.StepConfirm {
		body.Activate = true
	} else {
		body.Register, body.Login = true, isDone(signIn)
	}
	return &registerOutput{SignInHeaders: headers, Body: body}, nil
}

func isDone(s tenancy.SignIn) *bool {
	done := s.Step == tenancy.StepDone
	return &done
}

// registration converts the request to the use case's input. It returns Invalid unless the body has
// either an email address and a password, or a provider's token. The use case checks everything
// else.
func (in *registerInput) registration() (tenancy.Registration, error) {
	b := in.Body
	var faults tenancy.Inputs
	local := b.Provider == "" || b.Provider == "LOCAL"
	if b.ProviderToken == "" {
		faults.Check(local, "providerToken", "is required with a provider")
		b.Email = faults.Email("email", b.Email)
		faults.Password("password", b.Password)
	} else {
		faults.Check(!local, "provider", "must be the provider that issued providerToken")
		b.Email, b.Password = "", ""
	}
	return tenancy.Registration{
		Email: b.Email, Name: b.Name, Password: b.Password, Organization: b.Company,
		Invitation: b.Invitation, Provider: b.ProviderToken,
	}, faults.Err("signin.register")
}

// ActivateRequest is the body of POST /auth/activate.
type ActivateRequest struct {
	Code     string `json:"code" minLength:"1" maxLength:"512" doc:"Code from the link in the email."`
	Password string `json:"password,omitempty" maxLength:"512" doc:"The password chosen at registration; required if an earlier response had passwordRequired."`
}

type activateInput struct {
	BrowserCookies
	Body ActivateRequest
}

// ActivateResponse is the response to POST /auth/activate.
type ActivateResponse struct {
	Can   bool  `json:"can" doc:"Whether the account now exists; false if the link has expired or was already used."`
	Login *bool `json:"login,omitempty" doc:"Whether the sign-in is complete; only set if can is true."`
	// PasswordRequired is set if the link was opened in a different browser from the one used to
	// register.
	PasswordRequired bool `json:"passwordRequired,omitempty" doc:"true if the code must be sent again, together with the password."`
	SignInStep
}

type activateOutput struct {
	SignInHeaders
	Body ActivateResponse
}

// Activate returns the endpoint that completes a registration with the code from the emailed link.
func (a *API) Activate() route.Endpoint {
	return route.JSON(route.Described(route.Created("Sign-in", "Complete a registration", 400, 402, 403, 413, 429),
		"The password chosen at registration is also required if the request comes from a different browser than the "+
			"registration, that is, without the same cookie device. If the password is missing, the response contains "+
			"passwordRequired: true, and the code stays valid."), a.activate)
}

func (a *API) activate(ctx context.Context, in *activateInput) (*activateOutput, error) {
	if err := a.deps.Gate.AdmitLink(ctx, in.Body.Code); err != nil {
		return nil, err
	}
	signIn, ok, err := a.deps.Accounts.Activate(ctx, in.Body.Code, in.Body.Password, request.From(ctx).From)
	if err != nil {
		return nil, err
	}
	if !ok {
		return &activateOutput{Body: ActivateResponse{PasswordRequired: signIn.Step == tenancy.StepPassword}}, nil
	}
	headers, step, err := a.signInAnswer(ctx, signIn, in.BrowserCookies)
	if err != nil {
		return nil, err
	}
	body := ActivateResponse{Can: true, Login: isDone(signIn), SignInStep: step}
	return &activateOutput{SignInHeaders: headers, Body: body}, nil
}

// ResendActivationDto is the body of POST /auth/resend-activation.
type ResendActivationDto struct {
	Email string `json:"email" maxLength:"254" example:"ada@example.org"`
}

type resendInput struct{ Body ResendActivationDto }

// Success is the response to POST /auth/resend-activation. It does not reveal whether the address
// has a pending registration.
type Success struct {
	Success bool `json:"success" doc:"Always true, whether or not the email address has a pending registration."`
}

type resendOutput struct{ Body Success }

// ResendActivation returns the endpoint that resends a registration email.
func (a *API) ResendActivation() route.Endpoint {
	return route.JSON(route.Created("Sign-in", "Resend the activation email", 400, 403, 413, 429), a.resend)
}

func (a *API) resend(ctx context.Context, in *resendInput) (*resendOutput, error) {
	if err := a.Steps().ResendLink(ctx, in.Body.Email); err != nil {
		return nil, err
	}
	return &resendOutput{Body: Success{Success: true}}, nil
}
