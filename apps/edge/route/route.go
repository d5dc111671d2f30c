// Package route is the table of the edge: every route with its handlers, its place in the OpenAPI document, and whether it is built.
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

// wireHuma sets huma's process-wide choices once.
var wireHuma = sync.OnceFunc(func() {
	huma.NewError = problem.FromHuma
	huma.DefaultArrayNullable = false
})

// Route is one method of one path; parameters are written {name}.
type Route struct{ Method, Path string }

// String is "METHOD path".
func (r Route) String() string { return r.Method + " " + r.Path }

type entry struct {
	Route
	handlers []fiber.Handler
	state    state
}

// state is how far a route is.
type state int

const (
	built   state = iota
	missing       // of the interface
	added         // of what the interface does not list, missing too
)

// Table collects routes before any is served, so that their order never depends on who registered first.
type Table struct {
	*shared
	before []fiber.Handler
}

type shared struct {
	api     huma.API
	billing string
	pending []fiber.Handler
	entries []entry
}

// New makes an empty table. Version is the service's, billing the address told with 402.
func New(version, billing string) *Table {
	wireHuma()
	t := &Table{shared: &shared{billing: billing}}
	cfg := huma.DefaultConfig("Crier", version)
	cfg.CreateHooks = nil
	cfg.DocsPath, cfg.SchemasPath, cfg.OpenAPIPath = "", "", ""
	cfg.AllowAdditionalPropertiesByDefault = true
	cfg.OnAddOperation = append(cfg.OnAddOperation, func(_ *huma.OpenAPI, op *huma.Operation) { describe(op) })
	cfg.Components.Headers = headers()
	t.api = huma.NewAPI(cfg, adapter{t.shared})
	return t
}

// describe says what huma does not know: its 422 is the 400 that is really answered, where there is anything to validate; the database may be away; and requests are counted.
func describe(op *huma.Operation) {
	if r, ok := op.Responses["422"]; ok {
		delete(op.Responses, "422")
		if slices.Contains(op.Errors, http.StatusBadRequest) {
			op.Responses["400"] = r
		}
	}
	if failed := op.Responses["500"]; failed != nil && op.Responses["503"] == nil {
		away := *failed
		away.Description = http.StatusText(http.StatusServiceUnavailable)
		header(&away, "Retry-After")
		op.Responses["503"] = &away
	}
	for status, r := range op.Responses {
		if len(op.Security) > 0 && status != "401" { // whoever has a credential is counted
			header(r, "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
		}
		if status == "409" || status == "429" {
			header(r, "Retry-After")
		}
	}
}

func header(r *huma.Response, names ...string) {
	if r.Headers == nil {
		r.Headers = map[string]*huma.Param{}
	}
	for _, name := range names {
		r.Headers[name] = &huma.Param{Ref: "#/components/headers/" + name}
	}
}

// headers are described once.
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
	s.entries = append(s.entries, entry{Route{method, braces(path)}, handlers, state})
}

// With is the same table with handlers that run before those of the routes added through it.
func (t *Table) With(before ...fiber.Handler) *Table {
	return &Table{t.shared, append(slices.Clone(t.before), before...)}
}

// API is the document and its schemas.
func (t *Table) API() huma.API { return t.api }

// JSON adds a typed route. Bodies are capped before huma sees them.
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

// Raw adds a plain route and its hand-written operation.
func (t *Table) Raw(op huma.Operation, handlers ...fiber.Handler) {
	for _, status := range op.Errors {
		op = Answer[problem.Fault](t, op, status, http.StatusText(status))
	}
	t.api.OpenAPI().AddOperation(&op)
	t.add(op.Method, op.Path, append(slices.Clone(t.before), handlers...), built)
}

// Missing adds a route of the interface that is not built: it answers 501 after its authentication.
func (t *Table) Missing(method, path string) { t.refuse(method, path, missing) }

// Added is Missing for a route that the interface does not list.
func (t *Table) Added(method, path string) { t.refuse(method, path, added) }

func (t *Table) refuse(method, path string, state state) {
	words := method + " " + path + " is not built yet."
	t.add(method, path, append(slices.Clone(t.before), func(*fiber.Ctx) error {
		return fault.New(fault.NotBuilt, "route.Missing", words)
	}), state)
}

// Mount serves the table: literal segments win over parameters wherever both match, and every GET answers HEAD too.
func (t *Table) Mount(app *fiber.App) {
	slices.SortStableFunc(t.entries, func(a, b entry) int { return order(a.Path, b.Path) })
	for _, e := range t.entries {
		if e.Method == http.MethodGet {
			app.Add(http.MethodHead, colons(e.Path), e.handlers...)
		}
		app.Add(e.Method, colons(e.Path), e.handlers...)
	}
}

// order puts literals before parameters before wildcards, segment by segment.
func order(a, b string) int {
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

// Built lists the routes that work, in order.
func (t *Table) Built() []Route { return t.list(built) }

// NotBuilt lists the routes of the interface that answer 501.
func (t *Table) NotBuilt() []Route { return t.list(missing) }

// NotBuiltBeyond lists the other routes that answer 501.
func (t *Table) NotBuiltBeyond() []Route { return t.list(added) }

func (t *Table) list(state state) []Route {
	var out []Route
	for _, e := range t.entries {
		if e.state == state {
			out = append(out, e.Route)
		}
	}
	slices.SortFunc(out, func(a, b Route) int { return cmp.Or(order(a.Path, b.Path), strings.Compare(a.Method, b.Method)) })
	return out
}

// Document is the OpenAPI document, always the same bytes for the same table.
func (t *Table) Document() ([]byte, error) {
	b, err := json.MarshalIndent(t.api.OpenAPI(), "", "  ")
	if err != nil {
		return nil, fault.Wrap(fault.Internal, "route.Document", "", err)
	}
	return append(b, '\n'), nil
}

func braces(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if name, ok := strings.CutPrefix(p, ":"); ok {
			parts[i] = "{" + name + "}"
		}
	}
	return strings.Join(parts, "/")
}

func colons(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}
