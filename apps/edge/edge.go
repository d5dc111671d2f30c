// Package edge is the HTTP front of the service: its routes, what every request passes through, and the document that describes them.
package edge

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"crier/apps/edge/appapi"
	"crier/apps/edge/publicv1"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/clock"
)

// Route is one method of one path; parameters are written {name}.
type Route = route.Route

// Deps are what the edge stands on.
type Deps struct {
	Posts      publicv1.Posts
	Queue      appapi.Queue
	Channels   Channels
	Media      Media
	Accounts   Accounts
	Limiter    Limiter
	Attempts   appapi.Attempts // of all processes; nil when there is one
	AccountKey []byte          // names accounts in logs and in Attempts
	Health     appapi.Health
	SandboxURL string // loopback address of the pretend platform, empty = none
	Log        *slog.Logger
	Metrics    prometheus.Registerer
	Clock      clock.Clock
	Version    string
}

// Server is the edge; it serves one listener.
type Server struct {
	cfg      Config
	deps     Deps
	app      *fiber.App
	table    *route.Table
	session  *appapi.API
	trusted  []netip.Prefix
	draining atomic.Bool
	metrics  *metrics
	// forwarded limits the log of forwarding headers that are not believed.
	forwarded rarely
	// unread limits the log of trusted proxies that name their clients in other headers than X-Forwarded-For.
	unread   rarely
	known    map[string]bool // patterns, for logs and metrics
	document []byte
	page     *page
	sandbox  *sandbox

	mu      sync.Mutex
	ln      *listener
	stopped bool
}

// New builds the edge. Nothing listens yet.
func New(cfg Config, deps Deps) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, deps: deps, known: map[string]bool{}}
	var err error
	if s.trusted, err = proxies(cfg.TrustedProxies); err != nil {
		return nil, err
	}
	if s.metrics, err = newMetrics(deps.Metrics); err != nil {
		return nil, err
	}
	if s.sandbox, err = newSandbox(deps.SandboxURL); err != nil {
		return nil, err
	}
	if err := s.describe(); err != nil {
		return nil, err
	}
	s.build()
	return s, nil
}

// interfaceVersion stands in the document that is committed, so that it only changes with the interface; a server's document has its own version.
const interfaceVersion = "1.0.1"

// OpenAPI is the document of every route, the same bytes each time.
func OpenAPI() ([]byte, error) {
	s := &Server{cfg: Config{BaseURL: "http://localhost"}, deps: Deps{Version: interfaceVersion}}
	s.routes()
	return s.table.Document()
}

// describe makes the table and all that is made of it.
func (s *Server) describe() (err error) {
	s.routes()
	for _, r := range slices.Concat(s.table.Built(), s.table.NotBuilt(), s.table.NotBuiltBeyond()) {
		s.known[r.Path] = true
	}
	if s.document, err = s.table.Document(); err != nil {
		return err
	}
	s.page, err = newPage(s.table.API().OpenAPI(), s.table.NotBuilt())
	return err
}

func (s *Server) build() {
	s.app = fiber.New(fiber.Config{
		Immutable: true, DisableStartupMessage: true, CaseSensitive: true,
		StreamRequestBody: true, DisablePreParseMultipartForm: true,
		ErrorHandler: s.refuse, EnableTrustedProxyCheck: true,
		ReadTimeout: s.cfg.Timeout, WriteTimeout: s.cfg.Timeout, IdleTimeout: idleTimeout, ReadBufferSize: headerLimit,
	})
	s.app.Use(s.observe, s.recovering(), s.warnForwarded, s.secureHeaders, s.cors(), s.storable)
	s.table.Mount(s.app)
	server := s.app.Server()
	server.Handler = guardBodies(s.app.Handler(), s.refuseEarly, s.draining.Load)
	malformed := server.ErrorHandler
	server.ErrorHandler = func(ctx *fasthttp.RequestCtx, err error) {
		malformed(ctx, err)
		request.HangUp(ctx)
	}
	server.CloseOnShutdown = true
}

// Listen serves until Shutdown; it returns nil then, also when Shutdown came first.
func (s *Server) Listen(ln net.Listener) error {
	own := listenOn(ln, s.connRules())
	if !s.hold(own) {
		return own.Close()
	}
	if err := s.app.Listener(own); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Shutdown tells the health check, takes no new connections and waits for running requests until ctx ends. A request that is still being sent then, or an answer
// that is still being read, has a moment to come to its end.
func (s *Server) Shutdown(ctx context.Context) error {
	s.draining.Store(true)
	s.mu.Lock()
	s.stopped = true
	ln := s.ln
	s.mu.Unlock()
	if ln == nil {
		return nil
	}
	patience := time.AfterFunc(shutdownPatience, ln.hurry)
	defer patience.Stop()
	// The server may not have begun to accept, and then knows nothing of the listener yet.
	return errors.Join(ln.Close(), s.app.ShutdownWithContext(ctx))
}

// hold keeps the listener for Shutdown; false when Shutdown came first.
func (s *Server) hold(ln *listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ln = ln
	return !s.stopped
}

// ServeQueue answers GET /monitor/queue/{name} of the private listener, which asks nobody for a token.
func (s *Server) ServeQueue(w http.ResponseWriter, r *http.Request) { s.session.ServeQueue(w, r) }

// Drain makes the health check fail while everything else goes on, so that a balancer looks elsewhere before Shutdown.
func (s *Server) Drain() { s.draining.Store(true) }

func (s *Server) appAPI() *appapi.API {
	return appapi.New(appapi.Config{
		Origins: append(s.cfg.dashboards(), origin(s.cfg.Base())), Secure: s.cfg.secure(), AppLimit: s.cfg.AppLimit, Timeout: s.cfg.Timeout, Version: s.deps.Version, MonitorToken: s.cfg.MonitorToken,
	}, appapi.Deps{
		Channels: s.deps.Channels, Queue: s.deps.Queue, Accounts: s.deps.Accounts, Health: s.deps.Health,
		Attempts: s.deps.Attempts, AccountKey: s.deps.AccountKey, Draining: s.draining.Load, Client: s.clientName, Site: s.clientSite,
		Clock: s.deps.Clock, Log: s.deps.Log,
	})
}

func (s *Server) publicAPI() *publicv1.API {
	return publicv1.New(publicv1.Config{BaseURL: s.cfg.Base(), UploadLimit: s.cfg.UploadLimit},
		publicv1.Deps{Posts: s.deps.Posts, Channels: s.deps.Channels, Media: s.deps.Media})
}
