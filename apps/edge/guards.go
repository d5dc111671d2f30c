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
	quick = Limits{"quick", []audience{anybody}, func(g *guards) []fiber.Handler { return g.quick }}
	// download reads no body and has UPLOAD_TIMEOUT.
	download = Limits{"download", []audience{anybody}, func(g *guards) []fiber.Handler { return g.download }}
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
	read = Limits{"read", []audience{programs}, func(g *guards) []fiber.Handler { return g.read }}
	// list reads no body and has REQUEST_TIMEOUT. At most maxLists run until their answers are written.
	list = Limits{"list", []audience{programs}, func(g *guards) []fiber.Handler { return g.list }}
	// write reads JSON of at most BODY_LIMIT and has REQUEST_TIMEOUT. At most maxWrites run, those of post included.
	write = Limits{"write", []audience{programs}, func(g *guards) []fiber.Handler { return g.write }}
	// post reads JSON of at most POST_BODY_LIMIT, of all requests together maxBodies times as much, and has
	// REQUEST_TIMEOUT. At most maxWrites run, those of write included.
	post = Limits{"post", []audience{programs}, func(g *guards) []fiber.Handler { return g.post }}
	// upload has UPLOAD_TIMEOUT. Its handler reads the body, of at most UPLOAD_BODY_LIMIT. At most maxUploads run.
	upload = Limits{"upload", []audience{programs}, func(g *guards) []fiber.Handler { return g.upload }}
	// fetch reads JSON of at most BODY_LIMIT and has UPLOAD_TIMEOUT. At most maxFetches run.
	fetch = Limits{"fetch", []audience{programs}, func(g *guards) []fiber.Handler { return g.fetch }}
)

// Limits of routes with an API key or a session.
var (
	// statistics reads no body and has REQUEST_TIMEOUT. At most maxStatistics run until their answers are written. They may
	// wait for the servers of platforms, and take no places of other requests.
	statistics = Limits{"statistics", []audience{programs, members}, func(g *guards) []fiber.Handler { return g.statistics }}
	// original reads no body and has UPLOAD_TIMEOUT. Its handler lets at most maxOriginals run,
	// each until its file has been sent.
	original = Limits{"original", []audience{programs, members}, func(g *guards) []fiber.Handler { return g.original }}
)

// Limits of routes with a session.
var (
	// user reads JSON of at most BODY_LIMIT and has REQUEST_TIMEOUT. At most maxSessions run, those of form included.
	user = Limits{"user", []audience{members}, func(g *guards) []fiber.Handler { return g.user }}
	// form is like user, and refuses a body without the type application/json, which a plain HTML form could send.
	form = Limits{"form", []audience{members}, func(g *guards) []fiber.Handler { return g.form }}
	// own reads JSON of at most BODY_LIMIT, with its type as form, and has REQUEST_TIMEOUT. At most maxSessions of one
	// person run.
	own = Limits{"own", []audience{people}, func(g *guards) []fiber.Handler { return g.own }}
)

// guards are the handlers that run before those of the routes. All routes of a Server use the same guards, because they
// share the places that limit how many requests run at the same time.
type guards struct {
	server *Server
	// The handlers of each Limits.
	quick, download, login, beacon, register, connect, page []fiber.Handler
	read, list, write, post, upload, fetch                  []fiber.Handler
	statistics, original                                    []fiber.Handler
	user, form, own                                         []fiber.Handler
}

// newGuards returns the guards of the server.
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

		read:   []fiber.Handler{inTime, limitAnswers(maxReads)},
		list:   []fiber.Handler{inTime, limitAnswers(maxLists)},
		write:  []fiber.Handler{body, inTime, writes},
		post:   []fiber.Handler{limitBodies(s.cfg.PostLimit), readBody(s.cfg.PostLimit, 0), inTime, writes},
		upload: []fiber.Handler{inLongTime, limitRequests(maxUploads), s.transfers.limitUpload},
		fetch:  []fiber.Handler{body, inLongTime, limitRequests(maxFetches)},

		statistics: []fiber.Handler{inTime, limitAnswers(maxStatistics)},
		original:   []fiber.Handler{inLongTime},

		user: []fiber.Handler{body, inTime, sessions},
		form: []fiber.Handler{body, inTime, sessions, jsonOnly},
		own:  []fiber.Handler{body, inTime, limitPersons(maxSessions), jsonOnly},
	}
}

// before returns the handlers that run before the handler of a route: those of the credential find the principal, permit
// decides whether it may go on, and those of the limits run last, because they read the body. A route with a credential
// or limits that do not exist or do not fit together is never reached: it answers 500.
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
	if r.changing && of.audience != programs {
		permitted = slices.Insert(permitted, 0, fiber.Handler(s.session.Chosen))
	}
	return slices.Concat(
		[]fiber.Handler{s.startConfirm(r)},
		of.find(s), permitted, limited, []fiber.Handler{confirm}, s.recordActed(r),
	)
}
