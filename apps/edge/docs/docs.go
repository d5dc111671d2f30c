// Package docs renders the OpenAPI document as web pages: a reference for the public API with
// samples in five languages, guides, and a console that calls the API. Pages are rendered once and
// kept compressed.
package docs

import (
	"bytes"
	"embed"
	"encoding/json"
	"html/template"
	"io/fs"
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/page"
	"crier/apps/edge/problem"
	"crier/platform/fault"
	"crier/publishing"
)

var (
	//go:embed pages/*.html
	pageFiles embed.FS
	//go:embed style.css
	style string
)

// Options holds the input for the pages, apart from the OpenAPI document.
type Options struct {
	// BaseURL is the service's URL, without a trailing slash.
	BaseURL string
	// Missing lists the routes that are part of the interface but not built, as "METHOD path".
	Missing []string
	Limits  Limits
}

// Site holds all pages. It is safe for concurrent use.
type Site struct {
	// Document is the whole OpenAPI document. PublicDocument describes only the public API.
	Document, PublicDocument *page.Asset

	llms  *page.Asset
	pages map[string]*page.Asset
	files map[string]*page.Asset
}

// Page returns the page with the given name, or false if there is none. The name of the public API
// reference is empty.
func (s *Site) Page(name string) (*page.Asset, bool) {
	a, ok := s.pages[name]
	return a, ok
}

// ConsoleFile returns the console file with the given name, or false if there is none.
func (s *Site) ConsoleFile(name string) (*page.Asset, bool) {
	a, ok := s.files[name]
	return a, ok
}

// New renders all pages. document is doc encoded as JSON. Any error is Internal.
func New(doc *huma.OpenAPI, document []byte, o Options) (*Site, error) {
	s, err := newSite(doc, document, o)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "docs.New", "", err)
	}
	return s, nil
}

func newSite(doc *huma.OpenAPI, document []byte, o Options) (*Site, error) {
	r, err := newRenderer(doc, o)
	if err != nil {
		return nil, err
	}
	s := &Site{pages: map[string]*page.Asset{}, files: map[string]*page.Asset{}}
	kind := page.Kind{Type: fiber.MIMEApplicationJSON}
	if s.Document, err = page.NewAsset(kind, document); err != nil {
		return nil, err
	}
	public, err := publicDocument(document, o.BaseURL)
	if err != nil {
		return nil, err
	}
	if s.PublicDocument, err = page.NewAsset(kind, public); err != nil {
		return nil, err
	}
	for _, p := range pageList {
		v := r.view
		v.Page = p
		if s.pages[p.Name], err = r.pages.Named(p.File + ".html").Asset(v); err != nil {
			return nil, err
		}
	}
	if s.llms, err = renderLLMs(r.view); err != nil {
		return nil, err
	}
	if err := s.addManual(r); err != nil {
		return nil, err
	}
	return s, s.addConsole(r.view)
}

// sitePage is a page of the site. Its template is the file pages/<File>.html.
type sitePage struct {
	// Name is the last part of the page's path below /docs. It is empty for /docs itself.
	Name, File, Title string
	// Samples is set if the page has samples in a language that the reader chooses.
	Samples bool
}

// pageList lists the pages in navigation order.
var pageList = []sitePage{
	{Name: "quick-start", File: "quick-start", Title: "Quick start", Samples: true},
	{Name: "authentication", File: "authentication", Title: "Authentication", Samples: true},
	{Name: "editing", File: "editing", Title: "Edit, move and cancel", Samples: true},
	{Name: "errors", File: "errors", Title: "Errors"},
	{Name: "limits", File: "limits", Title: "Limits"},
	{Name: "idempotency", File: "idempotency", Title: "Idempotency", Samples: true},
	{Name: "webhooks", File: "webhooks", Title: "Webhooks", Samples: true},
	{Name: "agents", File: "agents", Title: "Agents"},
	{Name: "", File: "reference", Title: "Public API", Samples: true},
	{Name: "application", File: "application", Title: "Application API"},
}

