// Package dev has the pages that only `crier dev` serves: the mails that it does not send, and the sandbox, which is a
// simulated platform. In other processes their addresses answer 404.
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
	// SandboxURL is the loopback address of the simulated platform, empty when there is none. See IsSandbox.
	SandboxURL string
	// Mails are shown at /dev/mail; nil for an instance that sends mails or none.
	Mails Mails
}

// Mails has the mails of `crier dev`, which are not sent.
type Mails interface {
	// Messages returns them, the newest first.
	Messages() []mail.Stored
}

// API has the endpoints, one for each exported method. It is safe for concurrent use.
type API struct {
	deps     Deps
	mailPage *page.Page
	sandbox  *fasthttp.HostClient // nil when there is none
}

// New returns an API. It has no sandbox if SandboxURL is not acceptable.
func New(d Deps) *API {
	return &API{deps: d, mailPage: newMailPage(), sandbox: newSandbox(d.SandboxURL)}
}

// hostname returns the host that a request names, without its port.
func hostname(c *fiber.Ctx) string {
	return (&url.URL{Host: string(c.Request().Host())}).Hostname()
}
