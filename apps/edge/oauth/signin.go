package oauth

import (
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/account/signin"
	"crier/apps/edge/page"
	"crier/apps/edge/problem"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/apps/edge/session"
	"crier/platform/fault"
	"crier/platform/secret"
	"crier/tenancy"
)

// The pages to which a sign-in can return.
const (
	pageAuthorize = "authorize"
	pageApps      = "apps"
	pageDevice    = "device"
)

var pagePaths = map[string]string{pageAuthorize: authorizePath, pageApps: appsPath, pageDevice: devicePath}

// signedInParameter is added to the URL of the page to which a sign-in returns. If that page then
// has to show the sign-in page again, the browser keeps no cookies.
const signedInParameter = "signed_in"

// target is the page to which a sign-in returns. Only pageAuthorize has a query.
type target struct {
	page  string
	query query
}

// parseTarget returns the page with the given name. For pageAuthorize, it parses the query from
// raw. ok is false if there is no such page or the query is invalid.
func parseTarget(name, raw string) (to target, ok bool) {
	if pagePaths[name] == "" {
		return target{}, false
	}
	to = target{page: name}
	if name == pageAuthorize {
		to.query, ok = parseQuery(raw)
		return to, ok
	}
	return to, true
}

// signInView holds what the sign-in page shows.
type signInView struct {
	frame
	to target
	// Client is the name of the client that requests access, or "" if there is none.
	Client string
	// Step is password, factor, enroll or restore.
	Step   string
	Notice string
	Action template.URL
	// Again is the URL at which the sign-in starts over.
	Again       template.URL
	Email, Code string
	// Unconfirmed offers to resend a registration's link.
	Unconfirmed bool
	// Token proves that the earlier steps have been completed.
	Token string
	// Secret and SecretURL hold a new second factor's secret, as text and as a URL. SecretLink is
	// the same URL as a link.
	Secret, SecretURL string
	SecretLink        template.URL
	Until             string
	Providers         []providerLink
	// Errors holds a message for each invalid field.
	Errors map[string]string
}

type providerLink struct {
	Label string
	URL   template.URL
}

var stepTitles = map[string]string{
	"password": "Sign in", "factor": "Enter your code", "enroll": "Set up a second factor",
	"restore": "Your account is being deleted",
}

// showSignIn responds with the sign-in page. If view.Step is empty, the page asks for the password.
func (a *site) showSignIn(c *fiber.Ctx, status int, view signInView) error {
	if view.Step == "" {
		view.Step = "password"
	}
	if c.Method() == http.MethodGet && c.Query(signedInParameter) != "" && view.Problem == "" {
		view.Problem = "You are not signed in. If you have just signed in, your browser has not kept the cookie: allow " +
			"cookies for this site, then sign in again."
	}
	view.Title = stepTitles[view.Step]
	view.Action = a.link(signInPath+"/"+view.to.page, view.to.query)
	view.Again = a.link(pagePaths[view.to.page], view.to.query)
	if view.Step == "password" {
		for _, p := range a.deps.Providers {
			at := a.link(signInPath+"/"+view.to.page+"/"+url.PathEscape(p.ID), view.to.query)
			view.Providers = append(view.Providers, providerLink{Label: p.Label, URL: at})
		}
	}
	if strings.HasPrefix(view.SecretURL, "otpauth://totp/") {
		view.SecretLink = template.URL(view.SecretURL)
	}
	return a.send(c, a.signInPage, status, view)
}

// SignIn returns the endpoint to which the sign-in page's form is submitted. It has the same rate
// limits as the endpoints below /auth.
func (a *signIns) SignIn() route.Endpoint {
	d := route.Describe("OAuth server", "Sign in with the form on a page", 400, 401, 403, 404, 413, 429)
	d.Parameters = []*huma.Param{page.PathParam("page", "Page to return to: authorize, apps or device.")}
	d.RequestBody = formBody("step", "email", "password", "token", "code")
	return route.Raw(d, a.signIn, page.Answer("The page, with the next step or with what is wrong."),
		route.Content(http.StatusSeeOther, "The sign-in is complete. The session is set.", "", nil))
}