// Pages returns the names of all pages except the console, in navigation order. They include the
// manual's pages, and the empty name, which stands for the reference.
func Pages() (out []string) {
	for _, p := range pageList {
		out = append(out, p.Name)
	}
	for _, c := range manual() {
		for _, p := range c.Pages {
			out = append(out, p.Name)
		}
	}
	return out
}

// renderer holds the templates and their data.
type renderer struct {
	pages *page.Page
	view  view
}

// view is the data for the templates.
type view struct {
	Page                sitePage
	Pages               []sitePage
	Languages           []language
	Title, Text         string
	Base, Root          string
	Public, Application []group
	Missing             []string
	Limits              []LimitGroup
	KeyLife             string
	Errors              []errorEntry
	ErrorBodies         []errorBody
	ErrorMembers        []line
	Events              []webhookEvent
	Verification        []sample
	Receivers           []sample
	Codes               []publishing.ErrorCode
	Delivery            delivery
	QuickStart, Editing map[string][]sample
	Manual              []chapter
	// Document is the HTML of a manual page.
	Document   template.HTML
	operations map[string]operation
}

// Operation returns the operation with the given id, for a page that shows the operation's samples.
// It returns an error for an unknown id.
func (v view) Operation(id string) (operation, error) {
	op, ok := v.operations[id]
	if !ok {
		return op, fault.New(fault.Internal, "docs.Operation", "There is no operation "+id+".")
	}
	return op, nil
}

// With returns an operation together with the service's path.
func (v view) With(op operation) struct {
	Root      string
	Operation operation
} {
	return struct {
		Root      string
		Operation operation
	}{v.Root, op}
}

func newRenderer(doc *huma.OpenAPI, o Options) (*renderer, error) {
	root, err := rootOf(o.BaseURL)
	if err != nil {
		return nil, err
	}
	operations, err := operationsOf(doc, o.BaseURL)
	if err != nil {
		return nil, err
	}
	v := view{
		Pages: pageList, Languages: languages, Title: doc.Info.Title + " API " + doc.Info.Version,
		Text: strings.SplitN(doc.Info.Description, "\n", 2)[0], Base: o.BaseURL, Root: root,
		Missing: o.Missing, Limits: o.Limits.groups(), KeyLife: keyNote(o.Limits.Instance.IdempotencyKeys),
		Events: webhookEvents, operations: operations,
		Codes: publishing.ErrorCodes(),
	}
	v.Public, v.Application = groups(operations)
	v.Errors = errorEntries(problem.Catalogue(), v.Public)
	v.ErrorMembers = schemaLines(doc, doc.Components.Schemas.SchemaFromRef("#/components/schemas/Fault"))
	if v.ErrorBodies, err = errorBodies(); err != nil {
		return nil, err
	}
	if v.Verification, err = forReceivers("verify"); err != nil {
		return nil, err
	}
	if v.Receivers, err = forReceivers("receiver"); err != nil {
		return nil, err
	}
	if v.Delivery, err = exampleDelivery(); err != nil {
		return nil, err
	}
	if v.QuickStart, err = quickStart(operations, o.BaseURL); err != nil {
		return nil, err
	}
	if v.Editing, err = editing(operations, o.BaseURL); err != nil {
		return nil, err
	}
	files, err := fs.Sub(pageFiles, "pages")
	if err != nil {
		return nil, err
	}
	return &renderer{pages: page.New(files, "reference.html", page.Style(style)), view: v}, nil
}

// rootOf returns the path of the URL base, without a trailing slash. It returns "" if base has no
// path.
func rootOf(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(u.Path, "/"), nil
}

// indent returns JSON with one member per line.
func indent(raw []byte) (string, error) {
	var b bytes.Buffer
	err := json.Indent(&b, raw, "", "  ")
	return b.String(), err
}
