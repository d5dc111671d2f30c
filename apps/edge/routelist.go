package edge

import (
	"cmp"
	"slices"
	"strings"

	"crier/apps/edge/route"
)

// Route is one entry of the route table. It responds with 500 if its Credential and its Limits do
// not fit together.
type Route struct {
	// Method is the HTTP method. A GET route also serves HEAD.
	Method string
	// Path is the path, with parameters in the form {name}.
	Path  string
	State State
	// Operation is the id in the OpenAPI document, or empty if the route is not built.
	Operation  string
	Credential Credential
	Limits     Limits
	// Personal routes reveal or change secrets, or give a person's own consent. They are refused
	// while an instance administrator is impersonating the person.
	Personal bool

	// changing is set for a GET that changes something; see Changing.
	changing bool
	endpoint route.Endpoint
}

// State is whether a route works. Only Built routes are in the OpenAPI document.
type State string

// The states of a route. Routes that are not Built respond with 501.
const (
	Built State = "built"
	// Missing is a route of the interface that is not built.
	Missing State = "missing"
	// Planned is a route that is neither listed in the interface nor built.
	Planned State = "planned"
)

// String returns "METHOD path". Example: GET /public/v1/posts/{id}
func (r Route) String() string { return r.Method + " " + r.Path }

// line is a line of the route table: an endpoint and the audiences that may call it, each at its
// own route.
type line struct {
	state     State
	operation string
	endpoint  route.Endpoint
	at        []Route
}

// at returns a route that requires the credential. pattern is "METHOD path".
func (c Credential) at(pattern string, limits Limits) Route {
	method, path, _ := strings.Cut(pattern, " ")
	return Route{Method: method, Path: path, Credential: c, Limits: limits}
}

// personal marks a route as personal; see Route.
func (r Route) personal() Route {
	r.Personal = true
	return r
}

// starts marks a GET that starts something to be finished later.
func (r Route) starts() Route {
	r.changing = true
	return r
}

// built returns the line of an endpoint that works. The first route has the operation as its id;
// for the others, see inSession.
func built(operation string, endpoint route.Endpoint, at ...Route) line {
	return line{state: Built, operation: operation, endpoint: endpoint, at: at}
}

func missing(at Route) line {
	return line{state: Missing, endpoint: route.NotBuilt(), at: []Route{at}}
}

func planned(at Route) line {
	return line{state: Planned, endpoint: route.NotBuilt(), at: []Route{at}}
}

// inSession is appended to an operation's id on the session route of an endpoint that also serves
// another audience.
const inSession = "-in-session"

// routes returns the routes of the line.
func (l line) routes() []Route {
	out := slices.Clone(l.at)
	for i := range out {
		out[i].State, out[i].Operation, out[i].endpoint = l.state, l.operation, l.endpoint
		if i > 0 && l.state == Built {
			out[i].Operation += inSession
		}
	}
	return out
}

// aliasPrefix is the prefix of the paths at which the public API is served a second time.
const aliasPrefix = "/api"

// publicPrefix starts the paths of the public API.
const publicPrefix = "/public/v1/"

// withAliases returns the routes plus an alias for each route of the public API, unless the table
// already has a route there.
func withAliases(routes []Route) []Route {
	own := map[string]bool{}
	for _, r := range routes {
		own[r.String()] = true
	}
	out := slices.Clone(routes)
	for _, r := range routes {
		if r.Credential != apiKey || !strings.HasPrefix(r.Path, publicPrefix) {
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

// line converts the route for the table of package route. Its security in the OpenAPI document and
// the statuses with which its guards refuse requests follow from its credential.
func (r Route) line(g *guards) route.Line {
	l := route.Line{
		Method: r.Method, Path: r.Path, Operation: r.Operation, Before: g.before(r), Endpoint: r.endpoint,
	}
	of := credentials[r.Credential]
	switch of.audience {
	case programs:
		l.Security, l.Errors = []map[string][]string{{"key": {}}}, []int{401, 403, 429}
	case members, people:
		l.Security, l.Errors = []map[string][]string{{"cookie": {}}, {"session": {}}}, []int{401, 403, 429}
	}
	about := &l.Endpoint.Description
	about.Description = strings.TrimSpace(about.Description + " " + of.note)
	if strings.HasPrefix(r.Path, aliasPrefix+"/") {
		about.Tags = []string{"Public API (alias mount)"}
	}
	return l
}

// Routes returns all routes, sorted by path and method. It needs no running service.
func Routes() []Route { return unstarted("").table }

// OpenAPI returns the OpenAPI document of all routes as JSON, with the same bytes each time. The
// error is always Internal.
func OpenAPI() ([]byte, error) { return unstarted(interfaceVersion).document() }

// unstarted returns a server without dependencies, from which only the route table and the OpenAPI
// document can be read.
func unstarted(version string) *Server {
	s := &Server{cfg: Config{BaseURL: "http://localhost"}, deps: Deps{Version: version}}
	s.buildRoutes()
	return s
}

// buildRoutes fills the route table and the OpenAPI document. It calls no dependency, because the
// server of unstarted has none.
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