func (a *signIns) signIn(c *fiber.Ctx) error {
	to, ok := parseTarget(c.Params("page"), string(c.Context().URI().QueryString()))
	if !ok {
		return a.showRefusal(c, fault.New(fault.NotFound, "oauth.signIn", "There is no such page."))
	}
	form, err := readForm(c)
	if err != nil {
		return a.showSignIn(c, http.StatusBadRequest, signInView{to: to, frame: frame{Problem: "The form could not be read. Try again."}})
	}
	view := signInView{to: to, Step: form.Get("step"), Email: form.Get("email"), Token: form.Get("token")}
	ctx, s := contextOf(c), tenancy.SignIn{}
	switch view.Step {
	case "resend":
		return a.resend(c, view)
	case "factor":
		view.Code = form.Get("code")
		s, err = a.checkFactor(c, view)
	case "enroll":
		view.Code, view.Secret, view.SecretURL = form.Get("code"), form.Get("secret"), form.Get("secretUrl")
		in := signin.MFAEnrollRequest{Token: cut(view.Token, 512), Code: cut(view.Code, 16)}
		s, err = a.deps.SignIn.FinishEnrollment(ctx, in)
	case "restore":
		s, err = a.deps.SignIn.RestoreAccount(ctx, cut(view.Token, 512))
	default:
		view.Step = "password"
		s, err = a.deps.SignIn.CheckPassword(ctx, signin.LoginUserDto{Email: view.Email, Password: form.Get("password")})
	}
	if err != nil {
		return a.retrySignIn(c, view, err)
	}
	return a.signedInTo(c, view, s)
}

// checkFactor checks the code that the person entered. Up to 8 digits are a code from the second
// factor. Anything else is a recovery code.
func (a *signIns) checkFactor(c *fiber.Ctx, view signInView) (tenancy.SignIn, error) {
	code := strings.Join(strings.Fields(view.Code), "")
	in := signin.MFAVerifyRequest{Token: cut(view.Token, 512), Code: code}
	if strings.Trim(code, "0123456789") != "" || len(code) > 8 {
		in.Code, in.RecoveryCode = "", cut(code, 64)
	}
	return a.deps.SignIn.CheckFactor(contextOf(c), in)
}

func (a *signIns) resend(c *fiber.Ctx, view signInView) error {
	view.Step = "password"
	if err := a.deps.SignIn.ResendLink(contextOf(c), view.Email); err != nil {
		return a.retrySignIn(c, view, err)
	}
	view.Notice = "If this address has been registered but not confirmed, we have sent the link again. Follow it, then " +
		"sign in here."
	return a.showSignIn(c, http.StatusOK, view)
}

// retrySignIn shows a step again, with the error next to the field that caused it. The form keeps
// what the person entered, except for the password.
func (a *signIns) retrySignIn(c *fiber.Ctx, view signInView, err error) error {
	status, message := page.Problem(c, err)
	view.Errors = fieldErrors(err)
	wrong := fault.Is(err, fault.Invalid) || fault.Is(err, fault.Unauthenticated)
	switch {
	case len(view.Errors) > 0:
	case wrong && (view.Step == "factor" || view.Step == "enroll"):
		view.Errors = map[string]string{"code": message}
	case wrong && view.Step == "password":
		view.Errors, view.Unconfirmed = map[string]string{"password": message}, true
	}
	if view.Errors["email"] == "" && view.Errors["password"] == "" && view.Errors["code"] == "" {
		view.Problem = message
	}
	if wait := problem.Of(err, "").RetryAfter; wait > 0 {
		c.Set(fiber.HeaderRetryAfter, strconv.Itoa(wait))
	}
	return a.showSignIn(c, status, view)
}

