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

// adapter adds operations registered with huma to the table. huma's own adapter for Fiber v2 is not
// used, because its package also links Fiber v3.
type adapter struct{ table *Table }

// Handle is called by huma.Register. The handlers in Table.before run before the operation's
// handler.
func (a adapter) Handle(op *huma.Operation, handle func(huma.Context)) {
	a.table.addHandlers(op.Method, op.Path, append(slices.Clone(a.table.before), func(c *fiber.Ctx) error {
		handle(operationContext{op: op, c: c, ctx: RequestContext(c)})
		return nil
	})...)
}

// ServeHTTP responds with 501. After Mount, Fiber serves the table.
func (a adapter) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, http.StatusText(http.StatusNotImplemented), http.StatusNotImplemented)
}

// RequestContext returns c's user context with a copy of the request's values. Unlike the fasthttp
// context, which is reused for later requests, the result may be kept by a handler.
func RequestContext(c *fiber.Ctx) context.Context {
	ctx := c.UserContext()
	c.Context().VisitUserValuesAll(func(key, value any) { ctx = context.WithValue(ctx, key, value) })
	return ctx
}

// operationContext adapts a Fiber request to huma.Context. It is valid until the handler returns.
type operationContext struct {
	op  *huma.Operation
	c   *fiber.Ctx
	ctx context.Context
}

func (o operationContext) Operation() *huma.Operation { return o.op }

func (o operationContext) Context() context.Context { return o.ctx }

func (o operationContext) Method() string { return o.c.Method() }

func (o operationContext) Host() string { return o.c.Hostname() }

func (o operationContext) RemoteAddr() string { return o.c.Context().RemoteAddr().String() }

func (o operationContext) TLS() *tls.ConnectionState { return o.c.Context().TLSConnectionState() }

func (o operationContext) Version() huma.ProtoVersion {
	proto := string(o.c.Request().Header.Protocol())
	major, minor, _ := http.ParseHTTPVersion(proto)
	return huma.ProtoVersion{Proto: proto, ProtoMajor: major, ProtoMinor: minor}
}

// URL returns the URL of the request, or an empty URL if the request's URL does not parse.
func (o operationContext) URL() url.URL {
	u, err := url.ParseRequestURI(o.c.OriginalURL())
	if err != nil {
		return url.URL{}
	}
	return *u
}

func (o operationContext) Param(name string) string { return o.c.Params(name) }

func (o operationContext) Query(name string) string { return o.c.Query(name) }

func (o operationContext) Header(name string) string { return o.c.Get(name) }

func (o operationContext) EachHeader(f func(name, value string)) {
	for name, value := range o.c.Request().Header.All() {
		f(string(name), string(value))
	}
}

// BodyReader returns the body that a middleware has loaded, or nil if there is none. The body is
// not decompressed.
func (o operationContext) BodyReader() io.Reader { return o.c.Request().BodyStream() }

func (o operationContext) GetMultipartForm() (*multipart.Form, error) { return o.c.MultipartForm() }

// SetReadDeadline does nothing, because the server sets the deadlines and the body has already been
// read.
func (o operationContext) SetReadDeadline(time.Time) error { return nil }

func (o operationContext) SetStatus(code int) { o.c.Status(code) }

func (o operationContext) Status() int { return o.c.Response().StatusCode() }

func (o operationContext) SetHeader(name, value string) { o.c.Set(name, value) }

func (o operationContext) AppendHeader(name, value string) { o.c.Response().Header.Add(name, value) }

func (o operationContext) BodyWriter() io.Writer { return o.c.Context() }

// Body returns a huma body function that responds with 200 and the given content type. pieces holds
// the encoded data. The pieces are not copied and must not be changed afterward.
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
