package edge

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/mcp"
	oauthapi "crier/apps/edge/oauth"
	"crier/apps/edge/session"
	"crier/platform/fault"
)

// Limits bounds the size of a request's body, the time that the request may take, and how many of
// an organization's requests can run concurrently in this process.
type Limits struct {
	name string
	// serves lists the audiences that these limits apply to. Requests are counted by the principal
	// that the credential's handlers found.
	serves []audience
	guards func(*guards) []fiber.Handler
}

// String returns the name.
func (l Limits) String() string { return l.name }

// Limits for routes without a credential.
var (
	// quick reads no body and times out after REQUEST_TIMEOUT.
	quick = Limits{"quick", []audience{anybody}, func(g *guards) []fiber.Handler { return g.quick }}
	// download reads no body and times out after UPLOAD_TIMEOUT.
	download = Limits{"download", []audience{anybody}, func(g *guards) []fiber.Handler { return g.download }}
	// login reads a JSON body of at most loginBody bytes and times out after REQUEST_TIMEOUT. The
	// bodies of all concurrent login and beacon requests may total at most loginBodies bytes.
	login = Limits{"login", []audience{anybody}, func(g *guards) []fiber.Handler { return g.login }}
	// beacon is like login but also accepts JSON sent as text/plain, because navigator.sendBeacon
	// sends it that way. It must not be used for routes that act for a signed-in person.
	beacon = Limits{"beacon", []audience{anybody}, func(g *guards) []fiber.Handler { return g.beacon }}
	// register reads a JSON body of at most registerBody bytes and times out after REQUEST_TIMEOUT.
	// The bodies of all concurrent requests may total at most registerBodies bytes.
	register = Limits{"register", []audience{anybody}, func(g *guards) []fiber.Handler { return g.register }}
	// connect reads a JSON body of at most connectBody bytes and times out after REQUEST_TIMEOUT.
	// The bodies of all concurrent requests may total at most connectBodies bytes.
	connect = Limits{"connect", []audience{anybody}, func(g *guards) []fiber.Handler { return g.connect }}
	// page reads a form of at most pageBody bytes and times out after REQUEST_TIMEOUT. The bodies
	// of all concurrent requests may total at most pageBodies bytes.
	page = Limits{"page", []audience{anybody}, func(g *guards) []fiber.Handler { return g.page }}
)

// Limits for the OAuth server.
var (
	// consent reads a JSON body or a form of at most consentBody bytes and times out after
	// REQUEST_TIMEOUT. The bodies of all concurrent requests may total at most consentBodies bytes.
	consent = Limits{"consent", []audience{anybody}, func(g *guards) []fiber.Handler { return g.consent }}
	// client reads a JSON body or a form of at most clientBody bytes and times out after
	// REQUEST_TIMEOUT. The bodies of all concurrent requests may total at most clientBodies bytes.
	// All errors have the form of RFC 6749.
	client = Limits{"client", []audience{anybody}, func(g *guards) []fiber.Handler { return g.client }}
	// metadata is like client but accepts only JSON.
	metadata = Limits{"metadata", []audience{anybody}, func(g *guards) []fiber.Handler { return g.metadata }}
)

// Limits for routes with an API key. Concurrent requests are counted per organization.
var (
	// read reads no body and times out after REQUEST_TIMEOUT. At most maxReads requests run
	// concurrently. A request counts until its response has been written.
	read = Limits{"read", []audience{programs}, func(g *guards) []fiber.Handler { return g.read }}
	// list reads no body and times out after REQUEST_TIMEOUT. At most maxLists requests run
	// concurrently. A request counts until its response has been written.
	list = Limits{"list", []audience{programs}, func(g *guards) []fiber.Handler { return g.list }}
	// write reads a JSON body of at most BODY_LIMIT bytes and times out after REQUEST_TIMEOUT. At
	// most maxWrites requests run concurrently, including those limited by post.
	write = Limits{"write", []audience{programs}, func(g *guards) []fiber.Handler { return g.write }}
	// post reads a JSON body of at most POST_BODY_LIMIT bytes and times out after REQUEST_TIMEOUT.
	// The bodies of all concurrent requests may total at most maxBodies times POST_BODY_LIMIT. At
	// most maxWrites requests run concurrently, including those limited by write.
	post = Limits{"post", []audience{programs}, func(g *guards) []fiber.Handler { return g.post }}
	// upload times out after UPLOAD_TIMEOUT. The route's handler reads the body, which may have at
	// most UPLOAD_BODY_LIMIT bytes. At most maxUploads requests run concurrently. It also applies
	// to upload addresses.
	upload = Limits{"upload", []audience{programs, holders}, func(g *guards) []fiber.Handler { return g.upload }}
	// fetch reads a JSON body of at most BODY_LIMIT bytes and times out after UPLOAD_TIMEOUT. At
	// most maxFetches requests run concurrently.
	fetch = Limits{"fetch", []audience{programs}, func(g *guards) []fiber.Handler { return g.fetch }}
)

// call reads a JSON body of at most BODY_LIMIT bytes and times out after mcp.RequestTime. At most
// maxCalls requests per organization run concurrently.
var call = Limits{"call", []audience{agents}, func(g *guards) []fiber.Handler { return g.call }}

