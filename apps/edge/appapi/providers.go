package appapi

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/publicv1"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/tenancy"
)

// mobileCallback is the path to which identity providers redirect a browser that shall return to an app.
const mobileCallback = "/auth/oauth-mobile-callback"

// BeginSignIn returns the endpoint that begins a sign-in at an identity provider.
func (a *API) BeginSignIn() route.Endpoint {
	text := &huma.Schema{Type: huma.TypeString}
	d := described(describe(tagSignIn, "Begin a sign-in at an identity provider", 400, 403, 404, 429),
		"The answer is the address at the provider as text. With a session the identity will be linked to its person.")
	d.Parameters = []*huma.Param{
		{
			Name: "provider", In: "path", Required: true, Schema: text,
			Description: "GITHUB, GOOGLE or GENERIC, as the instance is configured.",
		},
		{
			Name: "redirect_uri", In: "query", Schema: text,
			Description: "Callback of the dashboard or of " + mobileCallback + "; without it the instance's own.",
		},
	}
	return route.Raw(d, a.beginSignIn,
		route.Content(http.StatusOK, "The address; cookie oauth_state.", fiber.MIMETextPlain, text))
}

func (a *API) beginSignIn(c *fiber.Ctx) error {
	info := request.From(c.Context())
	if err := a.admitSource(c.UserContext(), a.buckets.provider, info.From); err != nil {
		return err
	}
	callback := c.Query("redirect_uri")
	if err := a.checkCallback(callback); err != nil {
		return err
	}
	address, state, err := a.deps.Accounts.BeginSignIn(c.UserContext(), c.Params("provider"), callback, info.Principal)
	if err != nil {
		return err
	}
	addCookies(c, a.cookie(cookieState, state, tenancy.SignInStateLife))
	return c.SendString(address)
}

// maxCallback is the greatest length of the address of a callback in bytes.
const maxCallback = 1000

// checkCallback returns Invalid for the address of a callback at which neither the dashboard nor this service is.
func (a *API) checkCallback(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err == nil && len(address) <= maxCallback && u.User == nil && slices.Contains(a.cfg.Origins, u.Scheme+"://"+strings.ToLower(u.Host)) {
		return nil
	}
	return &fault.Error{Kind: fault.Invalid, Op: "appapi.checkCallback", Message: "The request is not valid.",
		Fields: []fault.Field{{Name: "redirect_uri", Message: "must be an address of the dashboard or of this service, " +
			"of at most 1000 characters"}}}
}

// ProviderCallback is the body of POST /auth/oauth/{provider}/exists: what the browser brought back.
type ProviderCallback struct {
	Code        string `json:"code" minLength:"1" maxLength:"4096"`
	State       string `json:"state" minLength:"1" maxLength:"512"`
	Issuer      string `json:"iss,omitempty" maxLength:"512" doc:"The parameter iss of the callback, if any."`
	RedirectURI string `json:"redirect_uri,omitempty" maxLength:"1000" doc:"As in the beginning."`
}

type providerInput struct {
	BrowserCookies
	Provider string `path:"provider"`
	State    string `cookie:"oauth_state" doc:"Of the beginning in the same browser."`
	Body     ProviderCallback
}

// ProviderAnswer is the answer to a callback: a token for a registration, or a sign-in.
type ProviderAnswer struct {
	Token  string `json:"token,omitempty" doc:"There is no account: register with it as providerToken."`
	Linked bool   `json:"linked,omitempty" doc:"The identity was linked to the person of the session."`
	Login  *bool  `json:"login,omitempty" doc:"Whether the sign-in is complete; not with token."`
	SignInStep
}

type providerOutput struct {
	SignInHeaders
	Body ProviderAnswer
}

// FinishSignIn returns the endpoint that completes a sign-in at an identity provider.
func (a *API) FinishSignIn() route.Endpoint {
	return route.JSON(described(created(tagSignIn, "Complete a sign-in at an identity provider",
		400, 403, 404, 409, 413, 429), "Needs the cookie oauth_state. A state works once, for 10 minutes."),
		a.finishSignIn)
}

