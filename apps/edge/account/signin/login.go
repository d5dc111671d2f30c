// Package signin provides the endpoints for signing up, in and out.
package signin

import (
	"context"
	"log/slog"
	"net/http"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/admission"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/apps/edge/session"
	"crier/tenancy"
)

// Deps holds the dependencies of an API.
type Deps struct {
	// Origins lists the origins of BASE_URL, FRONTEND_URL and MAIN_URL. Identity providers may
	// redirect only to these origins.
	Origins []string
	// MobileScheme is the URL that opens the mobile app, or empty if there is no app. Example:
	// crier://callback
	MobileScheme string
	Accounts     Accounts
	Gate         *admission.Gate
	Cookies      session.Cookies
	Log          *slog.Logger
}

// Accounts provides the account operations that this package calls.
type Accounts interface {
	SignUp
	Logins
	Providers
	Offers
	session.Sessions
}

// API provides this package's endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API that uses d. It does not check that all fields of d are set.
func New(d Deps) *API { return &API{deps: d} }

// Logins performs the steps of a sign-in.
type Logins interface {
	// Login checks an email address and a password. If they do not match, Login returns Invalid
	// after doing as much work as for a match. It returns RateLimited if too many logins are
	// running. Many logins from one site barely delay logins from other sites.
	Login(ctx context.Context, email, password string, from tenancy.Source) (tenancy.SignIn, error)
	// VerifyMFA uses a code or a recovery code to complete a sign-in that has reached StepMFA. It
	// returns Unauthenticated for a wrong code, and RateLimited after five wrong codes.
	VerifyMFA(ctx context.Context, token, code, recovery string, from tenancy.Source) (tenancy.SignIn, error)
	// BeginEnrollment creates a second factor for a sign-in that has reached StepEnroll. It returns
	// Unauthenticated if the token has expired.
	BeginEnrollment(ctx context.Context, token string) (tenancy.Secret, error)
	// ConfirmEnrollment uses the new second factor's first code to complete a sign-in that has
	// reached StepEnroll.
	ConfirmEnrollment(ctx context.Context, token, code string, from tenancy.Source) (tenancy.SignIn, error)
	// Restore completes a sign-in that has reached StepRestore. It restores the account and the
	// organizations in which the person is the only member.
	Restore(ctx context.Context, token string, from tenancy.Source) (tenancy.SignIn, error)
}

// LoginUserDto is the body of POST /auth/login. An empty Provider means LOCAL.
type LoginUserDto struct {
	Provider string `json:"provider,omitempty" doc:"Must be LOCAL; other providers have their own routes." example:"LOCAL"`
	Email    string `json:"email" maxLength:"254" doc:"Email address." example:"ada@example.org"`
	Password string `json:"password" doc:"At most 128 characters."`
}

type loginInput struct {
	BrowserCookies
	Body LoginUserDto
}

// Login returns the endpoint that signs a person in. Completing a sign-in ends the browser's
// previous session.
func (a *API) Login() route.Endpoint {
	return route.JSON(route.Described(route.Created("Sign-in", "Sign in with email and password", 400, 403, 413, 429),
		"If the sign-in is complete, the response sets the auth cookie. Otherwise, the response says what is still "+
			"required."), a.login)
}

func (a *API) login(ctx context.Context, in *loginInput) (*loginOutput, error) {
	signIn, err := a.Steps().CheckPassword(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	return a.loginAnswer(ctx, signIn, in.BrowserCookies)
}

// validate returns the email address in its stored form. It returns Invalid if a field's value
// rules out a successful login.
func (in LoginUserDto) validate() (email string, err error) {
	var faults tenancy.Inputs
	faults.Check(in.Provider == "" || in.Provider == "LOCAL", "provider", "must be LOCAL")
	email = faults.Email("email", in.Email)
	n := utf8.RuneCountInString(in.Password)
	faults.Check(n > 0 && n <= tenancy.MaxPassword, "password", "must be 1 to 128 characters")
	return email, faults.Err("signin.login")
}

// Logout returns the endpoint that ends the session and clears the auth, showorg and impersonate
// cookies.
func (a *API) Logout() route.Endpoint {
	return route.Raw(route.Describe("Sign-in", "End the session"), a.logout,
		route.Content(http.StatusCreated, "Signed out. The cookies are deleted and the logout header is set.", "", nil))
}

func (a *API) logout(c *fiber.Ctx) error {
	token := c.Get(session.CookieAuth, c.Cookies(session.CookieAuth))
	if err := a.deps.Accounts.Logout(c.UserContext(), token, request.From(c.Context()).From); err != nil {
		return err
	}
	a.deps.Cookies.Clear(c, session.CookieAuth, session.CookieOrg, session.CookiePerson)
	c.Set(session.HeaderLogout, "true")
	c.Status(http.StatusCreated)
	return nil
}
