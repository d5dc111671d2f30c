package appapi

import (
	"net/http"
	"regexp"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/route"
	"crier/tenancy"
)

// Root returns the endpoint of the path /. It checks no dependency: see GetHealth.
func (a *API) Root() route.Endpoint {
	text := &huma.Schema{Type: huma.TypeString}
	d := describe("Service", "Check that the service runs")
	d.Parameters = []*huma.Param{{
		Name: cookieInvite, In: "query", Schema: text,
		Description: "Token of an invitation that was mailed with the token in the query: it is only offered.",
	}}
	return route.Raw(d, a.root, route.Content(http.StatusOK, "It runs.", fiber.MIMETextPlain, text),
		route.Content(http.StatusSeeOther, "To the dashboard, with the invitation in the fragment.", "", nil))
}

var tokenForm = regexp.MustCompile(`^[0-9A-Za-z]{43}$`)

// root says that the service is running. An invitation link with the token in the query redirects
// to the dashboard with the token in the fragment, as current links have it, and the browser's next
// sign-in offers the invitation.
func (a *API) root(c *fiber.Ctx) error {
	token := c.Query(cookieInvite)
	if !tokenForm.MatchString(token) {
		return c.SendString("App is running!")
	}
	addCookies(c, a.cookie(cookieInvite, token, tenancy.InvitationLife))
	return c.Redirect(a.invitationLink(token), http.StatusSeeOther)
}

// GetHealth returns the endpoint of the health of the service. It answers 503 when the service is not healthy or is
// draining.
func (a *API) GetHealth() route.Endpoint {
	return route.Raw(describe("Service", "Get the health of the service and of what it depends on"), a.health,
		route.Answer[HealthAnswer](http.StatusOK, "The service is healthy."),
		route.Answer[HealthAnswer](http.StatusServiceUnavailable, "Something failed, or the service is about to stop."))
}

// HealthAnswer is the answer of GET /health. Status is draining whether or not the checks succeed.
type HealthAnswer struct {
	Status  string            `json:"status" enum:"ok,unavailable,draining"`
	Version string            `json:"version"`
	Checks  map[string]string `json:"checks"`
}

// TransformSchema is called by huma. It adds the descriptions that are too long for a struct tag.
func (HealthAnswer) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["checks"].Description = "State of each dependency: ok; degraded and the problem, while requests are " +
		"still served; or the problem."
	return s
}

func (a *API) health(c *fiber.Ctx) error {
	checks, healthy := a.deps.Health.Check(c.UserContext())
	answer := HealthAnswer{Status: "ok", Version: a.cfg.Version, Checks: checks}
	switch {
	case a.deps.Draining():
		answer.Status = "draining"
	case !healthy:
		answer.Status = "unavailable"
	default:
		return c.JSON(answer)
	}
	return c.Status(http.StatusServiceUnavailable).JSON(answer)
}
