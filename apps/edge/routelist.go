package edge

import (
	"cmp"
	"slices"
	"strings"

	"crier/apps/edge/route"
)

// Route is an entry in the route table. It responds with 500 if Credential and Limits are
// incompatible.
type Route struct {
	// Method is the HTTP method. A GET route also serves HEAD.
	Method string
	// Path has parameters in the form {name}. Example: /public/v1/posts/{id}
	Path  string
	State State
	// Operation is the operation's id in the OpenAPI document, or empty if the route is not built.
	Operation  string
	Credential Credential
	Limits     Limits
	// Personal marks a route that reveals or changes secrets, or through which a person gives
	// consent. Requests to the route are rejected while an instance administrator is impersonating
	// the person.
	Personal bool
	// KeyOnly marks a route that does not accept an agent's access token.
	KeyOnly bool

	// twin is the credential of the session route on the same line of the route table. If the line
	// has no session route, twin is member. See permitsAgent.
	twin Credential
	// changing is set for a GET that changes something; see Changing.
	changing bool
	endpoint route.Endpoint
}

// State says whether a route works. Only Built routes are in the OpenAPI document.
type State string

// The states of a route. Routes that are not Built respond with 501.
const (
	Built State = "built"
	// Missing means that the route is part of the interface but not built.
	Missing State = "missing"
	// Planned means that the route is neither part of the interface nor built.
	Planned State = "planned"
)

// String returns "METHOD path". Example: GET /public/v1/posts/{id}
func (r Route) String() string { return r.Method + " " + r.Path }

// line is a line of the route table: an endpoint and a route for each audience that may call it.
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

// keyOnly marks a route as one that agents may not use; see Route.
func (r Route) keyOnly() Route {
	r.KeyOnly = true
	return r
}

// starts marks a GET route that starts a process to be finished later, such as connecting a
// channel.
func (r Route) starts() Route {
	r.changing = true
	return r
}

// built returns the line for a working endpoint. operation is the operation id of the first route.
// For the ids of the other routes, see inSession.
func built(operation string, endpoint route.Endpoint, at ...Route) line {
	return line{state: Built, operation: operation, endpoint: endpoint, at: at}
}

func missing(at Route) line {
	return line{state: Missing, endpoint: route.NotBuilt(), at: []Route{at}}
}

func planned(at Route) line {
	return line{state: Planned, endpoint: route.NotBuilt(), at: []Route{at}}
}

// inSession is appended to the operation id of a session route if the route's endpoint also serves
// another audience.
const inSession = "-in-session"

// routes returns the routes of the line.
func (l line) routes() []Route {
	out, twin := slices.Clone(l.at), member
	for _, r := range out {
		if credentials[r.Credential].audience == members {
			twin = r.Credential
		}
	}
	for i := range out {
		out[i].twin = twin
		out[i].State, out[i].Operation, out[i].endpoint = l.state, l.operation, l.endpoint
		if i > 0 && l.state == Built {
			out[i].Operation += inSession
		}
	}
	return out
}

// aliasPrefix is the prefix of the paths under which the public API is served a second time.
// Example: /api/public/v1/posts
const aliasPrefix = "/api"

// publicPrefix starts the public API's paths.
const publicPrefix = "/public/v1/"

// withAliases returns the routes and an alias for each route of the public API. It does not add an
// alias that the table already contains.
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

// line converts the route to a line of package route's table. The credential determines the route's
// security in the OpenAPI document. It also determines the statuses with which the guards can
// reject requests.
func (r Route) line(g *guards) route.Line {
	l := route.Line{
		Method: r.Method, Path: r.Path, Operation: r.Operation, Before: g.before(r), Endpoint: r.endpoint,
	}
	of := credentials[r.Credential]
	switch of.audience {
	case programs:
		l.Security, l.Errors = []map[string][]string{{"key": {}}}, []int{401, 403, 429}
		if !r.KeyOnly {
			l.Security = append(l.Security, map[string][]string{"token": {}})
		}
	case agents:
		l.Security, l.Errors = []map[string][]string{{"bearer": {}}}, []int{401, 403, 429}
	case holders:
		l.Errors = []int{401, 403, 404, 410, 429}
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

// Routes returns all routes, sorted by path and method. It can be called without a running service.
func Routes() []Route { return unstarted("").table }

// OpenAPI returns the OpenAPI document for all routes as JSON. Every call returns the same bytes.
// Any error is Internal.
func OpenAPI() ([]byte, error) { return unstarted(interfaceVersion).document() }

// unstarted returns a server without dependencies, which can provide only the route table and the
// OpenAPI document.
func unstarted(version string) *Server {
	s := &Server{cfg: Config{BaseURL: "http://localhost"}, deps: Deps{Version: version}}
	s.buildRoutes()
	return s
}

// buildRoutes fills the route table and the OpenAPI document. It calls no dependency, because the
// server that unstarted returns has none.
func (s *Server) buildRoutes() {
	s.gate, s.session = s.newGuard()
	e := s.newEndpoints()
	s.mcp, s.monitor = e.mcp, e.monitor
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
