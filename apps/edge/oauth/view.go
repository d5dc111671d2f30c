package oauth

import (
	"cmp"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/oidc"
	"crier/platform/text"
)

//go:embed *.html
var files embed.FS

// style is the entire style sheet of the pages.
const style = `:root{color-scheme:light dark;--ink:#1d2328;--quiet:#56616b;--ground:#fbfbf9;--card:#fff;--line:#8a949b;--wrong:#a4262c}` +
	`@media (prefers-color-scheme:dark){:root{--ink:#e6e8e6;--quiet:#a3acb3;--ground:#14181b;--card:#1b2125;--line:#6d777e;--wrong:#ff9a94}}` +
	`*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}` +
	`main{max-width:34rem;margin:0 auto;padding:1.5rem 1rem 4rem;overflow-wrap:anywhere}` +
	`h1{font-size:1.5rem;line-height:1.25;margin:.25rem 0 1rem}h2{font-size:1.05rem;margin:1.5rem 0 .5rem}` +
	`p{margin:.5rem 0}.product{font-weight:600;margin:0}.quiet,small{color:var(--quiet)}a{color:inherit}` +
	`.problem,.wrong{color:var(--wrong)}.problem{border-left:.25rem solid;padding-left:.75rem}` +
	`label{display:block;font-weight:600}.check label{display:inline;font-weight:400}.check{margin:.25rem 0}` +
	`.check input{width:1.25rem;height:1.25rem;vertical-align:-.25rem;margin:0 .5rem 0 0}` +
	`input,select{font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);border-radius:.25rem;padding:.5rem;width:100%}` +
	`button{font:inherit;font-weight:600;min-height:2.75rem;padding:.5rem 1.25rem;border:1px solid var(--ink);border-radius:.25rem;` +
	`background:var(--card);color:var(--ink)}button.main{background:var(--ink);color:var(--ground)}` +
	`.actions{display:flex;flex-wrap:wrap;gap:.75rem;margin:1.5rem 0 0}.actions button{flex:1 1 8rem}` +
	`fieldset{border:0;margin:0;padding:0}legend{font-weight:600;padding:0}summary{min-height:1.5rem;font-weight:600}` +
	`details{border-top:1px solid var(--line);border-bottom:1px solid var(--line);padding:.75rem 0;margin:1rem 0}` +
	`dl{margin:1rem 0}dt{color:var(--quiet);font-size:.875rem}dd{margin:0 0 .5rem}ul{padding-left:1.25rem}` +
	`code{font:.95em ui-monospace,monospace}article{border-top:1px solid var(--line);padding:.75rem 0}` +
	`.hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}.links a{display:inline-block;min-height:1.5rem;padding:.125rem 0}.list{max-height:16rem;overflow:auto}`

// frame holds what all pages show.
type frame struct {
	Title string
	// Problem explains an error. It appears at the top of the page.
	Problem string
	// Refresh is a URL that the page redirects to immediately. It may have an app's own scheme.
	Refresh template.URL
}

// messageView is a page without a form.
type messageView struct {
	frame
	Text string
	// Link is the URL of the next page, and LinkText is its text.
	Link     template.URL
	LinkText string
	// Codes lists recovery codes, which are shown only once.
	Codes []string
}

// send responds with a page. The page's referrer policy lets browsers send the Origin header when
// they submit its forms.
func (a *site) send(c *fiber.Ctx, p *page.Page, status int, view any) error {
	if err := p.Send(c, status, view); err != nil {
		return err
	}
	c.Set(fiber.HeaderReferrerPolicy, "same-origin")
	return nil
}

// leadOn responds to a form with a page that forwards the browser to a client. It does not
// redirect, because Chromium blocks redirects to an origin to which the page may not submit forms.
func (a *site) leadOn(c *fiber.Ctx, title, address string) error {
	to := template.URL(address) // oidc.CheckRedirectURI has checked it
	return a.messagePage.Send(c, http.StatusOK, messageView{
		frame: frame{Title: title, Refresh: to}, Link: to, LinkText: "Continue",
		Text: "If nothing happens, follow the link. Afterwards, you can close this page.",
	})
}

// path returns the URL of a page for forms and redirects. The URL never leads to another host.
func (a *site) path(path string, q query) string {
	prefix := ""
	if u, err := url.Parse(a.deps.BaseURL); err == nil {
		prefix = strings.TrimRight(u.EscapedPath(), "/")
	}
	if encoded := q.encode(); encoded != "" {
		return prefix + path + "?" + encoded
	}
	return prefix + path
}

// link is path for a template.
func (a *site) link(path string, q query) template.URL { return template.URL(a.path(path, q)) }

// maxName is the maximum length, in bytes, of a client's name on a page.
const maxName = 120

// displayName returns a client's name as a single line. The line contains no characters that could
// change how the page reads.
func displayName(c oidc.Client) string {
	return cmp.Or(text.Line(c.Name, maxName), verifiedHost(c), "An app without a name")
}

// verifiedHost returns the host of the document that describes the client. It returns "" for other
// clients, whose names are not verified.
func verifiedHost(c oidc.Client) string {
	if c.Kind != oidc.ClientDocument {
		return ""
	}
	return hostOf(c.ClientID)
}

// hostOf returns the host of an http or https URL, or "".
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return asciiHost(u)
}
