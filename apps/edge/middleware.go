package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/cors"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"crier/apps/edge/problem"
	"crier/apps/edge/request"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/telemetry"
	"crier/publishing"
)

// Every request passes, in this order: guardBodies, observe (request id, log, metrics), recovering, warnForwarded, secureHeaders, cors, storable;
// then what its route asks for: authentication (key or session) and admission before the body is read, and a deadline for the rest.

const (
	idleTimeout = time.Minute
	headerLimit = 16 << 10
)

// guardBodies stands around everything, so that no answer, however early, leaves a part of a body to be taken for the next request.
func guardBodies(next fasthttp.RequestHandler, refuse func(*fasthttp.RequestCtx, error), draining func() bool) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		body := request.Start(ctx).Body
		switch {
		case misframed(&ctx.Request.Header):
			refuse(ctx, errMisframed)
		case !knownVersion(&ctx.Request.Header):
			refuse(ctx, fiber.NewError(http.StatusHTTPVersionNotSupported))
		case !slices.Contains([]string{"", "100-continue"}, strings.ToLower(string(ctx.Request.Header.Peek(fiber.HeaderExpect)))):
			refuse(ctx, fiber.ErrExpectationFailed)
		case !slices.Contains(fiber.DefaultMethods, string(ctx.Method())):
			refuse(ctx, fiber.ErrMethodNotAllowed)
		default:
			next(ctx)
		}
		body.Finish(ctx)
		if draining() {
			ctx.SetConnectionClose() // so that no client sends a request into a connection that is about to end
		}
	}
}

var errMisframed = fault.New(fault.Invalid, "edge.guardBodies",
	"The request does not say clearly where its body ends: send one Content-Length, or Transfer-Encoding: chunked over HTTP/1.1, no folded headers, and CRLF at the end of each line.")

func knownVersion(h *fasthttp.RequestHeader) bool {
	version := string(h.Protocol())
	return version == "HTTP/1.1" || version == "HTTP/1.0"
}

// misframed tells whether whoever stands before us may see the body end elsewhere than we do: by more than one length or framing, a framing besides
// a length, a framing that is not chunked or not of HTTP/1.1, a header that goes on in the next line, or a line that ends without CR.
func misframed(h *fasthttp.RequestHeader) bool {
	lengths, framings := 0, 0
	for line := range bytes.Lines(h.RawHeaders()) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch {
		case line[0] == ' ' || line[0] == '\t' || !bytes.HasSuffix(line, []byte("\r\n")):
			return true
		case bytes.EqualFold(name, []byte(fiber.HeaderContentLength)):
			lengths++
		case bytes.EqualFold(name, []byte(fiber.HeaderTransferEncoding)):
			framings++
			if !h.IsHTTP11() || !bytes.EqualFold(bytes.TrimSpace(value), []byte("chunked")) {
				return true
			}
		}
	}
	return lengths+framings > 1
}

// refuseEarly answers what no route may see, and lets nothing follow on the connection.
func (s *Server) refuseEarly(ctx *fasthttp.RequestCtx, cause error) {
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	if err := s.refuse(c, cause); err != nil {
		ctx.SetStatusCode(http.StatusBadRequest)
	}
	ctx.SetConnectionClose()
}

// pace returns the pace of a body or an answer that begins now and that the time of a request may not suffice for.
func (s *Server) pace() *pace {
	now := clock.System{}.Now()
	return &pace{begun: now, end: now.Add(s.cfg.UploadTimeout), grace: s.cfg.Timeout, rate: s.cfg.UploadRate}
}

// upload gives the body of a route that takes large ones the time that it needs on the wire, as long as it arrives with the
// least rate. It comes after the authentication: strangers, and other routes, have the time of a request.
func (s *Server) upload(c *fiber.Ctx) error {
	if own, ok := c.Context().Conn().(*conn); ok {
		own.in = s.pace()
		defer func() { own.in = nil }()
	}
	return c.Next()
}

