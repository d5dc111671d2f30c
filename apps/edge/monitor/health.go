// Package monitor provides the health and queue endpoints for operators and load balancers, and the
// endpoint that counts events.
package monitor

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/route"
	"crier/apps/edge/session"
	"crier/platform/secret"
)

// Deps holds an API's dependencies.
type Deps struct {
	// FrontendURL is the dashboard's URL, without a trailing slash.
	FrontendURL string
	// Timeout limits requests to the private listener.
	Timeout time.Duration
	Version string
	// MonitorToken is the token for /monitor on the public listener. If it is empty, the public
	// listener rejects all requests to /monitor.
	MonitorToken secret.Text
	Queue        Queue
	Health       Health
	// Draining reports whether the server is about to stop.
	Draining func() bool
	// Tracked counts an event. kind is one of TrackedKinds.
	Tracked func(kind string)
	Cookies session.Cookies
	Log     *slog.Logger
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API. It does not check that d is complete.
func New(d Deps) *API { return &API{deps: d} }

// Health checks what the service depends on.
type Health interface {
	// Check returns "ok" or a short description of the failure for each dependency, and whether the
	// service is healthy.
	Check(ctx context.Context) (answers map[string]string, healthy bool)
}

// GetHealth returns the endpoint that reports the service's health. The endpoint responds with 503
// if the service is unhealthy or draining.
func (a *API) GetHealth() route.Endpoint {
	return route.Raw(route.Describe("Service", "Check the health of the service and its dependencies"), a.health,
		route.Answer[HealthResponse](http.StatusOK, "The service is healthy."),
		route.Answer[HealthResponse](http.StatusServiceUnavailable, "A check failed, or the service is about to stop."))
}

// HealthResponse is the response to GET /health. While the service is draining, Status is draining,
// regardless of the checks.
type HealthResponse struct {
	Status  string            `json:"status" enum:"ok,unavailable,draining"`
	Version string            `json:"version"`
	Checks  map[string]string `json:"checks"`
}

// TransformSchema implements huma.SchemaTransformer. It adds the descriptions that are too long for
// a struct tag.
func (HealthResponse) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["checks"].Description = "Status of each dependency: ok, degraded followed by the problem, or only " +
		"the problem. While a dependency is degraded, requests are still served."
	return s
}

func (a *API) health(c *fiber.Ctx) error {
	checks, healthy := a.deps.Health.Check(c.UserContext())
	answer := HealthResponse{Status: "ok", Version: a.deps.Version, Checks: checks}
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
