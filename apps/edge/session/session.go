package session

import (
	"context"
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
	"crier/tenancy"
)

// Session authenticates a request by its session, whose token is in the auth header or the auth
// cookie. It rejects the request if another site sent it, and counts the request toward the
// session's limit.
func (g *Guard) Session(c *fiber.Ctx) error {
	token := c.Get(CookieAuth)
	if token == "" {
		token = c.Cookies(CookieAuth)
		if err := g.checkOrigin(c, token != ""); err != nil {
			return err
		}
	}
	if token == "" {
		return g.endSession(c, fault.New(fault.Unauthenticated, "session.session", "Sign in first."))
	}
	err := g.authenticate(c, token)
	if fault.Is(err, fault.Unauthenticated) {
		return g.endSession(c, err)
	}
	if err != nil {
		refused := fault.Is(err, fault.Forbidden) || fault.Is(err, fault.NotFound)
		// Clear the cookie, because it would cause every later request to be rejected.
		if refused && c.Cookies(CookiePerson) != "" {
			g.cookies.Clear(c, CookiePerson)
		}
		return err
	}
	if err := g.countRequest(c, token); err != nil {
		return err
	}
	return c.Next()
}

// Visitor authenticates a request that has a live session. Other requests pass with the zero
// Principal.
func (g *Guard) Visitor(c *fiber.Ctx) error {
	token := c.Get(CookieAuth, c.Cookies(CookieAuth))
	if token == "" {
		return c.Next()
	}
	if err := g.authenticate(c, token); err != nil && !fault.Is(err, fault.Unauthenticated) {
		return err
	}
	return c.Next()
}

// Confirm authenticates a request a second time, after Session or Visitor has authenticated it. It
// returns Unauthenticated if the session has ended, and Forbidden if the organization or the
// impersonator has changed. It also accepts a request that Visitor let pass without a session.
func (g *Guard) Confirm(c *fiber.Ctx) error {
	token := c.Get(CookieAuth, c.Cookies(CookieAuth))
	before := request.From(c.Context()).Principal
	if token == "" || before.Session.IsZero() {
		return nil
	}
	err := g.authenticate(c, token)
	if fault.Is(err, fault.Unauthenticated) {
		return g.endSession(c, err)
	}
	if err != nil {
		return err
	}
	if now := request.From(c.Context()).Principal; now.Org != before.Org || now.Impersonator != before.Impersonator {
		return fault.New(fault.Forbidden, "session.confirm", "You are no longer a member of the organization.")
	}
	return nil
}

// authenticate sets the request's principal from a session token. It returns any error from
// Sessions.Session. It also returns Forbidden if an unsafe request names a member to impersonate
// and the person is not an instance administrator.
func (g *Guard) authenticate(c *fiber.Ctx, token string) error {
	ctx, cancel := context.WithTimeout(c.UserContext(), g.cfg.Timeout)
	defer cancel()
	info := request.From(c.Context())
	as := c.Get(CookiePerson, c.Cookies(CookiePerson))
	p, err := g.sessions.Session(ctx, token, chosenOrg(c), as, info.From)
	if err != nil {
		return err
	}
	if as != "" && p.Impersonator.IsZero() && !safe(c) {
		return fault.New(fault.Forbidden, "session.authenticate",
			"You are not an instance administrator, so you cannot impersonate anyone.")
	}
	p.From = info.From
	info.Principal = p
	return nil
}

// chosenOrg returns the organization that the request names in showorg, or "" if it names none.
func chosenOrg(c *fiber.Ctx) string { return c.Get(CookieOrg, c.Cookies(CookieOrg)) }

// Member rejects an unsafe request if showorg names an organization that the person does not belong
// to. In that case, Session has chosen a different organization. A rejection clears the showorg
// cookie, so that the next request uses the person's first organization.
//
// During impersonation, the member's organization is used and showorg is ignored.
func (g *Guard) Member(c *fiber.Ctx) error {
	if safe(c) {
		return c.Next()
	}
	return g.Chosen(c)
}

