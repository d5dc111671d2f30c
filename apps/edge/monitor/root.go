package monitor

import (
	"net/http"
	"regexp"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/record"
	"crier/apps/edge/route"
	"crier/apps/edge/session"
	"crier/tenancy"
)

// Root returns the endpoint for the path /. It checks no dependencies; see GetHealth.
func (a *API) Root() route.Endpoint {
	text := &huma.Schema{Type: huma.TypeString}
	d := route.Describe("Service", "Check that the service is running")
	d.Parameters = []*huma.Param{{
		Name: session.CookieInvite, In: "query", Schema: text,
		Description: "Token of an invitation, as contained in older invitation links. The invitation is offered to " +
			"the person but not accepted.",
	}}
	return route.Raw(d, a.root, route.Content(http.StatusOK, "The service is running.", fiber.MIMETextPlain, text),
		route.Content(http.StatusSeeOther, "Redirect to the dashboard, with the invitation in the fragment.", "", nil))
}

var tokenForm = regexp.MustCompile(`^[0-9A-Za-z]{43}$`)

// root responds that the service is running. Older invitation links lead here, with the token in
// the query. For these links, root redirects to the dashboard with the token in the fragment, as in
// current links. It also sets a cookie, so that the browser's next sign-in offers the invitation.
func (a *API) root(c *fiber.Ctx) error {
	token := c.Query(session.CookieInvite)
	if !tokenForm.MatchString(token) {
		return c.SendString("App is running!")
	}
	session.AddCookies(c, a.deps.Cookies.Cookie(session.CookieInvite, token, tenancy.InvitationLife))
	return c.Redirect(record.InvitationLink(a.deps.FrontendURL, token), http.StatusSeeOther)
}
