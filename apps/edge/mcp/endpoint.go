package mcp

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/problem"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
)

// Guard is the first handler of the endpoint's routes. It rejects requests from pages on other
// sites, and converts errors from later handlers to responses that MCP clients understand.
func (a *API) Guard(c *fiber.Ctx) error {
	err := a.checkSource(c)
	if err == nil {
		err = c.Next()
	}
	if err == nil {
		return nil
	}
	return a.refuse(c, err)
}

// refuse responds with a JSON-RPC error that also has the members of the service's other error
// responses. A refusal specifies its own status. For any other error, the status depends on the
// error's kind; see package problem.
func (a *API) refuse(c *fiber.Ctx, err error) error {
	var routing *fiber.Error
	info := request.From(c.Context())
	if !errors.As(err, &routing) {
		info.Err = err
	}
	if errors.Is(info.Body.Err(), os.ErrDeadlineExceeded) {
		err = fiber.ErrRequestTimeout
	}
	body := problem.Of(err, a.deps.BillingURL)
	r := &refusal{status: body.StatusCode, code: codeRefused}
	errors.As(err, &r)
	body.StatusCode = r.status
	for name, values := range body.GetHeaders() {
		for _, v := range values {
			c.Set(name, v)
		}
	}
	switch {
	case r.challenge != "":
		c.Set(fiber.HeaderWWWAuthenticate, r.challenge)
	case r.status == http.StatusUnauthorized:
		c.Set(fiber.HeaderWWWAuthenticate, a.challenge(c))
	case r.status == http.StatusMethodNotAllowed:
		c.Set(fiber.HeaderAllow, http.MethodPost)
	}
	out := rpcRefusal{Version: "2.0", ID: rawID(r.id), RPC: rpcError{Code: r.code, Message: body.Msg}}
	if r.status >= http.StatusBadRequest {
		out.Fault = body
	}
	return c.Status(r.status).JSON(out)
}

// rpcRefusal is a JSON-RPC error with the members of a problem.Fault. Fault is nil if the response
// status is 200.
type rpcRefusal struct {
	Version string   `json:"jsonrpc"`
	ID      rawID    `json:"id"`
	RPC     rpcError `json:"error"`
	*problem.Fault
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// rawID is a message's id as the client sent it. If the id is unknown, rawID is encoded as null.
type rawID []byte

// MarshalJSON implements json.Marshaler. The error is always nil.
func (id rawID) MarshalJSON() ([]byte, error) {
	if len(id) == 0 {
		return []byte("null"), nil
	}
	return id, nil
}

const tag = "Agents"

// Post returns the endpoint that answers one message from an MCP client.
func (a *API) Post() route.Endpoint {
	d := route.Describe(tag, "Send a message to the MCP server", 400, 404, 405, 413, 415)
	d.Description = "The body is one JSON-RPC message of the Model Context Protocol. The service keeps no sessions and " +
		"answers with JSON. The method tools/list lists the tools. Tool errors are results with isError, not " +
		"error responses."
	object := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	d.RequestBody = &huma.RequestBody{
		Required: true, Content: map[string]*huma.MediaType{fiber.MIMEApplicationJSON: {Schema: object}},
	}
	return route.Raw(d, a.post,
		route.Content(http.StatusOK, "The JSON-RPC response.", fiber.MIMEApplicationJSON, object),
		route.Content(http.StatusAccepted, "The message was a notification.", "", nil))
}

// Refuse returns the endpoint for the HTTP methods that open streams and end sessions on other MCP
// servers. The endpoint responds with 405, because this server has neither streams nor sessions.
func (a *API) Refuse(summary string) route.Endpoint {
	return route.Raw(route.Describe(tag, summary, 405), func(*fiber.Ctx) error { return fiber.ErrMethodNotAllowed },
		route.Content(http.StatusMethodNotAllowed, "Always: the service has no streams and no sessions.",
			fiber.MIMEApplicationJSON, &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}))
}

func (a *API) post(c *fiber.Ctx) error {
	info := request.From(c.Context())
	body := info.Body.Loaded()
	m, err := readMessage(body)
	if err != nil {
		return err
	}
	if err := m.checkMethod(c.Get("Mcp-Protocol-Version")); err != nil {
		return err
	}
	if t := a.byName[m.tool]; t != nil && t.writes && asksToWrite(info.Principal) {
		return &refusal{
			status: http.StatusForbidden, code: codeRefused, id: m.id,
			challenge: a.challengeOfScope(),
			err:       fault.New(fault.Forbidden, "mcp.post", "This tool needs the scope mcp:write, which the token lacks."),
		}
	}
	return a.forward(c, m, body)
}

// challengeOfScope returns the WWW-Authenticate header that makes a client request all scopes.
func (a *API) challengeOfScope() string {
	return `Bearer error="insufficient_scope", scope="` + scopes + `", resource_metadata="` + a.deps.BaseURL +
		`/.well-known/oauth-protected-resource/mcp"`
}

// forward passes a message to the SDK and sends the SDK's response.
func (a *API) forward(c *fiber.Ctx, m message, body []byte) error {
	r, err := sdkRequest(c, body)
	if err != nil {
		return fault.Wrap(fault.Internal, "mcp.forward", "", err)
	}
	w := &recorder{header: http.Header{}}
	a.server.ServeHTTP(w, r)
	switch {
	case w.status == 0 && w.body.Len() == 0:
		return &refusal{
			status: http.StatusServiceUnavailable, code: codeInternal, id: m.id,
			err: fault.New(fault.Unavailable, "mcp.forward", "The request took too long. "+
				"Read the current state before you repeat it."),
		}
	case w.status >= http.StatusBadRequest && !strings.HasPrefix(w.header.Get(fiber.HeaderContentType), fiber.MIMEApplicationJSON):
		return &refusal{
			status: w.status, code: codeInvalidRequest, id: m.id,
			err: fault.New(fault.Invalid, "mcp.forward", strings.TrimSpace(w.body.String())),
		}
	}
	if w.status != 0 {
		c.Status(w.status)
	}
	if w.body.Len() > 0 {
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	}
	return c.Send(w.body.Bytes())
}

// notForwarded lists the headers that are not passed to the SDK. The SDK rejects some of their
// values, and the tools do not need them. Clients get JSON regardless of their Accept header.
var notForwarded = map[string]bool{
	"Accept": true, "Authorization": true, "Content-Type": true, "Cookie": true, "Last-Event-Id": true,
	"Mcp-Session-Id": true,
}

// sdkRequest returns the request in the form that the SDK expects. The result's context has the
// deadline and the values of the original request. Unlike the context from Fiber's adaptor, it is
// not reused for other requests.
func sdkRequest(c *fiber.Ctx, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(route.RequestContext(c), http.MethodPost, Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range c.Request().Header.All() {
		if key := http.CanonicalHeaderKey(string(name)); !notForwarded[key] {
			r.Header.Add(key, string(value))
		}
	}
	r.Header.Set(fiber.HeaderAccept, "application/json, text/event-stream")
	r.Header.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	return r, nil
}

// recorder holds the SDK's response. status is 0 if the SDK did not set a status.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// Write implements http.ResponseWriter. The error is always nil.
func (w *recorder) Write(p []byte) (int, error) { return w.body.Write(p) }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}
