package appapi

import (
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"

	"crier/tenancy"
)

// The cookies of a browser. A client without cookies sends auth, showorg and impersonate as headers.
const (
	cookieAuth   = "auth"
	cookieOrg    = "showorg"
	cookiePerson = "impersonate"
	// cookieInvite has the token of an invitation. Pages of the dashboard set it.
	cookieInvite = "org"
	cookieState  = "oauth_state"
	// CookieDevice has the token by which a browser is known that has signed in before.
	CookieDevice = "device"
)

// The headers of answers that the dashboard reads.
const (
	headerLogout = "logout"
	headerReload = "reload"
)

const (
	sessionLife = tenancy.SessionAbsolute
	// personLife is how long a browser acts as another person without being asked again.
	personLife = tenancy.SessionIdle
)

// cookie returns the Set-Cookie of a cookie for this host alone. Scripts cannot read it, and other sites cannot send it
// with requests that change something.
func (a *API) cookie(name, value string, life time.Duration) string {
	c := a.newCookie(name, value)
	c.MaxAge = int(life / time.Second)
	return c.String()
}

// expired returns the Set-Cookie that deletes a cookie.
func (a *API) expired(name string) string {
	c := a.newCookie(name, "")
	c.MaxAge, c.Expires = -1, time.Unix(1, 0).UTC()
	return c.String()
}

// newCookie returns a cookie with the attributes that all cookies have: a browser keeps a cookie whose deletion has
// other attributes.
func (a *API) newCookie(name, value string) *http.Cookie {
	return &http.Cookie{
		Name: name, Value: value, Path: "/", HttpOnly: true, Secure: a.cfg.Secure, SameSite: http.SameSiteLaxMode,
	}
}

func (a *API) clearCookies(c *fiber.Ctx, names ...string) {
	for _, name := range names {
		c.Response().Header.Add(fiber.HeaderSetCookie, a.expired(name))
	}
}
