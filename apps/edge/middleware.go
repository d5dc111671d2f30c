package edge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/cors"
	"github.com/gofiber/fiber/v2/middleware/recover"
	"github.com/valyala/fasthttp"

	"crier/apps/edge/docs"
	"crier/apps/edge/mcp"
	oauthapi "crier/apps/edge/oauth"
	"crier/apps/edge/problem"
	"crier/apps/edge/request"
	"crier/oidc"
	"crier/platform/fault"
	"crier/platform/paste"
	"crier/publishing"
	"crier/tenancy"
)

// Every request passes through guardBodies, observe (request id, log, metrics), recovering,
// clients.warn, GuardCookies, clients.note, secureHeaders, cors and checkQuery, in this order. Then
// it passes through the guards of its route; see newGuards.

const (
	idleTimeout = time.Minute
	headerLimit = 16 << 10 // bytes
)

// guardBodies returns the outermost handler. It calls joinSlashes before any handler reads the
// path. It rejects requests whose end is ambiguous, and requests with an unsupported HTTP version,
// expectation or method. After each request, it consumes the rest of the body or closes the
// connection, so that no part of a body is ever read as the next request.
func guardBodies(next fasthttp.RequestHandler, refuse func(*fasthttp.RequestCtx, error),
	draining func() bool) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		body := request.Start(ctx).Body
		joinSlashes(&ctx.Request)
		expect := strings.ToLower(string(ctx.Request.Header.Peek(fiber.HeaderExpect)))
		switch {
		case ambiguousFraming(&ctx.Request.Header):
			refuse(ctx, errAmbiguousFraming)
		case !knownVersion(&ctx.Request.Header):
			refuse(ctx, fiber.NewError(http.StatusHTTPVersionNotSupported))
		case expect != "" && expect != "100-continue":
			refuse(ctx, fiber.ErrExpectationFailed)
		case !slices.Contains(fiber.DefaultMethods, string(ctx.Method())):
			refuse(ctx, fiber.ErrMethodNotAllowed)
		default:
			next(ctx)
		}
		body.Finish(ctx)
		if draining() {
			// Clients must not send another request on a connection that is about to close.
			ctx.SetConnectionClose()
		}
	}
}

// joinSlashes collapses each run of slashes in a request's path into one slash. A client that
// appends paths to a base URL ending in a slash sends //public/v1/posts. fasthttp would read this
// as a path on the host "public". Encoded slashes, dots and the query are left unchanged.
func joinSlashes(req *fasthttp.Request) {
	target := req.Header.RequestURI()
	begin, end := 0, len(target)
	if i := bytes.IndexAny(target, "?#"); i >= 0 {
		end = i
	}
	// In an absolute-form request target, the path follows the scheme and the host.
	if i := bytes.Index(target[:end], []byte("://")); i > 0 && !bytes.Contains(target[:i], []byte("/")) {
		begin = i + len("://")
		begin += max(0, bytes.IndexByte(target[begin:end], '/'))
	}
	if !bytes.Contains(target[begin:end], []byte("//")) {
		return
	}
	path := slices.CompactFunc(bytes.Clone(target[begin:end]), func(a, b byte) bool { return a == '/' && b == '/' })
	req.SetRequestURIBytes(slices.Concat(target[:begin], path, target[end:]))
}

var errAmbiguousFraming = fault.New(fault.Invalid, "edge.guardBodies",
	"The request does not clearly say where its body ends. Send one Content-Length, "+
		"or Transfer-Encoding: chunked over HTTP/1.1, no folded headers, and CRLF at the end of each line.")

func knownVersion(h *fasthttp.RequestHeader) bool {
	version := string(h.Protocol())
	return version == "HTTP/1.1" || version == "HTTP/1.0"
}

