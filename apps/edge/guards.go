package edge

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/session"
	"crier/platform/fault"
)

// Limits are how much a request of a route may take: the bytes of its body, its time, and how many requests of one
// organization run at the same time in this process.
type Limits struct {
	name string
	// serves are the audiences that it fits: guards of limits count requests by what those of the credential have found.
	serves []audience
	guards func(*guards) []fiber.Handler
}

// String returns the name.
func (l Limits) String() string { return l.name }

// Limits of routes without a credential.
var (
	// quick reads no body and has REQUEST_TIMEOUT.
	quick = Limits{"quick", []audience{anybody}, func(g *guards) []fiber.Handler { return []fiber.Handler{g.inTime} }}
	// download reads no body and has UPLOAD_TIMEOUT.
	download = Limits{"download", []audience{anybody}, func(g *guards) []fiber.Handler { return []fiber.Handler{g.inLongTime} }}
	// login reads JSON of at most loginBody bytes, of all requests together loginBodies, and has REQUEST_TIMEOUT.
	login = Limits{"login", []audience{anybody}, func(g *guards) []fiber.Handler { return g.login }}
	// beacon is like login, and takes text/plain for JSON, which pages send with navigator.sendBeacon. It is for routes
	// that do nothing for the person of a session.
	beacon = Limits{"beacon", []audience{anybody}, func(g *guards) []fiber.Handler { return g.beacon }}
	// register reads JSON of at most registerBody bytes, of all requests together registerBodies, and has
	// REQUEST_TIMEOUT.
	register = Limits{"register", []audience{anybody}, func(g *guards) []fiber.Handler { return g.register }}
	// connect reads JSON of at most connectBody bytes, of all requests together connectBodies, and has REQUEST_TIMEOUT.
	connect = Limits{"connect", []audience{anybody}, func(g *guards) []fiber.Handler { return g.connect }}
	// page reads a form of at most pageBody bytes, of all requests together pageBodies, and has REQUEST_TIMEOUT.
	page = Limits{"page", []audience{anybody}, func(g *guards) []fiber.Handler { return g.page }}
)

// Limits of routes with an API key.
var (
	// read reads no body and has REQUEST_TIMEOUT. At most maxReads run until their answers are written.
	read = Limits{"read", []audience{programs}, func(g *guards) []fiber.Handler { return []fiber.Handler{g.inTime, g.reads} }}
	// list reads no body and has REQUEST_TIMEOUT. At most maxLists run until their answers are written.
	list = Limits{"list", []audience{programs}, func(g *guards) []fiber.Handler { return []fiber.Handler{g.inTime, g.lists} }}
	// write reads JSON of at most BODY_LIMIT and has REQUEST_TIMEOUT. At most maxWrites run, those of post included.
	write = Limits{"write", []audience{programs}, func(g *guards) []fiber.Handler { return []fiber.Handler{g.body, g.inTime, g.writes} }}
	// post reads JSON of at most POST_BODY_LIMIT, of all requests together maxBodies times as much, and has
	// REQUEST_TIMEOUT. At most maxWrites run, those of write included.
	post = Limits{"post", []audience{programs}, func(g *guards) []fiber.Handler { return []fiber.Handler{g.postBodies, g.postBody, g.inTime, g.writes} }}
	// upload has UPLOAD_TIMEOUT. Its handler reads the body, of at most UPLOAD_BODY_LIMIT. At most maxUploads run.
	upload = Limits{"upload", []audience{programs}, func(g *guards) []fiber.Handler { return []fiber.Handler{g.inLongTime, g.uploads, g.uploadBody} }}
	// fetch reads JSON of at most BODY_LIMIT and has UPLOAD_TIMEOUT. At most maxFetches run.
	fetch = Limits{"fetch", []audience{programs}, func(g *guards) []fiber.Handler { return []fiber.Handler{g.body, g.inLongTime, g.fetches} }}
)

