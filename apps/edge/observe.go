package edge

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"crier/apps/edge/monitor"
	"crier/apps/edge/problem"
	"crier/apps/edge/request"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/telemetry"
)

var saneID = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// observer assigns each request an id, logs the request and counts it. It is safe for concurrent
// use.
type observer struct {
	patterns map[string]bool // path patterns of all routes
	took     *prometheus.HistogramVec
	log      *slog.Logger
	clock    clock.Clock
	// refuse writes the response for an error.
	refuse fiber.ErrorHandler
}

func (s *Server) newObserver() *observer {
	o := &observer{
		patterns: map[string]bool{}, took: s.metrics.took, log: s.deps.Log, clock: s.deps.Clock, refuse: s.refuse,
	}
	for _, r := range s.table {
		o.patterns[r.Path] = true
	}
	return o
}

// observe assigns the request an id, logs the request, and counts it. If the client's X-Request-Id
// matches saneID, it becomes the id. Requests are counted by route pattern, never by path or
// organization.
func (o *observer) observe(c *fiber.Ctx) error {
	start := o.clock.Now()
	info := request.From(c.Context())
	info.ID = c.Get(fiber.HeaderXRequestID)
	if !saneID.MatchString(info.ID) {
		info.ID = uuid.NewString()
	}
	c.Set(fiber.HeaderXRequestID, info.ID)
	c.SetUserContext(telemetry.WithRequestID(context.Background(), info.ID))
	if err := c.Next(); err != nil {
		if err := o.refuse(c, err); err != nil {
			return err
		}
	}
	o.logRequest(c, info, o.clock.Now().Sub(start))
	return nil
}

// logRequest logs and counts a request once its response is ready. The log record contains the
// fault only if the status is 400 or above. A 503 response without a fault is a normal result, for
// example from /health while the process is starting. It is logged as a warning, not as an error.
func (o *observer) logRequest(c *fiber.Ctx, info *request.Info, took time.Duration) {
	status, pattern := c.Response().StatusCode(), o.pattern(c)
	o.took.WithLabelValues(c.Method(), pattern, strconv.Itoa(status)).Observe(took.Seconds())
	level := problem.Level(status)
	if status == http.StatusServiceUnavailable && info.Err == nil {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{
		slog.String("method", c.Method()), slog.String("route", pattern), slog.Int("status", status),
		slog.Duration("took", took),
	}
	if status >= 400 && info.Err != nil {
		attrs = append(attrs, slog.Any("fault", info.Err))
	}
	o.log.LogAttrs(c.UserContext(), level, "request", attrs...)
}

// pattern returns the path pattern of the request's route, or "unmatched" if no route matches.
func (o *observer) pattern(c *fiber.Ctx) string {
	p := strings.Split(c.Route().Path, "/")
	for i, part := range p {
		if name, ok := strings.CutPrefix(part, ":"); ok {
			p[i] = "{" + name + "}"
		}
	}
	pattern := strings.Join(p, "/")
	if pattern == "/" && c.Path() != "/" || !o.patterns[pattern] {
		return "unmatched"
	}
	return pattern
}

type metrics struct {
	took    *prometheus.HistogramVec
	tracked *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "crier_http_request_seconds", Help: "Time to respond to a request.", Buckets: prometheus.DefBuckets,
	}, []string{"method", "route", "status"}), tracked: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crier_tracked_events_total",
		Help: "Events reported by pages. Anyone can report any number of them to POST /public/t.",
	}, []string{"kind"})}
	for _, kind := range monitor.TrackedKinds {
		m.tracked.WithLabelValues(kind) // so that each kind is 0 before its first event
	}
	if err := errors.Join(reg.Register(m.took), reg.Register(m.tracked)); err != nil {
		return nil, fault.Wrap(fault.Internal, "edge.newMetrics", "", err)
	}
	return m, nil
}