// ambiguousFraming reports whether a proxy could disagree with this server about where the body
// ends, which would allow request smuggling. This is the case if the request has
//
//   - more than one Content-Length or Transfer-Encoding, or one of each
//   - a Transfer-Encoding other than chunked, or any Transfer-Encoding if the version is not
//     HTTP/1.1
//   - a folded header, or a line that ends without CR
func ambiguousFraming(h *fasthttp.RequestHeader) bool {
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

// refuseEarly responds to a request that must not reach any route, and closes the connection.
func (s *Server) refuseEarly(ctx *fasthttp.RequestCtx, cause error) {
	c := s.app.AcquireCtx(ctx)
	defer s.app.ReleaseCtx(c)
	if err := s.refuse(c, cause); err != nil {
		ctx.SetStatusCode(http.StatusBadRequest)
	}
	ctx.SetConnectionClose()
}

// refuse responds with the status and body for an error; see package problem. If the request body
// did not arrive in time, the status is 408, because err is then only a consequence of the timeout.
func (s *Server) refuse(c *fiber.Ctx, err error) error {
	var routing *fiber.Error
	info := request.From(c.Context())
	// A router error contains the path, which must not be logged.
	if !errors.As(err, &routing) {
		info.Err = err
	}
	if errors.Is(info.Body.Err(), os.ErrDeadlineExceeded) {
		err = fiber.ErrRequestTimeout
	}
	return problem.Of(err, s.cfg.Frontend()+"/billing").Write(c)
}

// recovering responds with 500 after a panic in a handler, and logs the panic with its stack.
func (s *Server) recovering() fiber.Handler {
	return recover.New(recover.Config{EnableStackTrace: true, StackTraceHandler: func(c *fiber.Ctx, cause any) {
		s.deps.Log.ErrorContext(c.UserContext(), "panic in handler", "cause", cause, "stack", string(debug.Stack()))
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

// cors allows requests with credentials from the dashboard's origins. It skips paths that allow
// other origins: the OpenAPI documents, the paths that openCORS handles, and the MCP endpoint.
func (s *Server) cors() fiber.Handler {
	return cors.New(cors.Config{
		Next: func(c *fiber.Ctx) bool { // the router ignores a trailing slash
			path := strings.TrimRight(c.Path(), "/")
			return path == docs.DocumentPath || path == docs.PublicDocumentPath || oauthapi.IsOpen(path) || mcp.Serves(path)
		},
		AllowOrigins: strings.Join(s.cfg.dashboards(), ","), AllowCredentials: true, MaxAge: 600,
		AllowMethods: "GET,HEAD,POST,PUT,DELETE",
		AllowHeaders: "Content-Type,Authorization,auth,showorg,impersonate,Idempotency-Key",
		ExposeHeaders: "reload,onboarding,activate,logout,X-RateLimit-Limit,X-RateLimit-Remaining,X-RateLimit-Reset," +
			"Retry-After,X-Request-Id,X-Total-Count,X-Has-More,Idempotent-Replayed,Idempotent-Mismatch",
	})
}

// openCORS lets pages from all origins call the endpoints for OAuth clients without cookies,
// because a client can run in a browser.
func openCORS() fiber.Handler {
	return cors.New(cors.Config{
		Next:         func(c *fiber.Ctx) bool { return !oauthapi.IsOpen(strings.TrimRight(c.Path(), "/")) },
		AllowOrigins: "*", AllowMethods: "GET,HEAD,POST", MaxAge: 3600,
		ExposeHeaders: "WWW-Authenticate,Retry-After,X-Request-Id",
	})
}

// checkQuery rejects queries that contain characters that the database cannot store. It does not
// check the path. An id with one of these characters cannot be parsed, so the route responds with
// 404.
func checkQuery(c *fiber.Ctx) error {
	for name, value := range c.Context().QueryArgs().All() {
		if !publishing.Storable(string(name)) || !publishing.Storable(string(value)) {
			return fault.New(fault.Invalid, "edge.checkQuery",
				"The query contains a character that cannot be stored, such as NUL, or is not UTF-8.")
		}
	}
	return c.Next()
}

// maxBodyValues is the maximum number of values in a JSON body that is decoded as a whole. The
// number is limited because a decoded value takes more memory than its encoding.
const maxBodyValues = 10_000

// readBody returns a handler that reads a whole JSON body, of at most limit bytes, before the next
// handler runs. It rejects a body with more than maxValues values. If maxValues is 0, the route's
// handler must limit the number of values. The handler returns Invalid or TooLarge. A body with a
// Content-Encoding gets a 415 response.
func readBody(limit int64, maxValues int) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if c.Method() == http.MethodGet || c.Method() == http.MethodHead || c.Method() == http.MethodDelete {
			return c.Next()
		}
		contentType := c.Get(fiber.HeaderContentType)
		kind, _, err := mime.ParseMediaType(contentType)
		if contentType != "" && (err != nil || kind != fiber.MIMEApplicationJSON) {
			return fault.New(fault.Invalid, "edge.readBody",
				"The body must be JSON. Send it with Content-Type: application/json.")
		}
		if encoding := c.Get(fiber.HeaderContentEncoding); encoding != "" && !strings.EqualFold(encoding, "identity") {
			return fiber.ErrUnsupportedMediaType
		}
		data, err := request.From(c.Context()).Body.Load(c.Context(), limit)
		if err != nil {
			return err
		}
		if maxValues > 0 && countValues(data) > maxValues {
			return &fault.Error{Kind: fault.Invalid, Op: "edge.readBody", Message: "The body is not valid.",
				Fields: []fault.Field{{Name: "body", Message: fmt.Sprintf("must contain at most %d values", maxValues)}}}
		}
		return c.Next()
	}
}

// textAsJSON makes later handlers treat a text/plain body as JSON.
func textAsJSON(c *fiber.Ctx) error {
	kind, _, err := mime.ParseMediaType(c.Get(fiber.HeaderContentType))
	if err == nil && kind == fiber.MIMETextPlain {
		c.Request().Header.SetContentType(fiber.MIMEApplicationJSON)
	}
	return c.Next()
}

// countValues returns an upper bound on the number of values in valid JSON: one, plus one for each
// comma and each opening bracket or brace outside strings.
func countValues(data []byte) int {
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

// deadline returns a handler that ends the request's context after d. The time starts when the
// handler runs, after readBody has read the body.
func deadline(d time.Duration) fiber.Handler {
	return func(c *fiber.Ctx) error {
		ctx, cancel := context.WithTimeout(c.UserContext(), d)
		defer cancel()
		c.SetUserContext(ctx)
		return c.Next()
	}
}

// authenticate finds the principal for the API key or access token in the Authorization header. It
// returns Unauthenticated if the credential is missing, unknown or revoked. It also returns
// Unauthenticated if a scheme such as Bearer precedes the credential.
func (s *Server) authenticate(c *fiber.Ctx) error {
	if err := s.authenticateKey(c); err != nil {
		return err
	}
	return c.Next()
}

// schemeOf returns the scheme, such as Bearer, that many clients put before the key in the
// Authorization header. found is false if value does not begin with a known scheme.
func schemeOf(value string) (scheme string, found bool) {
	sent, _, _ := strings.Cut(value, " ")
	for _, scheme := range []string{"Bearer", "Basic", "Token", "ApiKey"} {
		if len(sent) < len(value) && strings.EqualFold(sent, scheme) {
			return scheme, true
		}
	}
	return "", false
}

func (s *Server) authenticateKey(c *fiber.Ctx) error {
	value := c.Get(fiber.HeaderAuthorization)
	if value == "" {
		return fault.New(fault.Unauthenticated, "edge.authenticate",
			"No API key found: send it in the Authorization header.")
	}
	if scheme, found := schemeOf(value); found {
		message := "Invalid API key: send the key alone, without " + scheme + "."
		if strings.HasPrefix(paste.Word(value[len(scheme):]), oidc.AccessPrefix) {
			message = "Invalid access token: send the token alone, without " + scheme + "."
		}
		return fault.New(fault.Unauthenticated, "edge.authenticate", message)
	}
	ctx, cancel := context.WithTimeout(c.UserContext(), s.cfg.Timeout)
	defer cancel()
	p, err := s.lookUp(ctx, paste.Word(value))
	if err != nil {
		return err
	}
	request.ActFor(c, p)
	return nil
}

// lookUp returns the principal for an API key or access token.
func (s *Server) lookUp(ctx context.Context, value string) (tenancy.Principal, error) {
	if s.deps.OAuth.Grants != nil && strings.HasPrefix(value, oidc.AccessPrefix) {
		return s.deps.OAuth.Grants.Authenticate(ctx, value)
	}
	return s.deps.Accounts.Authenticate(ctx, value)
}

// admit counts the request toward its organization's limit. It returns RateLimited if the limit has
// already been reached. It sets the rate-limit headers in either case.
func (s *Server) admit(c *fiber.Ctx) error {
	a := s.deps.Limiter.Admit(c.UserContext(), request.From(c.Context()).Principal.Org)
	c.Set("X-RateLimit-Limit", strconv.Itoa(a.Limit))
	c.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, a.Remaining)))
	c.Set("X-RateLimit-Reset", strconv.FormatInt((a.Reset.UnixMilli()+999)/1000, 10))
	if !a.Allowed {
		return &fault.Error{
			Kind: fault.RateLimited, Op: "edge.admit", Message: "Too many requests; wait before the next one.",
			RetryAfter: max(time.Second, a.RetryAfter),
		}
	}
	return c.Next()
}
