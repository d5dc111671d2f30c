package edge

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"crier/apps/edge/route"
	"crier/platform/fault"
)

// sandbox serves the page of the simulated platform under the address of the service. It connects to one loopback
// address only.
type sandbox struct {
	client *fasthttp.HostClient
}

// newSandbox returns nil when address is empty, and Invalid when it is not acceptable, see IsSandbox.
func newSandbox(address string) (*sandbox, error) {
	if address == "" {
		return nil, nil
	}
	host, ok := sandboxHost(address)
	if !ok {
		return nil, fault.New(fault.Invalid, "edge.newSandbox",
			"The sandbox address must be http with a loopback address and a port.")
	}
	return &sandbox{client: &fasthttp.HostClient{
		Addr: host, StreamResponseBody: true, MaxConns: 32,
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		MaxIdleConnDuration: 5 * time.Second, NoDefaultUserAgentHeader: true,
	}}, nil
}

// IsSandbox returns whether the simulated platform may have this address: http, a loopback address and a port. All
// clients that reach the service can reach the page of the sandbox through it.
func IsSandbox(address string) bool {
	_, ok := sandboxHost(address)
	return ok
}

// sandboxHost returns the host and port of the address of the simulated platform, and false when IsSandbox is false.
func sandboxHost(address string) (host string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return "", false
	}
	at, err := netip.ParseAddrPort(u.Host)
	return u.Host, err == nil && at.Addr().IsLoopback()
}

func (s *Server) getSandbox() route.Endpoint {
	d := describeSandbox("Get the page of the sandbox, the simulated platform, if there is one")
	return route.Raw(d, s.sandboxPage,
		route.Content(http.StatusOK, "The page.", fiber.MIMETextHTML, &huma.Schema{Type: huma.TypeString}),
		route.Content(http.StatusFound, "To /sandbox/.", "", nil))
}

// getSandboxFile returns the endpoint of the files in a folder of the sandbox, media or picture.
func (s *Server) getSandboxFile(folder string) route.Endpoint {
	d := describeSandbox("Get a file of the sandbox")
	d.Parameters = []*huma.Param{
		{Name: "file", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}},
	}
	return route.Raw(d,
		func(c *fiber.Ctx) error { return s.proxy(c, "/"+folder+"/"+c.Params("file")) },
		route.Content(http.StatusOK, "The file.", fiber.MIMEOctetStream,
			&huma.Schema{Type: huma.TypeString, Format: "binary"}))
}

func (s *Server) getSandboxStyle() route.Endpoint {
	return route.Raw(describeSandbox("Get the style sheet of the sandbox"),
		func(c *fiber.Ctx) error { return s.proxy(c, "/style.css") },
		route.Content(http.StatusOK, "The style sheet.", "text/css", &huma.Schema{Type: huma.TypeString}))
}

func describeSandbox(summary string) huma.Operation {
	return huma.Operation{Summary: summary, Tags: []string{"Sandbox"}, Errors: []int{404, 503}}
}

// sandboxPage answers with the page, and redirects to a path with a slash at the end because its links are relative.
func (s *Server) sandboxPage(c *fiber.Ctx) error {
	if s.sandbox != nil && !strings.HasSuffix(c.Path(), "/") {
		return c.Redirect("/sandbox/", http.StatusFound)
	}
	return s.proxy(c, "/")
}

// proxy forwards a request to one path of the sandbox; of the request only its query and range are sent. A host name
// that is not ours is Forbidden: a web page whose name resolves to this machine could otherwise read the sandbox (DNS
// rebinding). IP addresses cannot be rebound and are allowed.
func (s *Server) proxy(c *fiber.Ctx, path string) error {
	if s.sandbox == nil || strings.Contains(path, "..") || strings.ContainsAny(path[1:], "%\\") {
		return fiber.ErrNotFound
	}
	host := (&url.URL{Host: string(c.Request().Host())}).Hostname()
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" && !s.cfg.isOwnHost(host) {
		return fault.New(fault.Forbidden, "edge.proxy", "The sandbox does not answer at this name: "+
			"set BASE_URL to the address under which you reach it, or use an IP address.")
	}
	req, resp := fasthttp.AcquireRequest(), c.Response()
	defer fasthttp.ReleaseRequest(req)
	req.Header.SetMethod(c.Method())
	req.SetRequestURI("http://" + s.sandbox.client.Addr + path)
	req.URI().SetQueryStringBytes(c.Context().URI().QueryString())
	if r := c.Get(fiber.HeaderRange); r != "" {
		req.Header.Set(fiber.HeaderRange, r)
	}
	id := c.GetRespHeader(fiber.HeaderXRequestID)
	if err := s.sandbox.client.Do(req, resp); err != nil {
		return fault.Wrap(fault.Unavailable, "edge.proxy", "The sandbox does not answer.", err)
	}
	resp.Header.Del(fiber.HeaderSetCookie)
	resp.Header.Del(fiber.HeaderConnection)
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderXRequestID, id)
	if c.GetRespHeader(fiber.HeaderContentSecurityPolicy) == "" {
		c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
	}
	return nil
}
