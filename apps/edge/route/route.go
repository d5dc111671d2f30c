// Package route builds the route table of the edge: it registers each line with Fiber and with the OpenAPI document.
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

// configureHuma sets the process-wide variables of huma once.
var configureHuma = sync.OnceFunc(func() {
	huma.NewError = problem.FromHuma
	huma.DefaultArrayNullable = false
	huma.ValidateStrictCasing = true
})

// Line is one line of the route table. With the endpoint NotBuilt it is not in the OpenAPI document.
type Line struct {
	// Method is the HTTP method. A GET answers HEAD too.
	Method string
	// Path has its parameters in the form {name}.
	Path string
	// Operation is the id in the OpenAPI document. Lines with the endpoint NotBuilt have none.
	Operation string
	// Security lists the credentials in the OpenAPI document, each of which suffices. Without any, none is needed.
	Security []map[string][]string
	// Errors are the statuses with which Before can refuse a request.
	Errors []int
	// Before are the guards of the route, in the order in which they run.
	Before   []fiber.Handler
	Endpoint Endpoint
}

// Table collects all lines before Mount registers them with Fiber, so that their order does not depend on the order of
// the calls. It is not safe for concurrent use.
type Table struct {
	api     huma.API
	billing string // the URL in answers with 402
	entries []entry
	// before runs before the handler of the operation that huma.Register is adding.
	before []fiber.Handler
	// complete calls completeSchemas once, before requests are validated.
	complete func()
}

type entry struct {
	method, path string
	handlers     []fiber.Handler
}

// New returns an empty table. Its document has the version of the service, and its answers with 402 the URL billing.
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

// Add adds a line to the document at once, and to Fiber by the next call of Mount: a line that is added after Mount is
// not served.
func (t *Table) Add(l Line) { l.Endpoint.add(t, l) }

// addHandlers adds a route for Mount, without a description in the OpenAPI document.
func (t *Table) addHandlers(method, path string, handlers ...fiber.Handler) {
	t.entries = append(t.entries, entry{method: method, path: path, handlers: handlers})
}

// Mount registers all routes with app. Where several match, literal segments take precedence over parameters.
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

// Document returns the OpenAPI document as JSON, the same bytes for the same table. Call it after
// all lines have been added. Its error is Internal.
func (t *Table) Document() ([]byte, error) {
	t.complete()
	b, err := json.MarshalIndent(t.api.OpenAPI(), "", "  ")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "route.Document", "", err)
	}
	return append(b, '\n'), nil
}

// ComparePaths returns a negative number if a precedes b, and a positive one if b precedes a. It compares segment by
// segment: literals before parameters before wildcards.
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

// colons writes parameters as :name instead of {name}, as Fiber does.
func colons(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