// refuse is where every fault becomes an answer.
func (s *Server) refuse(c *fiber.Ctx, err error) error {
	var routing *fiber.Error
	info := request.From(c.Context())
	if !errors.As(err, &routing) { // the router's words repeat the path
		info.Err = err
	}
	if errors.Is(info.Body.Err(), os.ErrDeadlineExceeded) { // whatever could not be done without the rest of it
		err = fiber.ErrRequestTimeout
	}
	return problem.Of(err, s.cfg.frontend()+"/billing").Write(c)
}

var saneID = regexp.MustCompile(`^[A-Za-z0-9._-]{8,64}$`)

// observe names the request, and tells log and metrics how it went: by the route's pattern, never by path or organization.
func (s *Server) observe(c *fiber.Ctx) error {
	start := s.deps.Clock.Now()
	info := request.From(c.Context())
	if info.ID = c.Get(fiber.HeaderXRequestID); !saneID.MatchString(info.ID) {
		info.ID = uuid.NewString()
	}
	c.Set(fiber.HeaderXRequestID, info.ID)
	c.SetUserContext(telemetry.WithRequestID(context.Background(), info.ID))
	if err := c.Next(); err != nil {
		if err := s.refuse(c, err); err != nil {
			return err
		}
	}
	s.tell(c, info, s.deps.Clock.Now().Sub(start))
	return nil
}

func (s *Server) tell(c *fiber.Ctx, info *request.Info, took time.Duration) {
	status, pattern := c.Response().StatusCode(), s.pattern(c)
	s.metrics.took.WithLabelValues(c.Method(), pattern, strconv.Itoa(status)).Observe(took.Seconds())
	level := problem.Level(status)
	attrs := []slog.Attr{
		slog.String("method", c.Method()), slog.String("route", pattern), slog.Int("status", status), slog.Duration("took", took),
	}
	if status >= 400 && info.Err != nil {
		attrs = append(attrs, slog.Any("fault", info.Err))
	}
	s.deps.Log.LogAttrs(c.UserContext(), level, "request", attrs...)
}

func (s *Server) pattern(c *fiber.Ctx) string {
	p := strings.Split(c.Route().Path, "/")
	for i, part := range p {
		if name, ok := strings.CutPrefix(part, ":"); ok {
			p[i] = "{" + name + "}"
		}
	}
	pattern := strings.Join(p, "/")
	if pattern == "/" && c.Path() != "/" || !s.known[pattern] {
		return "unmatched"
	}
	return pattern
}

type metrics struct{ took *prometheus.HistogramVec }

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "crier_http_request_seconds", Help: "Time to answer a request.", Buckets: prometheus.DefBuckets,
	}, []string{"method", "route", "status"})}
	if err := reg.Register(m.took); err != nil {
		return nil, fault.Wrap(fault.Internal, "edge.newMetrics", "", err)
	}
	return m, nil
}

func (s *Server) recovering() fiber.Handler {
	return recover.New(recover.Config{EnableStackTrace: true, StackTraceHandler: func(c *fiber.Ctx, cause any) {
		s.deps.Log.ErrorContext(c.UserContext(), "a handler broke down", "cause", cause, "stack", string(debug.Stack()))
	}})
}

func (s *Server) secureHeaders(c *fiber.Ctx) error {
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderXFrameOptions, "DENY")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'")
	c.Set(fiber.HeaderCacheControl, "no-store")
	if strings.HasPrefix(s.cfg.Base(), "https://") {
		c.Set(fiber.HeaderStrictTransportSecurity, "max-age=31536000")
	}
	return c.Next()
}

// cors lets the dashboard's own origins in, and nobody else's. The document is for all origins and says so itself, without credentials.
func (s *Server) cors() fiber.Handler {
	return cors.New(cors.Config{
		Next:         func(c *fiber.Ctx) bool { return strings.TrimRight(c.Path(), "/") == documentPath }, // the router ignores a slash at the end
		AllowOrigins: strings.Join(s.cfg.dashboards(), ","), AllowCredentials: true, MaxAge: 600,
		AllowMethods:  "GET,HEAD,POST,PUT,DELETE",
		AllowHeaders:  "Content-Type,Authorization,auth,showorg,impersonate,Idempotency-Key",
		ExposeHeaders: "reload,onboarding,activate,logout,X-RateLimit-Limit,X-RateLimit-Remaining,X-RateLimit-Reset,Retry-After,X-Request-Id,X-Total-Count,X-Has-More,Idempotent-Replayed,Idempotent-Mismatch",
	})
}

