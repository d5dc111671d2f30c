package edge

import (
	"cmp"
	"slices"
	"strings"

	"crier/apps/edge/route"
)

// Route is one line of the route table. It answers 500 if its Credential and its Limits do not fit together.
type Route struct {
	// Method is the HTTP method. A GET answers HEAD too.
	Method string
	// Path has its parameters in the form {name}.
	Path  string
	State State
	// Operation is the id in the OpenAPI document, empty if the route is not built.
	Operation  string
	Credential Credential
	Limits     Limits
	// Personal routes reveal or change secrets, or give a person's own consent. They are refused
	// while an instance administrator is impersonating the person.
	Personal bool

	// changing is set for a GET that changes something, see Changing.
	changing bool
	endpoint route.Endpoint
}

// State is whether a route works. Only Built routes are in the OpenAPI document.
type State string

// The states of a route. Routes that are not Built answer 501.
const (
	Built State = "built"
	// Missing is a route of the interface that is not built.
	Missing State = "missing"
	// Planned is a route that the interface does not list and that is not built.
	Planned State = "planned"
)

// String returns "METHOD path".
func (r Route) String() string { return r.Method + " " + r.Path }

// built returns a route that works. Its pattern is "METHOD path".
func built(pattern, operation string, credential Credential, limits Limits, endpoint route.Endpoint) Route {
	method, path, _ := strings.Cut(pattern, " ")
	return Route{
		Method: method, Path: path, State: Built, Operation: operation, Credential: credential, Limits: limits,
		endpoint: endpoint,
	}
}

// personal marks a route as personal, see Route.
func personal(r Route) Route {
	r.Personal = true
	return r
}

func missing(pattern string, credential Credential, limits Limits) Route {
	r := built(pattern, "", credential, limits, route.NotBuilt())
	r.State = Missing
	return r
}

func planned(pattern string, credential Credential, limits Limits) Route {
	r := built(pattern, "", credential, limits, route.NotBuilt())
	r.State = Planned
	return r
}

// tagged returns an endpoint of the public API for a route of the application API, under another tag in the OpenAPI
// document.
func tagged(tag string, endpoint route.Endpoint) route.Endpoint {
	endpoint.Description.Tags = []string{tag}
	return endpoint
}

// aliasPrefix precedes the paths of the public API a second time.
const aliasPrefix = "/api"

// withAliases returns the routes and the alias of each, unless the table has a route of its own for the alias.
func withAliases(routes []Route) []Route {
	own := map[string]bool{}
	for _, r := range routes {
		own[r.String()] = true
	}
	out := slices.Clone(routes)
	for _, r := range routes {
		if strings.HasPrefix(r.Path, aliasPrefix+"/") {
			continue
		}
		r.Path = aliasPrefix + r.Path
		if r.Operation != "" {
			r.Operation += "-alias"
		}
		if !own[r.String()] {
			out = append(out, r)
		}
	}
	return out
}

// line returns the route for the table of package route. Its security in the OpenAPI document, and the statuses with
// which its guards refuse requests, follow from its credential.
func (r Route) line(g guards) route.Line {
	l := route.Line{
		Method: r.Method, Path: r.Path, Operation: r.Operation, Before: g.before(r), Endpoint: r.endpoint,
	}
	switch r.Credential {
	case apiKey:
		l.Security, l.Errors = []map[string][]string{{"key": {}}}, []int{401, 403, 429}
	case member, joined, admin, owner, person, instance:
		l.Security, l.Errors = []map[string][]string{{"cookie": {}}, {"session": {}}}, []int{401, 403, 429}
	}
	about := &l.Endpoint.Description
	about.Description = strings.TrimSpace(about.Description + " " + permissions[r.Credential].audience)
	if strings.HasPrefix(r.Path, "/public/v1/") && !slices.Contains([]string{"Approvals", "Webhooks", "Notifications"}, about.Tags[0]) && r.Credential == apiKey {
		about.Tags = []string{"Public API"}
	}
	if strings.HasPrefix(r.Path, aliasPrefix+"/") {
		about.Tags = []string{"Public API (alias mount)"}
	}
	return l
}

// Routes returns all routes, sorted by path and method. It needs no running service.
func Routes() []Route { return unstarted("").table }

// OpenAPI returns the OpenAPI document of every route as JSON, the same bytes each time. Its error is Internal.
func OpenAPI() ([]byte, error) { return unstarted(interfaceVersion).document() }

// unstarted returns a server without dependencies, from which only the route table and the OpenAPI document can be
// read.
func unstarted(version string) *Server {
	s := &Server{cfg: Config{BaseURL: "http://localhost"}, deps: Deps{Version: version}}
	s.buildRoutes()
	return s
}

// buildRoutes fills the route table and the OpenAPI document. It calls no dependency: the server of unstarted has none.
func (s *Server) buildRoutes() {
	s.gate, s.session = s.newGuard()
	e := s.newEndpoints()
	s.monitor = e.monitor
	s.table = s.routes(e)
	slices.SortFunc(s.table, func(a, b Route) int {
		return cmp.Or(route.ComparePaths(a.Path, b.Path), strings.Compare(a.Method, b.Method))
	})
	s.lines = route.New(s.deps.Version, s.cfg.Frontend()+"/billing")
	s.describeService(s.lines.API().OpenAPI())
	guards := s.newGuards()
	for _, r := range s.table {
		s.lines.Add(r.line(guards))
	}
}
