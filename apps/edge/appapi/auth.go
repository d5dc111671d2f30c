package appapi

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
)

const (
	sessionLife = tenancy.SessionAbsolute
	maxEmail    = 254
	maxPassword = 128
)

// LoginUserDto is the body of POST /auth/login. An empty Provider means LOCAL.
type LoginUserDto struct {
	Provider string `json:"provider" doc:"LOCAL: other providers have their own routes." example:"LOCAL"`
	Email    string `json:"email" format:"email" maxLength:"254"`
	Password string `json:"password" maxLength:"128"`
}

// LoggedIn is the answer to a log-in that succeeded. Login is always true; the session is in the cookie auth.
type LoggedIn struct {
	Login bool `json:"login"`
}

// Login returns the endpoint that signs a person in. After a success it ends the session that the browser had before.
func (a *API) Login() route.Endpoint {
	return route.Raw(describe("Sign-in", "Sign in with e-mail and password", 400, 403, 413, 429), a.login,
		route.RequestBody[LoginUserDto](),
		route.Answer[LoggedIn](http.StatusCreated, "Signed in: cookie auth, header reload."))
}

// login signs a person in. It is RateLimited while the client, or its site on this account, has to wait after log-ins
// that failed.
func (a *API) login(c *fiber.Ctx) error {
	var in LoginUserDto
	if err := json.Unmarshal(c.BodyRaw(), &in); err != nil {
		return fault.Wrap(fault.Invalid, "appapi.login",
			"The body must be JSON with provider, email and password.", err)
	}
	in.Email = strings.ToLower(strings.TrimSpace(in.Email))
	if err := in.validate(); err != nil {
		return err
	}
	client, site := a.deps.Client(c), a.deps.Site(c)
	release, err := a.logins.waitTurn(c.UserContext(), client)
	if err != nil {
		a.logFailure(c, "a log-in was refused", in.Email, err)
		return err
	}
	defer release()
	forgive, wait := a.logins.begin(c.UserContext(), client, site, a.accountName(in.Email))
	if wait > 0 {
		err := &fault.Error{
			Kind: fault.RateLimited, Op: "appapi.login", RetryAfter: wait,
			Message: "Too many log-ins failed; wait before the next one.",
		}
		a.logFailure(c, "a log-in was refused", in.Email, err)
		return err
	}
	token, err := a.deps.Accounts.Login(c.UserContext(), site, in.Email, in.Password)
	if !fault.Is(err, fault.Invalid) { // only a wrong address or password counts as a failure
		forgive(context.WithoutCancel(c.UserContext()))
	}
	if err != nil {
		a.logFailure(c, "a log-in failed", in.Email, err)
		return err
	}
	if old := c.Cookies(cookieAuth); old != "" { // another site may have planted the old session in this browser
		if err := a.deps.Accounts.Logout(c.UserContext(), old); err != nil {
			return err
		}
	}
	a.setSession(c, token)
	c.Set(headerReload, "true")
	return c.Status(http.StatusCreated).JSON(LoggedIn{Login: true})
}

// logFailure logs a log-in that did not succeed, with its client and the name of its account: an operator can
// distinguish attacks on one account from attacks on many without seeing addresses.
func (a *API) logFailure(c *fiber.Ctx, what, email string, err error) {
	a.deps.Log.WarnContext(c.UserContext(), what,
		"client", a.deps.Client(c), "account", a.accountName(email), "error", err)
}

// accountName returns the name under which log-ins of an account are counted and logged: a part of the HMAC of its
// e-mail address. A hash without a key could be compared with guessed addresses.
func (a *API) accountName(email string) string {
	mac := hmac.New(sha256.New, a.accountKey)
	mac.Write([]byte(email))
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

func (in LoginUserDto) validate() error {
	var fields []fault.Field
	add := func(name, rule string) { fields = append(fields, fault.Field{Name: name, Message: rule}) }
	if in.Provider != "" && in.Provider != "LOCAL" {
		add("provider", "must be LOCAL")
	}
	at := strings.LastIndexByte(in.Email, '@')
	if at < 1 || at == len(in.Email)-1 || len(in.Email) > maxEmail || !publishing.Storable(in.Email) {
		add("email", "must be an e-mail address")
	}
	if in.Password == "" || len([]rune(in.Password)) > maxPassword {
		add("password", "must be 1 to 128 characters")
	}
	if len(fields) > 0 {
		return &fault.Error{
			Kind: fault.Invalid, Op: "appapi.login", Message: "The sign-in is not valid.", Fields: fields,
		}
	}
	return nil
}

// Logout returns the endpoint that ends the session. It clears the cookies auth, showorg and impersonate.
func (a *API) Logout() route.Endpoint {
	return route.Raw(describe("Sign-in", "End the session"), a.logout,
		route.Content(http.StatusCreated, "Signed out: cookies cleared, header logout.", "", nil))
}

func (a *API) logout(c *fiber.Ctx) error {
	if err := a.deps.Accounts.Logout(c.UserContext(), c.Get(cookieAuth, c.Cookies(cookieAuth))); err != nil {
		return err
	}
	a.clearCookies(c, cookieAuth, cookieOrg, cookiePerson)
	c.Set(headerLogout, "true")
	c.Status(http.StatusCreated)
	return nil
}
