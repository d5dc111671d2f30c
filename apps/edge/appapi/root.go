package appapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/route"
)

// HealthAnswer is the answer of GET /health.
type HealthAnswer struct {
	Status  string            `json:"status" enum:"ok,unavailable,draining"`
	Version string            `json:"version"`
	Checks  map[string]string `json:"checks" doc:"ok, or degraded and what is wrong while requests are served all the same, or what is wrong, for each thing the service depends on."`
}

func (a *API) mountRoot(t *route.Table) {
	root := operation("root", http.MethodGet, "/", "Service", "Say that the service runs")
	root = route.Content(root, http.StatusOK, "It runs.", fiber.MIMETextPlain, &huma.Schema{Type: huma.TypeString})
	t.Raw(root, func(c *fiber.Ctx) error { return c.SendString("App is running!") })

	health := operation("health", http.MethodGet, "/health", "Service",
		"Tell whether the service and what it depends on are well")
	health = route.Answer[HealthAnswer](t, health, http.StatusOK, "All is well.")
	health = route.Answer[HealthAnswer](t, health, http.StatusServiceUnavailable,
		"Something is wrong, or the service is about to stop.")
	t.Raw(health, a.health)
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