// signedInTo shows the next step of a sign-in. If the sign-in is complete, signedInTo returns to
// the page that required it.
func (a *signIns) signedInTo(c *fiber.Ctx, view signInView, s tenancy.SignIn) error {
	next := signInView{to: view.to, Token: s.Token}
	switch s.Step {
	case tenancy.StepMFA:
		next.Step = "factor"
	case tenancy.StepRestore:
		next.Step = "restore"
		if !s.Until.IsZero() {
			next.Until = s.Until.UTC().Format(page.Time)
		}
	case tenancy.StepEnroll:
		created, err := a.deps.SignIn.StartEnrollment(contextOf(c), s.Token)
		if err != nil {
			return a.retrySignIn(c, signInView{to: view.to, Step: "password", Email: view.Email}, err)
		}
		next.Step, next.Secret, next.SecretURL = "enroll", created.Text, created.URL
	case tenancy.StepDone:
		return a.completeSignIn(c, view.to, s)
	default:
		next.Notice = "Follow the link in the email that we have sent you, then sign in here."
	}
	return a.showSignIn(c, http.StatusOK, next)
}

// completeSignIn sets the session cookie and redirects to the page that required the sign-in. If
// there are new recovery codes, it instead shows the codes with a link to that page.
func (a *signIns) completeSignIn(c *fiber.Ctx, to target, s tenancy.SignIn) error {
	headers, err := a.deps.SignIn.Complete(contextOf(c), s, signin.BrowserCookies{
		Auth: c.Cookies(session.CookieAuth), Person: c.Cookies(session.CookiePerson),
	})
	if err != nil {
		return a.showRefusal(c, err)
	}
	session.AddCookies(c, headers.Cookies)
	next := a.path(pagePaths[to.page], to.query.with(signedInParameter, "1"))
	if len(s.RecoveryCodes) > 0 {
		return a.send(c, a.messagePage, http.StatusOK, messageView{
			frame: frame{Title: "Keep your recovery codes"}, Codes: s.RecoveryCodes,
			Text: "You are signed in. Store these codes in a safe place. Each code works once. Use one if you lose the device " +
				"with your authenticator app. They will not be shown again.",
			Link: template.URL(next), LinkText: "I have stored them: continue",
		})
	}
	a.messagePage.SetHeaders(c)
	return c.Redirect(next, http.StatusSeeOther)
}

// readForm returns the form that a guard has loaded.
func readForm(c *fiber.Ctx) (url.Values, error) {
	return url.ParseQuery(string(request.From(c.Context()).Body.Loaded()))
}

// fieldErrors returns a message for each field that an error names.
func fieldErrors(err error) map[string]string {
	var f *fault.Error
	out := map[string]string{}
	if errors.As(err, &f) {
		for _, field := range f.Fields {
			name := field.Name
			if name == "recoveryCode" {
				name = "code"
			}
			out[name] = "This " + field.Message + "."
		}
	}
	return out
}

// BeginProvider returns the endpoint that starts a sign-in with an identity provider from the
// sign-in page.
func (a *signIns) BeginProvider() route.Endpoint {
	d := route.Describe("OAuth server", "Start signing in with an identity provider from a page", 404, 429, 502)
	d.Parameters = []*huma.Param{
		page.PathParam("page", "Page to return to: authorize, apps or device."),
		page.PathParam("provider", "Identity provider."),
	}
	return route.Raw(d, a.beginProvider, page.Answer("The page, if the provider cannot be used."),
		route.Content(http.StatusFound, "The provider's page.", "", nil))
}

const (
	// cookieReturn holds the page to which a sign-in with an identity provider returns.
	cookieReturn = "oauth_return"
	// maxReturn is the maximum length of the cookie's value, in bytes. Browsers accept cookies of
	// about 4,096 bytes.
	maxReturn = 3800
)

func (a *signIns) beginProvider(c *fiber.Ctx) error {
	to, ok := parseTarget(c.Params("page"), string(c.Context().URI().QueryString()))
	provider := c.Params("provider")
	offered := slices.ContainsFunc(a.deps.Providers, func(p Provider) bool { return p.ID == provider })
	if !ok || !offered {
		return a.showRefusal(c, fault.New(fault.NotFound, "oauth.beginProvider", "There is no such page."))
	}
	address, state, err := a.deps.SignIn.StartProvider(contextOf(c), provider, a.deps.BaseURL+callbackPath)
	if err != nil {
		return a.retrySignIn(c, signInView{to: to}, err)
	}
	value := a.packReturn(state, provider, to)
	if len(value) > maxReturn {
		return a.showSignIn(c, http.StatusBadRequest, signInView{to: to, frame: frame{Problem: "The app's request is too " +
			"long for this way to sign in. Sign in with your password, or first sign in at " + a.deps.BaseURL + appsPath +
			" and then start again in the app."}})
	}
	session.AddCookies(c, a.deps.Cookies.Cookie(session.CookieState, state, tenancy.SignInStateLife))
	session.AddCookies(c, a.deps.Cookies.Cookie(cookieReturn, value, tenancy.SignInStateLife))
	a.signInPage.SetHeaders(c)
	return c.Redirect(address, http.StatusFound)
}

