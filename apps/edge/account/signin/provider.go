package signin

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/apps/edge/session"
	"crier/platform/fault"
	"crier/tenancy"
)

// Providers signs people in with identity providers.
type Providers interface {
	// BeginSignIn returns the provider's sign-in URL and the state to store in a cookie. p is the
	// principal of the live session, or the zero Principal if there is none. If there is a live
	// session, the sign-in will link the identity to that session's person. BeginSignIn returns
	// NotFound if the instance does not offer the provider.
	BeginSignIn(ctx context.Context, provider, redirectURI string, p tenancy.Principal) (url, state string, err error)
	// FinishSignIn completes the sign-in that callback's state identifies. It returns Invalid if
	// the state belongs to another browser, has expired, or has been used before. It also returns
	// Invalid if the provider rejected the sign-in. p is the principal of the live session, or the
	// zero Principal if there is none.
	FinishSignIn(ctx context.Context, provider string, callback tenancy.Callback, p tenancy.Principal) (
		tenancy.ProviderSignIn, error)
}

// mobileCallback is the path to which an identity provider redirects the browser if the sign-in
// returns to the mobile app.
const mobileCallback = "/auth/oauth-mobile-callback"

// BeginSignIn returns the endpoint that starts a sign-in with an identity provider.
func (a *API) BeginSignIn() route.Endpoint {
	text := &huma.Schema{Type: huma.TypeString}
	d := route.Described(route.Describe("Sign-in", "Start signing in with an identity provider", 400, 403, 404, 429),
		"The response is the provider's URL, as text. With a session, the identity is linked to the person who is "+
			"signed in.")
	d.Parameters = []*huma.Param{
		{
			Name: "provider", In: "path", Required: true, Schema: text,
			Description: "GITHUB, GOOGLE or GENERIC, depending on the instance's configuration.",
		},
		{
			Name: "redirect_uri", In: "query", Schema: text,
			Description: "Callback in the dashboard, or " + mobileCallback + ". If absent, the instance's own callback.",
		},
	}
	return route.Raw(d, a.beginSignIn,
		route.Content(http.StatusOK, "The URL. The cookie oauth_state is set.", fiber.MIMETextPlain, text))
}

func (a *API) beginSignIn(c *fiber.Ctx) error {
	info := request.From(c.Context())
	if err := a.deps.Gate.AdmitSource(c.UserContext(), a.deps.Gate.Buckets.Provider, info.From); err != nil {
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
	session.AddCookies(c, a.deps.Cookies.Cookie(session.CookieState, state, tenancy.SignInStateLife))
	return c.SendString(address)
}

// maxCallback is the maximum length of a callback URL, in bytes.
const maxCallback = 1000

// checkCallback returns Invalid unless address is empty or is a callback URL on the dashboard or on
// this service.
func (a *API) checkCallback(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err == nil && len(address) <= maxCallback && u.User == nil && slices.Contains(a.deps.Origins, u.Scheme+"://"+strings.ToLower(u.Host)) {
		return nil
	}
	return &fault.Error{Kind: fault.Invalid, Op: "signin.checkCallback", Message: "The request is not valid.",
		Fields: []fault.Field{{Name: "redirect_uri", Message: "must be a URL of the dashboard or of this service, " +
			"with at most 1000 characters"}}}
}

// ProviderCallback is the body of POST /auth/oauth/{provider}/exists. It contains the parameters of
// the provider's redirect, and the redirect URL that was set when the sign-in began.
type ProviderCallback struct {
	Code        string `json:"code" minLength:"1" maxLength:"4096"`
	State       string `json:"state" minLength:"1" maxLength:"512"`
	Issuer      string `json:"iss,omitempty" maxLength:"512" doc:"The callback's iss parameter, if any."`
	RedirectURI string `json:"redirect_uri,omitempty" maxLength:"1000" doc:"The redirect URL that was sent when the sign-in started, if any."`
}

type providerInput struct {
	BrowserCookies
	Provider string `path:"provider"`
	State    string `cookie:"oauth_state" doc:"Cookie that was set in the same browser when the sign-in started."`
	Body     ProviderCallback
}

// ProviderResponse is the response to a provider's callback. It contains either a registration
// token or the result of a sign-in.
type ProviderResponse struct {
	Token  string `json:"token,omitempty" doc:"Set if there is no account. Send it as providerToken to register."`
	Linked bool   `json:"linked,omitempty" doc:"true if the identity was linked to the person who is signed in."`
	Login  *bool  `json:"login,omitempty" doc:"Whether the sign-in is complete; absent if token is set."`
	SignInStep
}

type providerOutput struct {
	SignInHeaders
	Body ProviderResponse
}

// FinishSignIn returns the endpoint that completes a sign-in with an identity provider.
func (a *API) FinishSignIn() route.Endpoint {
	return route.JSON(route.Described(route.Created("Sign-in", "Complete a sign-in with an identity provider",
		400, 403, 404, 409, 413, 429), "Requires the cookie oauth_state. A state works once, within 10 minutes."),
		a.finishSignIn)
}

func (a *API) finishSignIn(ctx context.Context, in *providerInput) (*providerOutput, error) {
	if err := a.deps.Gate.AdmitClient(ctx, a.deps.Gate.Buckets.Provider); err != nil {
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
	out.Cookies = append(out.Cookies, a.deps.Cookies.Expired(session.CookieState)...)
	return out, nil
}

// AppCallback returns the endpoint that forwards an identity provider's callback to the mobile app.
func (a *API) AppCallback() route.Endpoint {
	text := &huma.Schema{Type: huma.TypeString}
	d := route.Describe("Sign-in", "Return from an identity provider to the mobile app", 404)
	for _, name := range callbackParameters {
		d.Parameters = append(d.Parameters, &huma.Param{Name: name, In: "query", Schema: text})
	}
	return route.Raw(d, a.appCallback,
		route.Content(http.StatusFound, "Redirect to MOBILE_APP_SCHEME with these parameters.", "", nil))
}

// callbackParameters lists the callback parameters that the mobile app needs. A successful callback
// has code and state (RFC 6749), and possibly iss (RFC 9207). An unsuccessful one has error and
// state.
var callbackParameters = [...]string{"code", "state", "iss", "error"}

// appCallback redirects to the mobile app. It returns NotFound if no app is configured.
func (a *API) appCallback(c *fiber.Ctx) error {
	if a.deps.MobileScheme == "" {
		return fault.New(fault.NotFound, "signin.appCallback", "This instance has no app.")
	}
	query := url.Values{}
	for _, name := range callbackParameters {
		if value := c.Query(name); value != "" {
			query.Set(name, value)
		}
	}
	return c.Redirect(a.deps.MobileScheme+"?"+query.Encode(), http.StatusFound)
}
