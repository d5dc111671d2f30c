// Package route holds the route table of the edge: every route with its handlers, its place in the OpenAPI document,
// and whether it is built.
package route

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/problem"
	"crier/apps/edge/request"
	"crier/platform/fault"
)

// configureHuma sets the process-wide variables of huma once.
var configureHuma = sync.OnceFunc(func() {
	huma.NewError = problem.FromHuma
	huma.DefaultArrayNullable = false
})

// Route is one method of one path. Parameters of the path are written {name}.
type Route struct{ Method, Path string }

// String returns "METHOD path".
func (r Route) String() string { return r.Method + " " + r.Path }

type entry struct {
	Route
	handlers []fiber.Handler
	state    state
}

// state is whether a route is built.
type state int

const (
	built   state = iota
	missing       // not built, listed in the interface
	added         // not built, not listed in the interface
)

// Table collects all routes before Mount registers them with Fiber, so that their order does not depend on the order of
// the calls. It is not safe for concurrent use.
type Table struct {
	*shared
	before []fiber.Handler // run before the handlers of each route
}

// shared is what all views of one table have in common, see With.
type shared struct {
	api     huma.API
	billing string          // the URL in answers with 402
	pending []fiber.Handler // run before the operation that JSON is registering
	entries []entry
}

// New returns an empty table. Its document has the version of the service, and its answers with 402 the URL billing.
func New(version, billing string) *Table {
	configureHuma()
	t := &Table{shared: &shared{billing: billing}}
	cfg := huma.DefaultConfig("Crier", version)
	cfg.CreateHooks = nil
	cfg.DocsPath, cfg.SchemasPath, cfg.OpenAPIPath = "", "", ""
	cfg.AllowAdditionalPropertiesByDefault = true
	cfg.OnAddOperation = append(cfg.OnAddOperation, func(_ *huma.OpenAPI, op *huma.Operation) { describe(op) })
	cfg.Components.Headers = headers()
	t.api = huma.NewAPI(cfg, adapter{s: t.shared})
	return t
}

// describe corrects the answers of an operation that huma generates: 400 instead of 422 if the operation can be invalid
// at all, 503 where there is 500, and the rate-limit headers.
func describe(op *huma.Operation) {
	if r, ok := op.Responses["422"]; ok {
		delete(op.Responses, "422")
		if slices.Contains(op.Errors, http.StatusBadRequest) {
			op.Responses["400"] = r
		}
	}
	if failed := op.Responses["500"]; failed != nil && op.Responses["503"] == nil {
		unavailable := *failed
		unavailable.Description = http.StatusText(http.StatusServiceUnavailable)
		header(&unavailable, "Retry-After")
		op.Responses["503"] = &unavailable
	}
	for status, r := range op.Responses {
		if len(op.Security) > 0 && status != "401" { // requests with a valid credential are counted
			header(r, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
		}
		if status == "409" || status == "429" {
			header(r, "Retry-After")
		}
	}
}

// header adds headers to a response by reference to the components of the document.
func header(r *huma.Response, names ...string) {
	if r.Headers == nil {
		r.Headers = map[string]*huma.Param{}
	}
	for _, name := range names {
		r.Headers[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
}

// headers returns the headers that the components of the document describe.
func headers() map[string]*huma.Param {
	out := map[string]*huma.Param{}
	for name, doc := range map[string]string{
		"X-RateLimit-Limit":     "Requests a minute: of the organization by API key, of one session otherwise.",
		"X-RateLimit-Remaining": "Requests that are left of them.",
		"X-RateLimit-Reset":     "When the count begins anew, in seconds since 1970.",
		"Retry-After":           "Seconds to wait.",
	} {
		out[name] = &huma.Param{Description: doc, Schema: &huma.Schema{Type: huma.TypeInteger}}
	}
	return out
}

func (s *shared) add(method, path string, handlers []fiber.Handler, state state) {
	route := Route{Method: method, Path: braces(path)}
	s.entries = append(s.entries, entry{Route: route, handlers: handlers, state: state})
}

// With returns a view of the table. The routes that are added through it run the handlers before their own.
func (t *Table) With(before ...fiber.Handler) *Table {
	return &Table{shared: t.shared, before: append(slices.Clone(t.before), before...)}
}

// API returns huma's API, which holds the OpenAPI document and its schemas.
func (t *Table) API() huma.API { return t.api }

// JSON adds a route with typed input and output. An error of fn is logged and answered by package problem. The limits
// of huma for bodies are switched off: middleware limits them.
func JSON[I, O any](t *Table, op huma.Operation, fn func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes, op.BodyReadTimeout = -1, -1
	t.pending = t.before
	huma.Register(t.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := fn(ctx, in)
		if err != nil {
			request.From(ctx).Err = err
			return nil, problem.Of(err, t.billing)
		}
		return out, nil
	})
}

// Raw adds a route with Fiber handlers. The answers of op.Errors are added to op, which is otherwise complete.
func (t *Table) Raw(op huma.Operation, handlers ...fiber.Handler) {
	for _, status := range op.Errors {
		op = Answer[problem.Fault](t, op, status, http.StatusText(status))
	}
	t.api.OpenAPI().AddOperation(&op)
	t.add(op.Method, op.Path, append(slices.Clone(t.before), handlers...), built)
}

// Missing adds a route of the interface that is not built. It answers 501 after the handlers of With.
func (t *Table) Missing(method, path string) { t.addNotBuilt(method, path, missing) }

// Added is like Missing for a route that the interface does not list.
func (t *Table) Added(method, path string) { t.addNotBuilt(method, path, added) }

func (t *Table) addNotBuilt(method, path string, state state) {
	message := method + " " + path + " is not built yet."
	t.add(method, path, append(slices.Clone(t.before), func(*fiber.Ctx) error {
		return fault.New(fault.NotBuilt, "route.Missing", message)
	}), state)
}

// Mount registers all routes with app. Where several match, literal segments take precedence over parameters. Every GET
// answers HEAD too.
func (t *Table) Mount(app *fiber.App) {
	slices.SortStableFunc(t.entries, func(a, b entry) int { return comparePaths(a.Path, b.Path) })
	for _, e := range t.entries {
		if e.Method == http.MethodGet {
			app.Add(http.MethodHead, colons(e.Path), e.handlers...)
		}
		app.Add(e.Method, colons(e.Path), e.handlers...)
	}
}

// comparePaths orders paths segment by segment: literals before parameters before wildcards.
func comparePaths(a, b string) int {
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

// Built returns the routes that work, sorted.
func (t *Table) Built() []Route { return t.list(built) }

// NotBuilt returns the routes of the interface that answer 501, sorted.
func (t *Table) NotBuilt() []Route { return t.list(missing) }

// NotBuiltAdded returns the routes that are not in the interface and answer 501, sorted.
func (t *Table) NotBuiltAdded() []Route { return t.list(added) }

func (t *Table) list(state state) []Route {
	var out []Route
	for _, e := range t.entries {
		if e.state == state {
			out = append(out, e.Route)
		}
	}
	slices.SortFunc(out, func(a, b Route) int {
		return cmp.Or(comparePaths(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	return out
}

// Document returns the OpenAPI document as JSON, the same bytes for the same table.
func (t *Table) Document() ([]byte, error) {
	b, err := json.MarshalIndent(t.api.OpenAPI(), "", "  ")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "route.Document", "", err)
	}
	return append(b, '\n'), nil
}

// braces writes parameters as {name} instead of :name.
func braces(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, ":"); ok {
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/")
}

// colons writes parameters as :name instead of {name}, as Fiber does.
func colons(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
