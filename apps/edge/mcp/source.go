package mcp

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/cors"

	"crier/apps/edge/request"
	"crier/platform/fault"
)

// checkSource rejects requests from pages on other sites. Without this check, a page could reach a
// service on the visitor's machine by making its own host name resolve to a loopback address (DNS
// rebinding).
func (a *API) checkSource(c *fiber.Ctx) error {
	const op = "mcp.checkSource"
	if a.isLocal() && !isLoopback(string(c.Request().Host())) {
		return fault.New(fault.Forbidden, op, "The Host header must be a loopback address, such as localhost.")
	}
	for _, origin := range c.Request().Header.PeekAll(fiber.HeaderOrigin) {
		if !a.allows(string(origin)) {
			message := "Pages from this origin may not call the MCP server. The operator can add it to MCP_ORIGINS."
			if a.isLocal() {
				message = "Pages may call this MCP server only from a loopback address, such as http://localhost:3000."
			}
			return fault.New(fault.Forbidden, op, message)
		}
	}
	return nil
}

// allows reports whether pages from an origin may call the endpoint.
func (a *API) allows(origin string) bool {
	if a.isLocal() {
		u, err := url.Parse(origin)
		return err == nil && u.Host != "" && isLoopback(u.Host)
	}
	return slices.Contains(a.deps.Origins, strings.ToLower(origin))
}

// isLocal reports whether BaseURL's host is localhost or a loopback address.
func (a *API) isLocal() bool {
	u, err := url.Parse(a.deps.BaseURL)
	return err == nil && request.IsLoopback(u.Hostname())
}

// isLoopback reports whether a host, with or without a port, is localhost or a loopback address.
func isLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return request.IsLoopback(strings.ToLower(strings.Trim(host, "[]")))
}

// Serves reports whether a path belongs to the endpoint. For these paths, API.CORS sets the CORS
// headers.
func Serves(path string) bool {
	return path == Path || strings.HasPrefix(path, Path+"/")
}

// CORS returns a handler that lets pages from allowed origins call the endpoint. Browsers send
// these requests without credentials.
func (a *API) CORS() fiber.Handler {
	return cors.New(cors.Config{
		Next:             func(c *fiber.Ctx) bool { return !Serves(c.Path()) },
		AllowOriginsFunc: a.allows, AllowMethods: "POST,GET,DELETE", MaxAge: 600,
		ExposeHeaders: "WWW-Authenticate,Retry-After,X-RateLimit-Limit,X-RateLimit-Remaining,X-RateLimit-Reset,X-Request-Id",
	})
}