// packReturn returns a value for cookieReturn. The value is valid only for the sign-in with the
// given state.
func (a *signIns) packReturn(state, provider string, to target) string {
	packed := base64.RawURLEncoding.EncodeToString([]byte(provider + "\n" + to.page + "\n" + to.query.encode()))
	return a.deps.Gate.NameOf("sign-in return", state+"\x00"+packed) + "." + packed
}

// unpackReturn reverses packReturn. ok is false if the value is invalid or belongs to a different
// sign-in.
func (a *signIns) unpackReturn(state, value string) (provider string, to target, ok bool) {
	signature, packed, _ := strings.Cut(value, ".")
	want := a.deps.Gate.NameOf("sign-in return", state+"\x00"+packed)
	raw, err := base64.RawURLEncoding.DecodeString(packed)
	parts := strings.SplitN(string(raw), "\n", 3)
	if state == "" || !secret.Equal(signature, secret.Text(want)) || err != nil || len(parts) != 3 {
		return "", target{}, false
	}
	to, ok = parseTarget(parts[1], parts[2])
	return parts[0], to, ok
}

// ProviderCallback returns the endpoint to which identity providers redirect the browser after a
// sign-in that BeginProvider started.
func (a *signIns) ProviderCallback() route.Endpoint {
	d := route.Describe("OAuth server", "Return from an identity provider to a page", 400, 403, 404, 409, 429, 502)
	for _, name := range []string{"code", "state", "iss", "error"} {
		d.Parameters = append(d.Parameters, page.QueryParam(name, ""))
	}
	return route.Raw(d, a.providerCallback, page.Answer("The next step, or what is wrong."),
		route.Content(http.StatusSeeOther, "The sign-in is complete. The session is set.", "", nil))
}

func (a *signIns) providerCallback(c *fiber.Ctx) error {
	state := c.Query("state")
	provider, to, ok := a.unpackReturn(state, c.Cookies(cookieReturn))
	if !ok {
		return a.showRefusal(c, fault.New(fault.Invalid, "oauth.providerCallback",
			"This sign-in was not started in this browser, or has expired. Start again in the app."))
	}
	cookie := c.Cookies(session.CookieState)
	a.deps.Cookies.Clear(c, session.CookieState, cookieReturn)
	if c.Query("error") != "" || c.Query("code") == "" {
		return a.showSignIn(c, http.StatusBadRequest, signInView{to: to,
			frame: frame{Problem: "The provider did not sign you in. Try again, or sign in another way."}})
	}
	s, err := a.deps.SignIn.FinishProvider(contextOf(c), provider, tenancy.Callback{
		Code: cut(c.Query("code"), 4096), State: cut(state, 512), Cookie: cookie, Issuer: cut(c.Query("iss"), 512),
	})
	switch {
	case err != nil:
		return a.failProvider(c, to, err)
	case s.Claim != "":
		return a.showSignIn(c, http.StatusBadRequest, signInView{to: to, frame: frame{Problem: "Nobody has registered with " +
			"this identity. Register first, then start again in the app."}})
	}
	return a.signedInTo(c, signInView{to: to}, s.SignIn)
}

// failProvider shows the sign-in page after a sign-in with a provider has failed.
func (a *signIns) failProvider(c *fiber.Ctx, to target, err error) error {
	status, message := page.Problem(c, err)
	return a.showSignIn(c, status, signInView{to: to, frame: frame{Problem: message}})
}

// cut returns s, or "" if s has more than n bytes. No valid value is longer than n bytes.
func cut(s string, n int) string {
	if len(s) > n {
		return ""
	}
	return s
}
