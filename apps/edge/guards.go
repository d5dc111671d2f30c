package edge

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/session"
	"crier/platform/fault"
)

// Limits bounds the requests of a route: the size of the body, the time a request may take, and how
// many requests of one organization run concurrently in this process.
type Limits struct {
	name string
	// serves lists the audiences that these limits fit: they count requests by the principal that
	// the credential's handlers found.
	serves []audience
	guards func(*guards) []fiber.Handler
}

// String returns the name.
func (l Limits) String() string { return l.name }

// Limits of routes without a credential.
var (
	// quick reads no body and runs for at most REQUEST_TIMEOUT.
	quick = Limits{"quick", []audience{anybody}, func(g *guards) []fiber.Handler { return g.quick }}
	// download reads no body and runs for at most UPLOAD_TIMEOUT.
	download = Limits{"download", []audience{anybody}, func(g *guards) []fiber.Handler { return g.download }}
	// login reads JSON of at most loginBody bytes, loginBodies for all requests together, and runs
	// for at most REQUEST_TIMEOUT.
	login = Limits{"login", []audience{anybody}, func(g *guards) []fiber.Handler { return g.login }}
	// beacon is like login but also accepts JSON sent as text/plain, as navigator.sendBeacon does.
	// It is for routes that do nothing on behalf of a session's person.
	beacon = Limits{"beacon", []audience{anybody}, func(g *guards) []fiber.Handler { return g.beacon }}
	// register reads JSON of at most registerBody bytes, registerBodies for all requests together,
	// and runs for at most REQUEST_TIMEOUT.
	register = Limits{"register", []audience{anybody}, func(g *guards) []fiber.Handler { return g.register }}
	// connect reads JSON of at most connectBody bytes, connectBodies for all requests together, and
	// runs for at most REQUEST_TIMEOUT.
	connect = Limits{"connect", []audience{anybody}, func(g *guards) []fiber.Handler { return g.connect }}
	// page reads a form of at most pageBody bytes, pageBodies for all requests together, and runs
	// for at most REQUEST_TIMEOUT.
	page = Limits{"page", []audience{anybody}, func(g *guards) []fiber.Handler { return g.page }}
)

// Limits of routes with an API key.
var (
	// read reads no body and runs for at most REQUEST_TIMEOUT. At most maxReads run at once, each
	// until its response is written.
	read = Limits{"read", []audience{programs}, func(g *guards) []fiber.Handler { return g.read }}
	// list reads no body and runs for at most REQUEST_TIMEOUT. At most maxLists run at once, each
	// until its response is written.
	list = Limits{"list", []audience{programs}, func(g *guards) []fiber.Handler { return g.list }}
	// write reads JSON of at most BODY_LIMIT and runs for at most REQUEST_TIMEOUT. At most
	// maxWrites run at once, including requests limited by post.
	write = Limits{"write", []audience{programs}, func(g *guards) []fiber.Handler { return g.write }}
	// post reads JSON of at most POST_BODY_LIMIT, maxBodies times as much for all requests
	// together, and runs for at most REQUEST_TIMEOUT. At most maxWrites run at once, including
	// requests limited by write.
	post = Limits{"post", []audience{programs}, func(g *guards) []fiber.Handler { return g.post }}
	// upload runs for at most UPLOAD_TIMEOUT. Its handler reads the body, at most
	// UPLOAD_BODY_LIMIT. At most maxUploads run at once.
	upload = Limits{"upload", []audience{programs}, func(g *guards) []fiber.Handler { return g.upload }}
	// fetch reads JSON of at most BODY_LIMIT and runs for at most UPLOAD_TIMEOUT. At most
	// maxFetches run at once.
	fetch = Limits{"fetch", []audience{programs}, func(g *guards) []fiber.Handler { return g.fetch }}
)

// Limits of routes with an API key or a session.
var (
	// statistics reads no body and runs for at most REQUEST_TIMEOUT. At most maxStatistics run at
	// once, each until its response is written. They have their own limit because they may wait for
	// a platform's server.
	statistics = Limits{"statistics", []audience{programs, members}, func(g *guards) []fiber.Handler { return g.statistics }}
	// original reads no body and runs for at most UPLOAD_TIMEOUT. Its handler lets at most
	// maxOriginals run at once, each until its file has been sent.
	original = Limits{"original", []audience{programs, members}, func(g *guards) []fiber.Handler { return g.original }}
)

// Limits of routes with a session.
var (
	// user reads JSON of at most BODY_LIMIT and runs for at most REQUEST_TIMEOUT. At most
	// maxSessions run at once, including requests limited by form.
	user = Limits{"user", []audience{members}, func(g *guards) []fiber.Handler { return g.user }}
	// form is like user but refuses a body whose type is not application/json, because a plain HTML
	// form could have sent it.
	form = Limits{"form", []audience{members}, func(g *guards) []fiber.Handler { return g.form }}
	// own reads JSON of at most BODY_LIMIT, whose type it checks as form does, and runs for at most
	// REQUEST_TIMEOUT. At most maxSessions requests of one person run at once.
	own = Limits{"own", []audience{people}, func(g *guards) []fiber.Handler { return g.own }}
)

// guards holds the handlers that run before a route's own handler. All routes of a Server use the
// same guards, because they share the slots that limit concurrent requests.
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

// before returns the handlers that run before the handler of a route. The credential's handlers
// find the principal, permit decides whether it may proceed, and the limits' handlers come last,
// because they read the body. If the credential or the limits do not exist, or do not fit together,
// the route's handler is never reached and the response to every request is 500.
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