func (a *API) finishSignIn(ctx context.Context, in *providerInput) (*providerOutput, error) {
	if err := a.admitClient(ctx, a.buckets.provider); err != nil {
		return nil, err
	}
	if err := a.checkCallback(in.Body.RedirectURI); err != nil {
		return nil, err
	}
	signIn, err := a.deps.Accounts.FinishSignIn(ctx, in.Provider, tenancy.Callback{
		Code: in.Body.Code, State: in.Body.State, Cookie: in.State, Issuer: in.Body.Issuer,
		RedirectURI: in.Body.RedirectURI, From: request.From(ctx).From,
	}, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &providerOutput{}
	switch {
	case signIn.Claim != "":
		out.Body.Token = signIn.Claim
	case signIn.Linked && signIn.Session == "":
		out.Body.Linked, out.Body.Login = true, isDone(signIn.SignIn)
	default:
		out.SignInHeaders, out.Body.SignInStep, err = a.signInAnswer(ctx, signIn.SignIn, in.BrowserCookies)
		if err != nil {
			return nil, err
		}
		out.Body.Linked, out.Body.Login = signIn.Linked, isDone(signIn.SignIn)
	}
	out.Cookies = append(out.Cookies, a.expired(cookieState)...)
	return out, nil
}

// AppCallback returns the endpoint that hands the callback of an identity provider to an app.
func (a *API) AppCallback() route.Endpoint {
	text := &huma.Schema{Type: huma.TypeString}
	d := describe(tagSignIn, "Return from an identity provider to the app", 404)
	for _, name := range callbackParameters {
		d.Parameters = append(d.Parameters, &huma.Param{Name: name, In: "query", Schema: text})
	}
	return route.Raw(d, a.appCallback,
		route.Content(http.StatusFound, "To MOBILE_APP_SCHEME with these parameters.", "", nil))
}

// callbackParameters are those of a callback that an app needs: a success has the first two (RFC 6749), with iss of
// RFC 9207, and a refusal has error and state.
var callbackParameters = [...]string{"code", "state", "iss", "error"}

// appCallback redirects to the app. It is NotFound on an instance without one.
func (a *API) appCallback(c *fiber.Ctx) error {
	if a.cfg.MobileScheme == "" {
		return fault.New(fault.NotFound, "appapi.appCallback", "This instance has no app.")
	}
	query := url.Values{}
	for _, name := range callbackParameters {
		if value := c.Query(name); value != "" {
			query.Set(name, value)
		}
	}
	return c.Redirect(a.cfg.MobileScheme+"?"+query.Encode(), http.StatusFound)
}

// IdentityRecord is an account at an identity provider.
type IdentityRecord struct {
	ID        string `json:"id"`
	Provider  string `json:"provider" example:"GITHUB"`
	CreatedAt string `json:"createdAt" format:"date-time"`
}

type identitiesOutput struct{ Body []IdentityRecord }

// Identities returns the endpoint that lists the identities with which the person can sign in.
func (a *API) Identities() route.Endpoint {
	return route.JSON(describe(tagSecurity, "List the identities with which you can sign in"), a.identities)
}

func (a *API) identities(ctx context.Context, _ *struct{}) (*identitiesOutput, error) {
	list, err := a.deps.Accounts.Identities(ctx, request.Principal(ctx))
	if err != nil {
		return nil, err
	}
	out := &identitiesOutput{Body: make([]IdentityRecord, 0, len(list))}
	for _, i := range list {
		out.Body = append(out.Body, IdentityRecord{
			ID: i.ID.String(), Provider: i.Provider, CreatedAt: publicv1.FormatTime(i.CreatedAt),
		})
	}
	return out, nil
}

// UnlinkIdentity returns the endpoint that ends the sign-in with an identity.
func (a *API) UnlinkIdentity() route.Endpoint {
	return route.JSON(described(describe(tagSecurity, "Unlink an identity", 404, 409),
		"An answer of 409 means that you could not sign in any more: choose a password first."), a.unlinkIdentity)
}

func (a *API) unlinkIdentity(ctx context.Context, in *pathID) (*idOutput, error) {
	if err := a.deps.Accounts.UnlinkIdentity(ctx, request.Principal(ctx), in.ID); err != nil {
		return nil, err
	}
	return &idOutput{Body: IDAnswer(*in)}, nil
}