// storable refuses queries with characters that cannot be stored. In a path they name nothing, which every route says in its own words.
func (s *Server) storable(c *fiber.Ctx) error {
	for name, value := range c.Context().QueryArgs().All() {
		if !publishing.Storable(string(name)) || !publishing.Storable(string(value)) {
			return fault.New(fault.Invalid, "edge.storable", "The query holds a character that cannot be stored, such as NUL, or is not UTF-8.")
		}
	}
	return c.Next()
}

// ordinaryValues is how many values a JSON body may hold that is decoded at once: each costs more memory than its bytes.
const ordinaryValues = 10_000

// body reads a JSON body to its end before anything looks at the request. It may have limit bytes, and so many values; 0 =
// its handler bounds them.
func (s *Server) body(limit int64, values int) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if c.Method() == http.MethodGet || c.Method() == http.MethodHead || c.Method() == http.MethodDelete {
			return c.Next()
		}
		if kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType)); c.Get(fiber.HeaderContentType) != "" && (err != nil || kind != fiber.MIMEApplicationJSON) {
			return fault.New(fault.Invalid, "edge.body", "The body must be JSON: send it with Content-Type: application/json.")
		}
		if encoding := c.Get(fiber.HeaderContentEncoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
			return fiber.ErrUnsupportedMediaType
		}
		data, err := request.From(c.Context()).Body.Load(c.Context(), limit)
		if err != nil {
			return err
		}
		if values > 0 && valuesOf(data) > values {
			return &fault.Error{Kind: fault.Invalid, Op: "edge.body", Message: "The body is not valid.",
				Fields: []fault.Field{{Name: "body", Message: fmt.Sprintf("must hold at most %d values", values)}}}
		}
		return c.Next()
	}
}

// valuesOf counts the values of JSON, members and elements alike: one, and one for each that follows a comma or begins a
// list or an object.
func valuesOf(data []byte) int {
	n, quoted := 1, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && (c == ',' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}

func (s *Server) deadline(d time.Duration) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx, cancel := context.WithTimeout(c.UserContext(), d)
		defer cancel()
		c.SetUserContext(ctx)
		return c.Next()
	}
}

// key finds whose API key the request carries. The value is taken as it is: Bearer in front of it is wrong.
func (s *Server) key(c *fiber.Ctx) error {
	value := c.Get(fiber.HeaderAuthorization)
	if value == "" {
		return fault.New(fault.Unauthenticated, "edge.key", "No API key found: send it in the header Authorization.")
	}
	if len(value) >= 7 && strings.EqualFold(value[:7], "Bearer ") {
		return fault.New(fault.Unauthenticated, "edge.key", "Invalid API key: send it without Bearer.")
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), s.cfg.Timeout)
	defer cancel()
	p, err := s.deps.Accounts.Authenticate(ctx, value)
	if err != nil {
		return err
	}
	request.From(c.Context()).Principal = p
	return c.Next()
}

// admit counts the request of its organization and tells what is left, whatever the answer.
func (s *Server) admit(c *fiber.Ctx) error {
	a := s.deps.Limiter.Admit(c.UserContext(), request.From(c.Context()).Principal.Org)
	c.Set("X-RateLimit-Limit", strconv.Itoa(a.Limit))
	c.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, a.Remaining)))
	c.Set("X-RateLimit-Reset", strconv.FormatInt((a.Reset.UnixMilli()+999)/1000, 10))
	if !a.Allowed {
		return &fault.Error{
			Kind: fault.RateLimited, Op: "edge.admit", Message: "Too many requests; wait before the next one.", RetryAfter: max(time.Second, a.RetryAfter),
		}
	}
	return c.Next()
}
