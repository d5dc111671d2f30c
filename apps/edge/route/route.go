// Package route builds the edge's route table. It registers each line of the table with Fiber and
// adds it to the OpenAPI document.
package route

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/problem"
	"crier/platform/fault"
)

// configureHuma sets huma's process-wide variables once.
var configureHuma = sync.OnceFunc(func() {
	huma.NewError = problem.FromHuma
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
})

// Line is one line of the route table. A line with the endpoint NotBuilt is not in the OpenAPI
// document.
type Line struct {
	// Method is the HTTP method. GET also serves HEAD.
	Method string
	// Path is the path, with parameters in the form {name}. Example: /public/v1/posts/{id}
	Path string
	// Operation is the operation id in the OpenAPI document. It is empty for the endpoint NotBuilt.
	Operation string
	// Security lists the credentials in the OpenAPI document. Any one of them is sufficient. If
	// Security is empty, requests need no credential.
	Security []map[string][]string
	// Errors lists the statuses with which Before can reject a request.
	Errors []int
	// Before lists the route's guards in the order in which they run.
	Before   []fiber.Handler
	Endpoint Endpoint
}

// Table collects all lines until Mount registers them with Fiber. The order of the routes therefore
// does not depend on the order of the calls to Add. A Table is not safe for concurrent use.
type Table struct {
	api     huma.API
	billing string // the URL in 402 responses
	entries []entry
	// before lists the handlers to run before the operation that huma.Register is currently adding.
	before []fiber.Handler
	// complete calls completeSchemas, but only once. It must run before requests are validated.
	complete func()
}

type entry struct {
	method, path string
	handlers     []fiber.Handler
}

// New returns an empty table. version is the service's version in the document, and billing is the
// URL in 402 responses.
func New(version, billing string) *Table {
	configureHuma()
	t := &Table{billing: billing}
	cfg := huma.DefaultConfig("Crier", version)
	cfg.CreateHooks = nil
	cfg.Formats = map[string]huma.Format{fiber.MIMEApplicationJSON: exactJSON, "json": exactJSON}
	cfg.DocsPath, cfg.SchemasPath, cfg.OpenAPIPath = "", "", ""
	cfg.AllowAdditionalPropertiesByDefault = true
	cfg.OnAddOperation = append(cfg.OnAddOperation, func(_ *huma.OpenAPI, op *huma.Operation) { describe(op) })
	cfg.Components.Headers = headers()
	t.api = huma.NewAPI(cfg, adapter{table: t})
	t.complete = sync.OnceFunc(func() { completeSchemas(t.api.OpenAPI()) })
	return t
}

// API returns huma's API, which holds the OpenAPI document and its schemas.
func (t *Table) API() huma.API { return t.api }

// Add adds a line to the document immediately. The next call to Mount registers the line with
// Fiber. A line that is added after Mount is not served.
func (t *Table) Add(l Line) { l.Endpoint.add(t, l) }

// addHandlers queues a route for Mount without adding it to the OpenAPI document.
func (t *Table) addHandlers(method, path string, handlers ...fiber.Handler) {
	t.entries = append(t.entries, entry{method: method, path: path, handlers: handlers})
}

// Mount registers all routes with app. If several routes match, literal segments take precedence
// over parameters.
func (t *Table) Mount(app *fiber.App) {
	t.complete()
	slices.SortStableFunc(t.entries, func(a, b entry) int { return ComparePaths(a.path, b.path) })
	for _, e := range t.entries {
		if e.method == http.MethodGet {
			app.Add(http.MethodHead, colons(e.path), e.handlers...)
		}
		app.Add(e.method, colons(e.path), e.handlers...)
	}
}

// Document returns the OpenAPI document as JSON. The same table always yields the same bytes. Call
// Document after all lines have been added. If Document fails, it returns Internal.
func (t *Table) Document() ([]byte, error) {
	t.complete()
	b, err := json.MarshalIndent(t.api.OpenAPI(), "", "  ")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "route.Document", "", err)
	}
	return append(b, '\n'), nil
}

// ComparePaths returns a negative number if a precedes b, and a positive one if b precedes a. It
// compares segment by segment: literals precede parameters, and parameters precede wildcards.
func ComparePaths(a, b string) int {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range min(len(as), len(bs)) {
		if c := cmp.Or(cmp.Compare(rank(as[i]), rank(bs[i])), strings.Compare(as[i], bs[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(as), len(bs))
}

func rank(segment string) int {
	switch {
	case segment == "*":
		return 2
	case strings.HasPrefix(segment, "{"):
		return 1
	default:
		return 0
	}
}

// colons returns the path with its parameters in Fiber's syntax, :name instead of {name}.
func colons(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
