// Package page sends the service's HTML. Pages are rendered for each request; assets are kept
// compressed. Both are sent with headers that protect the browser.
//
// An API keeps a Page and sends it with a view:
//
//	consent := page.New(files, "consent.html", page.Style(style), page.Forms(page.Self))
//	...
//	return consent.Send(c, http.StatusOK, view)
package page

import (
	"bytes"
	"html/template"
	"io/fs"
	"net/http"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/problem"
	"crier/apps/edge/request"
	"crier/platform/fault"
)

// NoIndex is the value of X-Robots-Tag for responses that search engines must not list.
const NoIndex = "noindex, nofollow"

// Time is the layout for human-readable times, in UTC.
const Time = "Monday, 2 January 2006, 15:04 UTC"

// Page is an HTML page whose content depends on the request. It is safe for concurrent use.
type Page struct {
	templates *template.Template
	name      string
	policy    string
	err       error // from parsing the templates
}

// New returns the page whose template has the given name. All templates in files are parsed, so
// pages can share parts. The page may load only what needs allows. In the templates, {{style}}
// inserts the style sheet passed to Style. If a template is invalid, the methods that render the
// page return Internal.
func New(files fs.FS, name string, needs ...Need) *Page {
	style := template.CSS("")
	for _, n := range needs {
		style += template.CSS(n.style)
	}
	t := template.New(name).Funcs(template.FuncMap{"style": func() template.CSS { return style }})
	t, err := t.ParseFS(files, "*.html")
	return &Page{templates: t, name: name, policy: Policy(needs...), err: err}
}

// Named returns a page with a different template from the same files and with the same needs.
func (p *Page) Named(name string) *Page {
	return &Page{templates: p.templates, name: name, policy: p.policy, err: p.err}
}

// Send responds with the page. The response tells browsers not to store the page or send a
// referrer, and search engines not to list it.
func (p *Page) Send(c *fiber.Ctx, status int, view any) error {
	content, err := p.render(view)
	if err != nil {
		return err
	}
	p.SetHeaders(c)
	c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
	return c.Status(status).Send(content)
}

// SetHeaders sets the page's headers, except for the content type. Use it when redirecting to the
// page.
func (p *Page) SetHeaders(c *fiber.Ctx) {
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set(fiber.HeaderContentSecurityPolicy, p.policy)
	protect(c)
}

// Asset renders the page as an asset. Use it for a page that is the same for every request. Search
// engines may list the asset.
func (p *Page) Asset(view any) (*Asset, error) {
	content, err := p.render(view)
	if err != nil {
		return nil, err
	}
	return NewAsset(Kind{Type: fiber.MIMETextHTMLCharsetUTF8, Policy: p.policy}, content)
}

func (p *Page) render(view any) ([]byte, error) {
	if p.err != nil {
		return nil, fault.Wrap(fault.Internal, "page.render", "", p.err)
	}
	var b bytes.Buffer
	if err := p.templates.ExecuteTemplate(&b, p.name, view); err != nil {
		return nil, fault.Wrap(fault.Internal, "page.render", "", err)
	}
	return b.Bytes(), nil
}

// SetForeignHeaders sets the headers for a page or file that another server produced. It keeps that
// server's Content-Security-Policy. If there is none, the content is sandboxed and may load
// nothing.
func SetForeignHeaders(c *fiber.Ctx) {
	if c.GetRespHeader(fiber.HeaderContentSecurityPolicy) == "" {
		c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; sandbox")
	}
	c.Set(fiber.HeaderXFrameOptions, "DENY")
	protect(c)
}

// protect sets the headers that all pages have.
func protect(c *fiber.Ctx) {
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	c.Set("X-Robots-Tag", NoIndex)
}

// Problem returns the status and the message that a page shows for an error, and records the error
// for the log. If err is nil, Problem returns 200 and an empty message.
func Problem(c *fiber.Ctx, err error) (status int, message string) {
	if err == nil {
		return http.StatusOK, ""
	}
	request.From(c.Context()).Err = err
	p := problem.Of(err, "")
	return p.StatusCode, p.Msg
}
