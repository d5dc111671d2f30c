package session

import (
	"net/http"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/tenancy"
)

// The names of the cookies that a browser sends. A client without cookies sends auth, showorg and
// impersonate as headers instead.
const (
	CookieAuth   = "auth"
	CookieOrg    = "showorg"
	CookiePerson = "impersonate"
	// CookieInvite holds the token of an invitation, which is offered to the person at the next
	// sign-in. The dashboard's pages and the endpoint for the path / set this cookie.
	CookieInvite = "org"
	CookieState  = "oauth_state"
	// CookieDevice holds a token that identifies a browser in which somebody has signed in before.
	CookieDevice = "device"
)

// hostPrefix is a prefix for the names of cookies. Browsers accept a cookie with this prefix only
// over https, only from the host itself, and only without a Domain. Another host in the same domain
// could set a cookie without the prefix.
const hostPrefix = "__Host-"

// guarded returns the names of the cookies whose values the service trusts, provided that it has
// set them itself; see GuardCookies. Over https, each of them is set twice: with hostPrefix for
// browsers, and without it for clients that know only the plain name.
func guarded() []string { return []string{CookieAuth, CookiePerson, CookieState, CookieDevice} }

// GuardCookies runs before any handler that reads a cookie. Over https, a guarded cookie with
// hostPrefix replaces the cookie without the prefix. If a browser sends only the cookie without the
// prefix, GuardCookies removes it, because another host may have planted it.
//
// The auth cookie without the prefix is kept, however, because clients used it before the prefix
// existed. If another host planted it, the next sign-in ends its session.
func (g *Guard) GuardCookies(c *fiber.Ctx) error {
	if !g.cookies.Secure {
		return c.Next()
	}
	header := &c.Request().Header
	browser := c.Get("Sec-Fetch-Site") != ""
	for _, name := range guarded() {
		own := string(header.Cookie(hostPrefix + name))
		if own == "" && (name == CookieAuth || !browser) {
			continue
		}
		header.DelCookie(name)
		if own != "" {
			header.SetCookie(name, own)
		}
	}
	return c.Next()
}

// Device returns the token of a browser in which somebody has signed in before, or "" if the
// browser sent no token. GuardCookies must run first.
func Device(c *fiber.Ctx) string { return c.Cookies(CookieDevice) }

// The response headers that the dashboard reads.
const (
	HeaderLogout = "logout"
	headerReload = "reload"
)

const (
	SessionLife = tenancy.SessionAbsolute
	// PersonLife is the lifetime of the impersonate cookie, and thus limits how long a browser
	// keeps impersonating another person.
	PersonLife = tenancy.SessionIdle
)

// Cookies creates the service's cookies.
type Cookies struct {
	// Secure restricts the cookies to https.
	Secure bool
}

// Cookie returns the Set-Cookie lines for a cookie that is limited to this host. Scripts cannot
// read the cookie, and other sites cannot make a browser send it with requests that change
// something.
func (k Cookies) Cookie(name, value string, life time.Duration) []string {
	c := k.New(name, value)
	c.MaxAge = int(life / time.Second)
	return k.lines(c)
}

// Expired returns the Set-Cookie lines that delete cookies.
func (k Cookies) Expired(names ...string) (lines []string) {
	for _, name := range names {
		c := k.New(name, "")
		c.MaxAge, c.Expires = -1, time.Unix(1, 0).UTC()
		lines = append(lines, k.lines(c)...)
	}
	return lines
}

// lines returns the Set-Cookie line for a cookie. If the cookie is guarded and sent over https, it
// also returns the line with hostPrefix.
func (k Cookies) lines(c *http.Cookie) []string {
	out := []string{c.String()}
	if k.Secure && slices.Contains(guarded(), c.Name) {
		own := *c
		own.Name = hostPrefix + c.Name
		out = append(out, own.String())
	}
	return out
}

// New returns a cookie with the attributes that all of the service's cookies share. A line that
// deletes a cookie needs the same attributes, because a browser otherwise ignores it.
func (k Cookies) New(name, value string) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", HttpOnly: true, Secure: k.Secure, SameSite: http.SameSiteLaxMode,
	}
}

// Clear deletes cookies in the browser.
func (k Cookies) Clear(c *fiber.Ctx, names ...string) {
	AddCookies(c, k.Expired(names...))
}

// AddCookies adds the Set-Cookie lines to the response.
func AddCookies(c *fiber.Ctx, lines []string) {
	for _, line := range lines {
		c.Response().Header.Add(fiber.HeaderSetCookie, line)
	}
}

// CookiesOutput is a response that sets cookies and has no body.
type CookiesOutput struct {
	Cookies []string `header:"Set-Cookie"`
}
