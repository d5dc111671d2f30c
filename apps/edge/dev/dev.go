// Package dev provides the pages that only `crier dev` serves: the stored emails, which `crier dev`
// keeps instead of sending them, and the sandbox, which is a simulated platform. In other
// processes, these pages respond with 404.
package dev

import (
	"net/url"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"crier/apps/edge/page"
	"crier/platform/mail"
)

// Deps holds the dependencies of an API.
type Deps struct {
	// BaseURL is the service's URL. The sandbox responds to requests for the host in this URL.
	BaseURL string
	// SandboxURL is the loopback URL of the simulated platform, or empty if there is none; see
	// IsSandbox.
	SandboxURL string
	// Mails provides the emails that /dev/mail shows. It is nil on an instance that does not keep
	// emails.
	Mails Mails
}

// Mails holds the emails that `crier dev` keeps instead of sending them.
type Mails interface {
	// Messages returns the emails, newest first.
	Messages() []mail.Stored
}

// API provides this package's endpoints, one per exported method. It is safe for concurrent use.
type API struct {
	deps     Deps
	mailPage *page.Page
	sandbox  *fasthttp.HostClient // nil if there is none
}

// New returns an API. The API has no sandbox unless d.SandboxURL is acceptable; see IsSandbox.
func New(d Deps) *API {
	return &API{deps: d, mailPage: newMailPage(), sandbox: newSandbox(d.SandboxURL)}
}

// hostname returns the request's host without the port.
func hostname(c *fiber.Ctx) string {
	return (&url.URL{Host: string(c.Request().Host())}).Hostname()
}
