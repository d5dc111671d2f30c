// Package edge implements the service's HTTP server: its routes, the middleware that every request
// passes through, and the OpenAPI document that describes the routes.
package edge

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"crier/apps/edge/admission"
	"crier/apps/edge/dev"
	"crier/apps/edge/mcp"
	"crier/apps/edge/monitor"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/apps/edge/session"
	"crier/platform/fault"
)

// Server serves the HTTP requests of one listener. Its methods are safe for concurrent use.
type Server struct {
	cfg       Config
	deps      Deps
	app       *fiber.App
	table     []Route      // sorted
	lines     *route.Table // the same routes with their handlers, and the OpenAPI document
	gate      *admission.Gate
	session   *session.Guard
	mcp       *mcp.API
	monitor   *monitor.API
	clients   *clients
	draining  atomic.Bool
	metrics   *metrics
	transfers *transfers

	mu      sync.Mutex // protects the fields below
	ln      *listener
	stopped bool
}

// New returns a Server that is not listening yet. It returns any error from Config.Validate. It
// also returns an error if a metric is already registered or if SandboxURL is not acceptable; see
// dev.IsSandbox.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	trusted, err := parseProxies(cfg.TrustedProxies)
	if err != nil {
		return nil, err
	}
	metrics, err := newMetrics(deps.Metrics)
	if err != nil {
		return nil, err
	}
	if deps.SandboxURL != "" && !dev.IsSandbox(deps.SandboxURL) {
		return nil, fault.New(fault.Invalid, "edge.New",
			"The sandbox address must be http with a loopback address and a port.")
	}
	s := &Server{
		cfg: cfg, deps: deps, metrics: metrics, transfers: newTransfers(cfg),
		clients: &clients{trusted: trusted, log: deps.Log, clock: deps.Clock},
	}
	s.buildRoutes()
	s.buildApp()
	return s, nil
}

// interfaceVersion is the version in the committed OpenAPI document. It is constant, so that the
// document changes only if the interface does. The document of a running server shows the server's
// version instead.
const interfaceVersion = "1.0.1"

// describeService adds the service's description to the document. It also adds the security schemes
// key, token, cookie, session and bearer, to which the routes refer.
func (s *Server) describeService(doc *huma.OpenAPI) {
	doc.Info.Description = "Publish posts to social platforms, on time and once.\n\nSigned webhooks report what " +
		"happens to posts. /docs/webhooks describes the events, deliveries and signatures, and /docs has the guides."
	doc.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"key": {Type: "apiKey", In: "header", Name: "Authorization",
			Description: "The API key alone, without Bearer."},
		"token": {Type: "apiKey", In: "header", Name: "Authorization",
			Description: "An access token from the OAuth server, sent alone, without Bearer. It acts with the role of the person " +
				"who approved the app. Reading requires the scope mcp:read; everything else requires mcp:write."},
		"cookie": {Type: "apiKey", In: "cookie", Name: "auth",
			Description: "The dashboard session. Requests that change something must come from the service's own " +
				"pages. Over https, the session is also set in the cookie __Host-auth, which takes precedence."},
		"session": {Type: "apiKey", In: "header", Name: "auth", Description: "The same session in a header."},
		"bearer": {Type: "http", Scheme: "bearer",
			Description: "An API key or an access token, sent after Bearer in the Authorization header."},
	}
}

// buildApp creates the Fiber app with the middleware that all routes share, and mounts the route
// table. guardBodies runs before the app, so the requests that it rejects never reach a route.
func (s *Server) buildApp() {
	s.app = fiber.New(fiber.Config{
		Immutable: true, DisableStartupMessage: true, CaseSensitive: true,
		StreamRequestBody: true, DisablePreParseMultipartForm: true,
		ErrorHandler: s.refuse, EnableTrustedProxyCheck: true,
		ReadTimeout: s.cfg.Timeout, WriteTimeout: s.cfg.Timeout, IdleTimeout: idleTimeout, ReadBufferSize: headerLimit,
	})
	s.app.Use(
		s.newObserver().observe, s.recovering(), s.clients.warn, s.session.GuardCookies, s.clients.note,
		s.secureHeaders,
		openCORS(), s.cors(), s.mcp.CORS(), checkQuery,
	)
	s.lines.Mount(s.app)
	server := s.app.Server()
	server.Handler = guardBodies(s.app.Handler(), s.refuseEarly, s.draining.Load)
	malformed := server.ErrorHandler
	server.ErrorHandler = func(ctx *fasthttp.RequestCtx, err error) {
		malformed(ctx, err)
		request.CloseAfterAnswer(ctx)
	}
	server.CloseOnShutdown = true
}

// Listen serves ln until Shutdown is called, and then closes ln. It returns nil after Shutdown,
// even if Shutdown was called before Listen.
func (s *Server) Listen(ln net.Listener) error {
	own := listenOn(ln, s.clients.connRules(s.cfg))
	if !s.setListener(own) {
		return own.Close()
	}
	if err := s.app.Listener(own); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Shutdown makes the health check fail, stops accepting connections, and waits for running requests
// until ctx ends. Requests that are still arriving after shutdownGrace fail. Responses then have
// another shutdownGrace to complete.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	s.mu.Lock()
	s.stopped = true
	ln := s.ln
	s.mu.Unlock()
	if ln == nil {
		return nil
	}
	grace := time.AfterFunc(shutdownGrace, ln.forceDeadlines)
	defer grace.Stop()
	// The app may not know the listener yet, so close the listener here as well.
	return errors.Join(ln.Close(), s.app.ShutdownWithContext(ctx))
}

// setListener stores the listener so that Shutdown can close it. It returns false if Shutdown has
// already been called.
func (s *Server) setListener(ln *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ln = ln
	return !s.stopped
}

// ServeQueue serves GET /monitor/queue/{name} on the private listener. It requires no token.
func (s *Server) ServeQueue(w http.ResponseWriter, r *http.Request) { s.monitor.ServeQueue(w, r) }

// Drain makes the health check fail, so that load balancers can switch to other processes before
// Shutdown. Requests are still served, but each connection is closed after its next response.
func (s *Server) Drain() { s.draining.Store(true) }