// Chosen is like Member but also checks requests with safe methods. It is for routes that change
// something in response to a safe request, such as the GET request that starts connecting a
// channel.
func (g *Guard) Chosen(c *fiber.Ctx) error {
	chosen, p := chosenOrg(c), request.From(c.Context()).Principal
	if !p.Impersonator.IsZero() || chosen == "" || strings.EqualFold(chosen, p.Org.String()) {
		return c.Next()
	}
	g.cookies.Clear(c, CookieOrg)
	return fault.New(fault.Forbidden, "session.member", "You are not a member of the organization named by showorg.")
}

// IsMember reports whether the browser has a live session of a member who may use the organization.
// It returns false while an instance administrator is impersonating a member.
func (g *Guard) IsMember(c *fiber.Ctx, org tenancy.OrgID) (bool, error) {
	token := c.Cookies(CookieAuth)
	if token == "" || c.Cookies(CookiePerson) != "" {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), g.cfg.Timeout)
	defer cancel()
	p, err := g.sessions.Session(ctx, token, org.String(), "", request.From(c.Context()).From)
	if fault.Is(err, fault.Unauthenticated) {
		return false, nil
	}
	return p.Org == org && p.Access == tenancy.AccessFull, err
}

// endSession clears the cookie of an invalid session and sets the logout header for the dashboard.
// It returns err.
func (g *Guard) endSession(c *fiber.Ctx, err error) error {
	c.Set(HeaderLogout, "true")
	g.cookies.Clear(c, CookieAuth)
	return err
}

// countRequest counts a session's request and sets the rate-limit headers. It returns RateLimited
// if the limit has already been reached.
func (g *Guard) countRequest(c *fiber.Ctx, token string) error {
	left, ends, ok := g.gate.TakeSession(c.UserContext(), token)
	c.Set("X-RateLimit-Limit", strconv.Itoa(g.cfg.Limit))
	c.Set("X-RateLimit-Remaining", strconv.Itoa(left))
	c.Set("X-RateLimit-Reset", strconv.FormatInt(unixUp(ends), 10))
	if !ok {
		return g.gate.TooManyRequests("session.count", ends)
	}
	return nil
}

func unixUp(t time.Time) int64 { return int64(math.Ceil(float64(t.UnixMilli()) / 1000)) }

// safe reports whether the request's method is GET, HEAD or OPTIONS, which must not change
// anything.
func safe(c *fiber.Ctx) bool {
	return c.Method() == http.MethodGet || c.Method() == http.MethodHead || c.Method() == http.MethodOptions
}

// checkOrigin rejects unsafe requests that a browser sends on behalf of another site (cross-site
// request forgery). A request passes if it has neither cookies nor headers that only browsers send.
func (g *Guard) checkOrigin(c *fiber.Ctx, cookies bool) error {
	if safe(c) {
		return nil
	}
	origin, site := c.Get(fiber.HeaderOrigin), c.Get("Sec-Fetch-Site")
	if !cookies && origin == "" && site == "" {
		return nil
	}
	if origin != "" && !slices.Contains(g.cfg.Origins, origin) || origin == "" && site != "same-origin" {
		return fault.New(fault.Forbidden, "session.guard", "The request came from another site.")
	}
	return nil
}

// JSONOnly returns Invalid if a plain HTML form could have sent the body. It accepts requests that
// have no body, or whose method means that the body is never read.
func JSONOnly(c *fiber.Ctx) error {
	if safe(c) || c.Method() == http.MethodDelete {
		return c.Next()
	}
	kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if c.Request().Header.ContentLength() != 0 && (err != nil || kind != fiber.MIMEApplicationJSON) {
		return fault.Wrap(fault.Invalid, "session.JSONOnly", "The body must be application/json.", err)
	}
	return c.Next()
}

// CheckSignInOrigin rejects unsafe requests from other sites. Unlike Session, it is for routes that
// require no session. A request with any cookie is treated as if a browser had sent it.
func (g *Guard) CheckSignInOrigin(c *fiber.Ctx) error {
	if err := g.checkOrigin(c, c.Get(fiber.HeaderCookie) != ""); err != nil {
		return err
	}
	return c.Next()
}
