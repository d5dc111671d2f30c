package route

import (
	"context"
	"crypto/tls"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
)

// adapter is the router that huma registers operations with: it puts them into the table. It replaces huma's own adapter
// for Fiber v2, whose package links Fiber v3 as well.
type adapter struct{ s *shared }

// Handle adds the operation to the table, behind the handlers that are pending.
func (a adapter) Handle(op *huma.Operation, handle func(huma.Context)) {
	a.s.add(op.Method, op.Path, append(slices.Clone(a.s.pending), func(c *fiber.Ctx) error {
		handle(operationContext{op, c, requestContext(c)})
		return nil
	}), built)
}

// ServeHTTP answers 501: a table is served by Fiber, after Mount.
func (a adapter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, http.StatusText(http.StatusNotImplemented), http.StatusNotImplemented)
}

// requestContext returns the user context of c with a copy of the values of its request. A handler may keep it: it never
// shows the values of a later request, as fasthttp's own context does, which is used again.
func requestContext(c *fiber.Ctx) context.Context {
	ctx := c.UserContext()
	c.Context().VisitUserValuesAll(func(key, value any) { ctx = context.WithValue(ctx, key, value) })
	return ctx
}

// operationContext is a request of Fiber as huma sees it. It is valid until the handler returns.
type operationContext struct {
	op  *huma.Operation
	c   *fiber.Ctx
	ctx context.Context
}

func (o operationContext) Operation() *huma.Operation { return o.op }
func (o operationContext) Context() context.Context   { return o.ctx }

func (o operationContext) Method() string            { return o.c.Method() }
func (o operationContext) Host() string              { return o.c.Hostname() }
func (o operationContext) RemoteAddr() string        { return o.c.Context().RemoteAddr().String() }
func (o operationContext) TLS() *tls.ConnectionState { return o.c.Context().TLSConnectionState() }

// Version returns the protocol of the request, such as HTTP/1.1.
func (o operationContext) Version() huma.ProtoVersion {
	proto := string(o.c.Request().Header.Protocol())
	major, minor, _ := http.ParseHTTPVersion(proto)
	return huma.ProtoVersion{Proto: proto, ProtoMajor: major, ProtoMinor: minor}
}

// URL returns the address that was asked for; it is empty when it cannot be parsed.
func (o operationContext) URL() url.URL {
	u, err := url.ParseRequestURI(o.c.OriginalURL())
	if err != nil {
		return url.URL{}
	}
	return *u
}

func (o operationContext) Param(name string) string  { return o.c.Params(name) }
func (o operationContext) Query(name string) string  { return o.c.Query(name) }
func (o operationContext) Header(name string) string { return o.c.Get(name) }

// EachHeader calls f with every header of the request.
func (o operationContext) EachHeader(f func(name, value string)) {
	for name, value := range o.c.Request().Header.All() {
		f(string(name), string(value))
	}
}

// BodyReader returns the body as a middleware has loaded it: nil when there is none. It is not decompressed.
func (o operationContext) BodyReader() io.Reader { return o.c.Request().BodyStream() }

// GetMultipartForm returns the parsed form.
func (o operationContext) GetMultipartForm() (*multipart.Form, error) { return o.c.MultipartForm() }

// SetReadDeadline changes nothing: the deadlines of a connection are the server's, and the body was read within them.
func (o operationContext) SetReadDeadline(time.Time) error { return nil }

func (o operationContext) SetStatus(code int)              { o.c.Status(code) }
func (o operationContext) Status() int                     { return o.c.Response().StatusCode() }
func (o operationContext) SetHeader(name, value string)    { o.c.Set(name, value) }
func (o operationContext) AppendHeader(name, value string) { o.c.Response().Header.Add(name, value) }
func (o operationContext) BodyWriter() io.Writer           { return o.c.Context() }

// Body returns the body of an answer that is encoded already: 200, of a content type. The pieces are not copied and must
// not be changed any more.
func Body(contentType string, pieces net.Buffers) func(huma.Context) {
	return func(ctx huma.Context) {
		ctx.SetStatus(http.StatusOK)
		ctx.SetHeader("Content-Type", contentType)
		size := 0
		for _, p := range pieces {
			size += len(p)
		}
		if o, ok := ctx.(operationContext); ok {
			o.c.Response().SetBodyStream(&pieces, size)
		}
	}
}
