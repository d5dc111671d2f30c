package appapi

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/tenancy"
)

// LoginUserDto is the body of POST /auth/login. An empty Provider means LOCAL.
type LoginUserDto struct {
	Provider string `json:"provider,omitempty" doc:"LOCAL: other providers have their own routes." example:"LOCAL"`
	Email    string `json:"email" maxLength:"254" doc:"Mail address." example:"ada@example.org"`
	Password string `json:"password" doc:"At most 128 characters."`
}

type loginInput struct {
	BrowserCookies
	Body LoginUserDto
}

// Login returns the endpoint that signs a person in. After a success it ends the session that the browser had before.
func (a *API) Login() route.Endpoint {
	return route.JSON(described(created(tagSignIn, "Sign in with e-mail and password", 400, 403, 413, 429),
		"The answer names what the sign-in still needs, or has the cookie auth."), a.login)
}

// login signs a person in. It is RateLimited while the client, or its site on this account, has to wait after log-ins
// that failed.
func (a *API) login(ctx context.Context, in *loginInput) (*loginOutput, error) {
	email, err := in.Body.validate()
	if err != nil {
		return nil, err
	}
	from := request.From(ctx).From
	release, err := a.logins.waitTurn(ctx, from.Client)
	if err != nil {
		a.logFailure(ctx, "a log-in was refused", email, err)
		return nil, err
	}
	defer release()
	forgive, wait := a.logins.begin(ctx, a.keysOf(ctx, email, from))
	if wait > 0 {
		err := tooManyFailures("appapi.login", "Too many log-ins failed; wait before the next one.", wait)
		a.logFailure(ctx, "a log-in was refused", email, err)
		return nil, err
	}
	signIn, err := a.deps.Accounts.Login(ctx, email, in.Body.Password, from)
	if !fault.Is(err, fault.Invalid) { // only a wrong address or password counts as a failure
		forgive(context.WithoutCancel(ctx))
	}
	if err != nil {
		a.logFailure(ctx, "a log-in failed", email, err)
		return nil, err
	}
	return a.loginAnswer(ctx, signIn, in.BrowserCookies)
}

func tooManyFailures(op, message string, wait time.Duration) error {
	return &fault.Error{Kind: fault.RateLimited, Op: op, RetryAfter: wait, Message: message}
}

// keysOf returns the keys under which a log-in counts: those of the browser if the person has signed in there before.
func (a *API) keysOf(ctx context.Context, email string, from tenancy.Source) [3]string {
	account := a.accountName(email)
	if from.Device != "" {
		known, err := a.deps.Accounts.KnownDevice(ctx, email, from)
		if err != nil {
			a.deps.Log.WarnContext(ctx, "a browser cannot be recognized; its log-in counts like one of a stranger",
				"client", from.Client, "error", err)
		}
		if known {
			return deviceKeys(a.nameOf(cookieDevice, from.Device), account)
		}
	}
	return loginKeys(from.Client, from.Site, account)
}

// logFailure logs a log-in that did not succeed, with its client and the name of its account: an operator can
// distinguish attacks on one account from attacks on many without seeing addresses.
func (a *API) logFailure(ctx context.Context, what, email string, err error) {
	a.deps.Log.WarnContext(ctx, what,
		"client", request.From(ctx).From.Client, "account", a.accountName(email), "error", err)
}

// accountName returns the name under which requests for an account are counted and logged: a part of the HMAC of its
// e-mail address. A hash without a key could be compared with guessed addresses.
func (a *API) accountName(email string) string { return a.nameOf("account", email)[:16] }

// nameOf returns the name under which a secret of a kind is counted.
func (a *API) nameOf(kind, secret string) string {
	mac := hmac.New(sha256.New, a.accountKey)
	mac.Write([]byte(kind + "\x00" + secret))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// validate returns the address in the form in which it is stored, and Invalid for a log-in that cannot succeed.
func (in LoginUserDto) validate() (email string, err error) {
	var faults tenancy.Inputs
	faults.Check(in.Provider == "" || in.Provider == "LOCAL", "provider", "must be LOCAL")
	email = faults.Email("email", in.Email)
	n := utf8.RuneCountInString(in.Password)
	faults.Check(n > 0 && n <= tenancy.MaxPassword, "password", "must be 1 to 128 characters")
	return email, faults.Err("appapi.login")
}

// Logout returns the endpoint that ends the session. It clears the cookies auth, showorg and impersonate.
func (a *API) Logout() route.Endpoint {
	return route.Raw(describe(tagSignIn, "End the session"), a.logout,
		route.Content(http.StatusCreated, "Signed out: cookies cleared, header logout.", "", nil))
}

func (a *API) logout(c *fiber.Ctx) error {
	token := c.Get(cookieAuth, c.Cookies(cookieAuth))
	if err := a.deps.Accounts.Logout(c.UserContext(), token, request.From(c.Context()).From); err != nil {
		return err
	}
	a.clearCookies(c, cookieAuth, cookieOrg, cookiePerson)
	c.Set(headerLogout, "true")
	c.Status(http.StatusCreated)
	return nil
}
