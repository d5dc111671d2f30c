package dev

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"crier/apps/edge/page"
	"crier/apps/edge/route"
	"crier/platform/fault"
)

// newSandbox returns a client that connects only to the simulated platform at address. It returns
// nil if address is empty or not acceptable; see IsSandbox.
func newSandbox(address string) *fasthttp.HostClient {
	host, ok := sandboxHost(address)
	if !ok {
		return nil
	}
	return &fasthttp.HostClient{
		Addr: host, StreamResponseBody: true, MaxConns: 32,
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		MaxIdleConnDuration: 5 * time.Second, NoDefaultUserAgentHeader: true,
	}
}

// IsSandbox reports whether address is acceptable as the simulated platform's URL. It must be an
// http URL with a loopback address and a port. The sandbox is not private, however: every client
// that can reach the service can also reach the sandbox's page through the service.
func IsSandbox(address string) bool {
	_, ok := sandboxHost(address)
	return ok
}

// sandboxHost returns the host and port of the simulated platform's URL. It returns false if the
// URL is not acceptable; see IsSandbox.
func sandboxHost(address string) (host string, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" {
		return "", false
	}
	at, err := netip.ParseAddrPort(u.Host)
	return u.Host, err == nil && at.Addr().IsLoopback()
}

// Sandbox returns the endpoint for the sandbox's page.
func (a *API) Sandbox() route.Endpoint {
	d := describeSandbox("Get the page of the sandbox, a simulated platform, if one is configured")
	return route.Raw(d, a.sandboxPage,
		page.Answer("The page."),
		route.Content(http.StatusFound, "Redirect to /sandbox/.", "", nil))
}

// SandboxFile returns the endpoint for the files in the given sandbox folder. folder is "media" or
// "picture".
func (a *API) SandboxFile(folder string) route.Endpoint {
	d := describeSandbox("Get a sandbox file")
	d.Parameters = []*huma.Param{
		{Name: "file", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}},
	}
	return route.Raw(d,
		func(c *fiber.Ctx) error { return a.proxy(c, "/"+folder+"/"+c.Params("file")) },
		route.Content(http.StatusOK, "The file.", fiber.MIMEOctetStream,
			&huma.Schema{Type: huma.TypeString, Format: "binary"}))
}

// SandboxStyle returns the endpoint for the sandbox's style sheet.
func (a *API) SandboxStyle() route.Endpoint {
	return route.Raw(describeSandbox("Get the sandbox style sheet"),
		func(c *fiber.Ctx) error { return a.proxy(c, "/style.css") },
		route.Content(http.StatusOK, "The style sheet.", "text/css", &huma.Schema{Type: huma.TypeString}))
}

func describeSandbox(summary string) huma.Operation {
	return huma.Operation{Summary: summary, Tags: []string{"Sandbox"}, Errors: []int{404, 503}}
}

// sandboxPage serves the sandbox's page. It redirects a path without a trailing slash, because the
// page's links are relative.
func (a *API) sandboxPage(c *fiber.Ctx) error {
	if a.sandbox != nil && !strings.HasSuffix(c.Path(), "/") {
		return c.Redirect("/sandbox/", http.StatusFound)
	}
	return a.proxy(c, "/")
}

// proxy forwards a request to the given path of the sandbox. It forwards only the request's method,
// query and Range header. It returns Forbidden if the request's host name belongs to neither this
// service nor loopback. Otherwise, a website whose name resolves to this machine could read the
// sandbox (DNS rebinding). IP addresses are allowed, because they cannot be rebound.
func (a *API) proxy(c *fiber.Ctx, path string) error {
	if a.sandbox == nil || strings.Contains(path, "..") || strings.ContainsAny(path[1:], "%\\") {
		return fiber.ErrNotFound
	}
	host := hostname(c)
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" && !a.isOwnHost(host) {
		return fault.New(fault.Forbidden, "dev.proxy", "The sandbox does not respond at this host name. "+
			"Set BASE_URL to the URL that you use to reach it, or use an IP address.")
	}
	req, resp := fasthttp.AcquireRequest(), c.Response()
	defer fasthttp.ReleaseRequest(req)
	req.Header.SetMethod(c.Method())
	req.SetRequestURI("http://" + a.sandbox.Addr + path)
	req.URI().SetQueryStringBytes(c.Context().URI().QueryString())
	if r := c.Get(fiber.HeaderRange); r != "" {
		req.Header.Set(fiber.HeaderRange, r)
	}
	id := c.GetRespHeader(fiber.HeaderXRequestID)
	if err := a.sandbox.Do(req, resp); err != nil {
		return fault.Wrap(fault.Unavailable, "dev.proxy", "The sandbox does not respond.", err)
	}
	resp.Header.Del(fiber.HeaderSetCookie)
	resp.Header.Del(fiber.HeaderConnection)
	page.SetForeignHeaders(c)
	c.Set(fiber.HeaderXRequestID, id)
	return nil
}

// isOwnHost reports whether a host, without a port, is the host of BASE_URL.
func (a *API) isOwnHost(host string) bool {
	u, err := url.Parse(a.deps.BaseURL)
	return err == nil && strings.EqualFold(u.Hostname(), host)
}