// Limits for routes with an API key or a session. Concurrent requests are counted per organization.
var (
	// statistics reads no body and times out after REQUEST_TIMEOUT. At most maxStatistics requests
	// run concurrently. A request counts until its response has been written. Statistics have a
	// separate limit because a request may have to wait for a platform's server.
	statistics = Limits{"statistics", []audience{programs, members}, func(g *guards) []fiber.Handler { return g.statistics }}
	// original reads no body and times out after UPLOAD_TIMEOUT. The route's handler lets at most
	// maxOriginals requests run concurrently. A request counts until its file has been sent.
	original = Limits{"original", []audience{programs, members}, func(g *guards) []fiber.Handler { return g.original }}
)

// Limits for routes with a session. Concurrent requests are counted per organization unless the
// comment says otherwise.
var (
	// user reads a JSON body of at most BODY_LIMIT bytes and times out after REQUEST_TIMEOUT. At
	// most maxSessions requests run concurrently, including those limited by form.
	user = Limits{"user", []audience{members}, func(g *guards) []fiber.Handler { return g.user }}
	// form is like user but rejects a body whose type is not application/json, because a plain HTML
	// form could have sent it.
	form = Limits{"form", []audience{members}, func(g *guards) []fiber.Handler { return g.form }}
	// own reads a JSON body of at most BODY_LIMIT bytes and times out after REQUEST_TIMEOUT. Like
	// form, it rejects other types of bodies. At most maxSessions requests from one person run
	// concurrently.
	own = Limits{"own", []audience{people}, func(g *guards) []fiber.Handler { return g.own }}
)

// guards holds the handlers that run before a route's own handler. All routes of a Server share one
// guards value, because they share the slots that limit concurrent requests.
type guards struct {
	server *Server
	// The handlers for each Limits value.
	quick, download, login, beacon, register, connect, page []fiber.Handler
	consent, client, metadata                               []fiber.Handler
	read, list, write, post, upload, fetch                  []fiber.Handler
	statistics, original, call                              []fiber.Handler
	user, form, own                                         []fiber.Handler
}

// newGuards returns the server's guards.
func (s *Server) newGuards() *guards {
	inTime, inLongTime := deadline(s.cfg.Timeout), deadline(s.cfg.UploadTimeout)
	body, jsonOnly := readBody(s.cfg.BodyLimit, maxBodyValues), fiber.Handler(session.JSONOnly)
	writes, sessions := limitRequests(maxWrites), limitRequests(maxSessions)
	login := slices.Insert(s.openBodies(loginBodies, loginBody, readJSON), 0, jsonOnly)
	return &guards{
		server: s,

		quick:    []fiber.Handler{inTime},
		download: []fiber.Handler{inLongTime},
		login:    login,
		beacon:   slices.Insert(slices.Clone(login), 0, fiber.Handler(textAsJSON)),
		register: slices.Insert(s.openBodies(registerBodies, registerBody, readJSON), 0, jsonOnly),
		connect:  slices.Insert(s.openBodies(connectBodies, connectBody, readJSON), 0, jsonOnly),
		page:     s.openBodies(pageBodies, pageBody, readForm),

		consent:  s.openBodies(consentBodies, consentBody, readEither),
		client:   slices.Insert(s.openBodies(clientBodies, clientBody, readEither), 0, fiber.Handler(oauthapi.AnswerErrors)),
		metadata: slices.Insert(s.openBodies(clientBodies, clientBody, readJSON), 0, fiber.Handler(oauthapi.AnswerErrors)),

		read:   []fiber.Handler{inTime, limitAnswers(maxReads)},
		list:   []fiber.Handler{inTime, limitAnswers(maxLists)},
		write:  []fiber.Handler{body, inTime, writes},
		post:   []fiber.Handler{limitBodies(s.cfg.PostLimit), readBody(s.cfg.PostLimit, 0), inTime, writes},
		upload: []fiber.Handler{inLongTime, limitRequests(maxUploads), s.transfers.limitUpload},
		fetch:  []fiber.Handler{body, inLongTime, limitRequests(maxFetches)},

		statistics: []fiber.Handler{inTime, limitAnswers(maxStatistics)},
		original:   []fiber.Handler{inLongTime},
		call:       []fiber.Handler{body, deadline(mcp.RequestTime), limitRequests(maxCalls)},

		user: []fiber.Handler{body, inTime, sessions},
		form: []fiber.Handler{body, inTime, sessions, jsonOnly},
		own:  []fiber.Handler{body, inTime, limitPersons(maxSessions), jsonOnly},
	}
}

// before returns the handlers that run before a route's own handler. First, the credential's
// handlers find the principal, and permit checks whether the principal may use the route. Only then
// do the limits' handlers run, because they read the body. After that, confirm and recordActed run.
//
// If the credential or the limits are unknown or incompatible, every request gets a 500 response
// and never reaches the route's handler.
func (g *guards) before(r Route) []fiber.Handler {
	s, of := g.server, credentials[r.Credential]
	var limited []fiber.Handler
	if slices.Contains(r.Limits.serves, of.audience) {
		limited = r.Limits.guards(g)
	}
	if len(limited) == 0 {
		return []fiber.Handler{func(*fiber.Ctx) error {
			return fault.New(fault.Internal, "edge.guards", "This route has no valid guards.")
		}}
	}
	permitted := []fiber.Handler{permit(r)}
	if r.changing && of.audience != programs && of.audience != agents {
		permitted = slices.Insert(permitted, 0, fiber.Handler(s.session.Chosen))
	}
	return slices.Concat(
		[]fiber.Handler{s.startConfirm(r)},
		of.find(s), permitted, limited, []fiber.Handler{confirm}, s.recordActed(r),
	)
}
