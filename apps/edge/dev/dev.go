// Package dev provides the pages that only `crier dev` serves: the mails that it does not send, and
// the sandbox, a simulated platform. In other processes, their addresses respond with 404.
package dev

import (
	"net/url"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"crier/apps/edge/page"
	"crier/platform/mail"
)

// Deps are the dependencies of an API.
type Deps struct {
	// BaseURL is the address of the service. The sandbox responds to requests for its host.
	BaseURL string
	// SandboxURL is the loopback address of the simulated platform, or empty if there is none. See
	// IsSandbox.
	SandboxURL string
	// Mails are shown at /dev/mail. It is nil on an instance that does not keep its mails.
	Mails Mails
}

// Mails holds the mails of `crier dev`, which are not sent.
type Mails interface {
	// Messages returns the mails, newest first.
	Messages() []mail.Stored
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct {
	deps     Deps
	mailPage *page.Page
	sandbox  *fasthttp.HostClient // nil if there is none
}

// New returns an API. It has no sandbox if IsSandbox refuses SandboxURL.
func New(d Deps) *API {
	return &API{deps: d, mailPage: newMailPage(), sandbox: newSandbox(d.SandboxURL)}
}

// hostname returns the host that a request names, without the port.
func hostname(c *fiber.Ctx) string {
	return (&url.URL{Host: string(c.Request().Host())}).Hostname()
}