// Limits of routes with an API key or a session.
var (
	// statistics reads no body and has REQUEST_TIMEOUT. At most maxStatistics run until their answers are written. They may
	// wait for the servers of platforms, and take no places of other requests.
	statistics = Limits{"statistics", []audience{programs, members}, func(g *guards) []fiber.Handler { return []fiber.Handler{g.inTime, g.statistics} }}
	// original reads no body and has UPLOAD_TIMEOUT. Its handler lets at most maxOriginals run,
	// each until its file has been sent.
	original = Limits{"original", []audience{programs, members}, func(g *guards) []fiber.Handler { return []fiber.Handler{g.inLongTime} }}
)

// Limits of routes with a session.
var (
	// user reads JSON of at most BODY_LIMIT and has REQUEST_TIMEOUT. At most maxSessions run, those of form included.
	user = Limits{"user", []audience{members}, func(g *guards) []fiber.Handler { return []fiber.Handler{g.body, g.inTime, g.sessions} }}
	// form is like user, and refuses a body without the type application/json, which a plain HTML form could send.
	form = Limits{"form", []audience{members}, func(g *guards) []fiber.Handler {
		return []fiber.Handler{g.body, g.inTime, g.sessions, session.JSONOnly}
	}}
	// own reads JSON of at most BODY_LIMIT, with its type as form, and has REQUEST_TIMEOUT. At most maxSessions of one
	// person run.
	own = Limits{"own", []audience{people}, func(g *guards) []fiber.Handler { return []fiber.Handler{g.body, g.inTime, g.persons, session.JSONOnly} }}
)

// guards are the handlers that run before those of the routes. All routes of a Server use the same guards, because they
// share the places that limit how many requests run at the same time.
type guards struct {
	server *Server

	inTime, inLongTime                     fiber.Handler
	body, postBodies, postBody, uploadBody fiber.Handler
	reads, lists, statistics               fiber.Handler
	writes, uploads, fetches               fiber.Handler
	sessions, persons                      fiber.Handler
	login, beacon, register, connect, page []fiber.Handler
}

// newGuards returns the guards of the server.
func (s *Server) newGuards() *guards {
	g := &guards{
		server: s,
		inTime: deadline(s.cfg.Timeout), inLongTime: deadline(s.cfg.UploadTimeout),

		body:       readBody(s.cfg.BodyLimit, maxBodyValues),
		postBodies: limitBodies(s.cfg.PostLimit), postBody: readBody(s.cfg.PostLimit, 0),
		uploadBody: s.transfers.limitUpload,

		reads: limitAnswers(maxReads), lists: limitAnswers(maxLists), statistics: limitAnswers(maxStatistics),
		writes: limitRequests(maxWrites), uploads: limitRequests(maxUploads), fetches: limitRequests(maxFetches),
		sessions: limitRequests(maxSessions), persons: limitPersons(maxSessions),

		page: s.openBodies(pageBodies, pageBody, readForm),
	}
	jsonOnly := []fiber.Handler{session.JSONOnly}
	g.login = slices.Concat(jsonOnly, s.openBodies(loginBodies, loginBody, readJSON))
	g.beacon = slices.Concat([]fiber.Handler{textAsJSON}, g.login)
	g.register = slices.Concat(jsonOnly, s.openBodies(registerBodies, registerBody, readJSON))
	g.connect = slices.Concat(jsonOnly, s.openBodies(connectBodies, connectBody, readJSON))
	return g
}

// before returns the handlers that run before the handler of a route: those of the credential find the principal, permit
// decides whether it may go on, and those of the limits run last, because they read the body. A route with a credential
// or limits that do not exist or do not fit together is never reached: it answers 500.
func (g *guards) before(r Route) []fiber.Handler {
	s, of := g.server, credentials[r.Credential]
	if !slices.Contains(r.Limits.serves, of.audience) {
		return []fiber.Handler{func(*fiber.Ctx) error {
			return fault.New(fault.Internal, "edge.guards", "This route has no valid guards.")
		}}
	}
	permitted := []fiber.Handler{permit(r)}
	if r.changing && of.audience != programs {
		permitted = slices.Insert(permitted, 0, fiber.Handler(s.session.Chosen))
	}
	return slices.Concat(
		[]fiber.Handler{s.startConfirm(r)},
		of.find(s), permitted, r.Limits.guards(g), []fiber.Handler{confirm}, s.recordActed(r),
	)
}
