package appapi

import (
	"context"
	"crypto/sha256"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/request"
	"crier/platform/fault"
)

// The cookies and headers of a session.
const (
	cookieAuth   = "auth"
	cookieOrg    = "showorg"
	cookiePerson = "impersonate"
	headerLogout = "logout"
	headerReload = "reload"
)

// session finds whose session the request carries, guards it against other sites and counts it.
func (a *API) session(c *fiber.Ctx) error {
	token := c.Get(cookieAuth)
	if token == "" {
		token = c.Cookies(cookieAuth)
		if err := a.guard(c, token != ""); err != nil {
			return err
		}
	}
	if token == "" {
		return a.unknown(c, fault.New(fault.Unauthenticated, "appapi.session", "Sign in first."))
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), a.cfg.Timeout)
	defer cancel()
	p, err := a.deps.Accounts.Session(ctx, token, chosenOrg(c))
	if fault.Is(err, fault.Unauthenticated) {
		return a.unknown(c, err)
	}
	if err != nil {
		return err
	}
	request.From(c.Context()).Principal = p
	if err := a.count(c, token); err != nil {
		return err
	}
	return c.Next()
}

// chosenOrg returns what the request says of its organization, "" for nothing.
func chosenOrg(c *fiber.Ctx) string { return c.Get(cookieOrg, c.Cookies(cookieOrg)) }

// member refuses unsafe requests with an organization that the person is no member of: session has taken another one. The
// cookie of such an organization is cleared, so that the next request has the person's first.
func (a *API) member(c *fiber.Ctx) error {
	chosen := chosenOrg(c)
	if safe(c) || chosen == "" || strings.EqualFold(chosen, request.From(c.Context()).Principal.Org.String()) {
		return c.Next()
	}
	a.clear(c, cookieOrg)
	return fault.New(fault.Forbidden, "appapi.member", "You are not a member of the organization that showorg names.")
}

// unknown tells the dashboard that its session is gone.
func (a *API) unknown(c *fiber.Ctx, err error) error {
	c.Set(headerLogout, "true")
	a.clear(c, cookieAuth)
	return err
}

func (a *API) count(c *fiber.Ctx, token string) error {
	key := sha256.Sum256([]byte(token))
	left, ends, ok := a.sessions.take(string(key[:]))
	c.Set("X-RateLimit-Limit", strconv.Itoa(a.cfg.AppLimit))
	c.Set("X-RateLimit-Remaining", strconv.Itoa(left))
	c.Set("X-RateLimit-Reset", strconv.FormatInt(unixUp(ends), 10))
	if !ok {
		return a.slow("appapi.count", ends)
	}
	return nil
}

func unixUp(t time.Time) int64 { return int64(math.Ceil(float64(t.UnixMilli()) / 1000)) }

func (a *API) slow(op string, until time.Time) error {
	return &fault.Error{Kind: fault.RateLimited, Op: op, Message: "Too many requests; wait before the next one.", RetryAfter: until.Sub(a.deps.Clock.Now())}
}

// safe returns whether a request changes nothing.
func safe(c *fiber.Ctx) bool {
	return c.Method() == http.MethodGet || c.Method() == http.MethodHead || c.Method() == http.MethodOptions
}

// guard refuses unsafe requests that a browser sends for another site. Requests that carry no cookie and come from no browser pass.
func (a *API) guard(c *fiber.Ctx, cookies bool) error {
	if safe(c) {
		return nil
	}
	origin, site := c.Get(fiber.HeaderOrigin), c.Get("Sec-Fetch-Site")
	if !cookies && origin == "" && site == "" {
		return nil
	}
	if origin != "" && !slices.Contains(a.cfg.Origins, origin) || origin == "" && site != "same-origin" {
		return fault.New(fault.Forbidden, "appapi.guard", "The request comes from another site.")
	}
	return nil
}

// jsonOnly refuses bodies that a plain HTML form could send.
func jsonOnly(c *fiber.Ctx) error {
	kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if c.Request().Header.ContentLength() != 0 && (err != nil || kind != fiber.MIMEApplicationJSON) {
		return fault.Wrap(fault.Invalid, "appapi.jsonOnly", "The body must be application/json.", err)
	}
	return c.Next()
}

// signInGuard is guard for the routes under /auth: whatever carries a cookie counts as a browser.
func (a *API) signInGuard(c *fiber.Ctx) error {
	if err := a.guard(c, c.Get(fiber.HeaderCookie) != ""); err != nil {
		return err
	}
	return c.Next()
}

func (a *API) keep(c *fiber.Ctx, token string) {
	c.Cookie(&fiber.Cookie{
		Name: cookieAuth, Value: token, Path: "/", HTTPOnly: true, Secure: a.cfg.Secure, SameSite: fiber.CookieSameSiteLaxMode,
		MaxAge: int(sessionLife / time.Second),
	})
}

func (a *API) clear(c *fiber.Ctx, names ...string) {
	for _, name := range names {
		c.Cookie(&fiber.Cookie{
			Name: name, Path: "/", HTTPOnly: true, Secure: a.cfg.Secure, SameSite: fiber.CookieSameSiteLaxMode,
			Expires: time.Unix(1, 0).UTC(),
		})
	}
}
