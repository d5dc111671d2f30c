// Package dev has the pages that only `crier dev` serves: the mails that it does not send, and the
// sandbox, a simulated platform. In other processes their addresses answer 404.
package dev

import (
	"net/url"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"crier/apps/edge/page"
	"crier/platform/mail"
)

// Deps are what an API uses.
type Deps struct {
	// BaseURL is the address of the service. Its host is a name under which the sandbox answers.
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

// API has the endpoints, one for each exported method. It is safe for concurrent use.
type API struct {
	deps     Deps
	mailPage *page.Page
	sandbox  *fasthttp.HostClient // nil when there is none
}

// New returns an API. It has no sandbox if IsSandbox refuses SandboxURL.
func New(d Deps) *API {
	return &API{deps: d, mailPage: newMailPage(), sandbox: newSandbox(d.SandboxURL)}
}

// hostname returns the host that a request names, without the port.
func hostname(c *fiber.Ctx) string {
	return (&url.URL{Host: string(c.Request().Host())}).Hostname()
}
