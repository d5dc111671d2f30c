package edge

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/session"
	"crier/platform/fault"
)

// Credential is what a request must carry to reach the handler of a route.
type Credential string

const (
	// none is for routes that need no credential.
	none Credential = "none"
	// signIn is like none, but refuses requests that a browser sends for a page of another site.
	signIn Credential = "sign-in"
	// operator is MONITOR_TOKEN in the header X-Monitor-Token. The handler checks it.
	operator Credential = "operator"
	// apiKey is an API key in the header Authorization. The request is counted for its organization.
	apiKey Credential = "api key"
	// session is a session in the header or the cookie auth. The request is counted for the session. An unsafe request
	// must name no organization in showorg, or one of which the person is a member.
	member Credential = "session"
	// joined is like session, also without the second factor that the organization requires. The use case decides what is
	// possible then.
	joined Credential = "joined"
	// admin is a session with the role of an administrator or of the owner.
	admin Credential = "admin"
	// owner is a session with the role of the owner.
	owner Credential = "owner"
	// person is a session without the check of the organization, for routes that also work when showorg names an
	// organization that the person has left, and without access to any.
	person Credential = "person"
	// instance is like person, for administrators of the instance, also while they act as another person.
	instance Credential = "instance"
	// visitor is like signIn. With a live session the request acts for its person, and is not counted for the session.
	visitor Credential = "visitor"
)

// Limits are how much a request of a route may take: the bytes of its body, its time, and how many requests of one
// organization run at the same time in this process.
type Limits string

// Limits of routes without a credential.
const (
	// quick reads no body and has REQUEST_TIMEOUT.
	quick Limits = "quick"
	// download reads no body and has UPLOAD_TIMEOUT.
	download Limits = "download"
	// login reads JSON of at most loginBody bytes, of all requests together loginBodies, and has REQUEST_TIMEOUT.
	login Limits = "login"
	// beacon is like login, and takes text/plain for JSON, which pages send with navigator.sendBeacon. It is for routes
	// that do nothing for the person of a session.
	beacon Limits = "beacon"
	// register reads JSON of at most registerBody bytes, of all requests together registerBodies, and has
	// REQUEST_TIMEOUT.
	register Limits = "register"
	// connect reads JSON of at most connectBody bytes, of all requests together connectBodies, and has REQUEST_TIMEOUT.
	connect Limits = "connect"
	// page reads a form of at most pageBody bytes, of all requests together pageBodies, and has REQUEST_TIMEOUT.
	page Limits = "page"
)

// Limits of routes with an API key.
const (
	// read reads no body and has REQUEST_TIMEOUT. At most maxReads run until their answers are written.
	read Limits = "read"
	// list reads no body and has REQUEST_TIMEOUT. At most maxLists run until their answers are written.
	list Limits = "list"
	// write reads JSON of at most BODY_LIMIT and has REQUEST_TIMEOUT. At most maxWrites run, those of post included.
	write Limits = "write"
	// post reads JSON of at most POST_BODY_LIMIT, of all requests together maxBodies times as much, and has
	// REQUEST_TIMEOUT. At most maxWrites run, those of write included.
	post Limits = "post"
	// upload has UPLOAD_TIMEOUT. Its handler reads the body, of at most UPLOAD_BODY_LIMIT. At most maxUploads run.
	upload Limits = "upload"
	// fetch reads JSON of at most BODY_LIMIT and has UPLOAD_TIMEOUT. At most maxFetches run.
	fetch Limits = "fetch"
)

// Limits of routes with an API key or a session.
const (
	// statistics reads no body and has REQUEST_TIMEOUT. At most maxStatistics run until their answers are written. They may
	// wait for the servers of platforms, and take no places of other requests.
	statistics Limits = "statistics"
	// original reads no body and has UPLOAD_TIMEOUT. Its handler lets at most maxOriginals run,
	// each until its file has been sent.
	original Limits = "original"
)

// Limits of routes with a session.
const (
	// user reads JSON of at most BODY_LIMIT and has REQUEST_TIMEOUT. At most maxSessions run, those of form included.
	user Limits = "user"
	// form is like user, and refuses a body without the type application/json, which a plain HTML form could send.
	form Limits = "form"
	// own reads JSON of at most BODY_LIMIT, with its type as form, and has REQUEST_TIMEOUT. At most maxSessions of one
	// person run.
	own Limits = "own"
)

// guards are the handlers that run before those of the routes. All routes of a Server use the same guards, because they
// share the places that limit how many requests run at the same time.
type guards struct {
	credentials map[Credential][]fiber.Handler
	limits      map[Limits][]fiber.Handler
	// startConfirm runs before the credential is looked up, and the guard confirm after the limits, which read the
	// body.
	startConfirm func(Route) fiber.Handler
	recordActed  func(Route) []fiber.Handler
	// chosen refuses requests that name an organization of which the person is not a member.
	chosen fiber.Handler
}

// newGuards returns the guards of the server. Those of credentials find the principal; see permissions for who may go
// on. Bodies are read by the guards of limits, which run last.
func (s *Server) newGuards() guards {
	inTime, inLongTime := s.deadline(s.cfg.Timeout), s.deadline(s.cfg.UploadTimeout)
	body := s.readBody(s.cfg.BodyLimit, maxBodyValues)
	writes, sessions := s.limitRequests(maxWrites), s.limitRequests(maxSessions)
	jsonOnly := []fiber.Handler{session.JSONOnly}
	logins := slices.Concat(jsonOnly, s.openBodies(loginBodies, loginBody, s.readJSON))
	ofMember := []fiber.Handler{s.session.Session, s.session.Member}
	return guards{
		startConfirm: s.startConfirm,
		recordActed:  s.recordActed,
		chosen:       s.session.Chosen,
		credentials: map[Credential][]fiber.Handler{
			none:     nil,
			signIn:   {s.session.CheckSignInOrigin},
			operator: nil,
			apiKey:   {s.authenticate, s.admit},
			member:   ofMember,
			joined:   ofMember,
			admin:    ofMember,
			owner:    ofMember,
			person:   {s.session.Session},
			instance: {s.session.Session},
			visitor:  {s.session.CheckSignInOrigin, s.session.Visitor},
		},
		limits: map[Limits][]fiber.Handler{
			quick:    {inTime},
			download: {inLongTime},
			original: {inLongTime},
			login:    logins,
			beacon:   slices.Concat([]fiber.Handler{textAsJSON}, logins),
			register: slices.Concat(jsonOnly, s.openBodies(registerBodies, registerBody, s.readJSON)),
			connect:  slices.Concat(jsonOnly, s.openBodies(connectBodies, connectBody, s.readJSON)),
			page:     s.openBodies(pageBodies, pageBody, readForm),
			read:     {inTime, s.limitAnswers(maxReads)},
			list:     {inTime, s.limitAnswers(maxLists)},
			write:    {body, inTime, writes},
			post:     {s.limitBodies(s.cfg.PostLimit), s.readBody(s.cfg.PostLimit, 0), inTime, writes},
			upload:   {inLongTime, s.limitRequests(maxUploads), s.limitUpload},
			fetch:    {body, inLongTime, s.limitRequests(maxFetches)},
			user:     {body, inTime, sessions},
			form:     {body, inTime, sessions, session.JSONOnly},
			own:      {body, inTime, s.limitPersons(maxSessions), session.JSONOnly},

			statistics: {inTime, s.limitAnswers(maxStatistics)},
		},
	}
}

// limitsOf has the limits that a route may have, by its credential. The guards of limits count requests by what the
// guards of the credential store in the request.
var limitsOf = map[Credential][]Limits{
	none:     {quick, download, connect, login, beacon, register, page},
	signIn:   {quick, login, register},
	visitor:  {quick, download, register},
	operator: {quick},
	apiKey:   {read, list, write, post, upload, fetch, statistics, original},
	member:   {user, form, statistics, original},
	joined:   {user},
	admin:    {user, form},
	owner:    {user, form},
	person:   {own},
	instance: {own},
}

// before returns the handlers that run before the handler of a route. A route with a credential or limits that do not
// exist or do not fit together is never reached: it answers 500.
func (g guards) before(r Route) []fiber.Handler {
	_, listed := permissions[r.Credential]
	if !listed || !slices.Contains(limitsOf[r.Credential], r.Limits) {
		return []fiber.Handler{func(*fiber.Ctx) error {
			return fault.New(fault.Internal, "edge.guards", "This route has no valid guards.")
		}}
	}
	permitted := []fiber.Handler{permit(r)}
	if r.changing && r.Credential != apiKey {
		permitted = slices.Insert(permitted, 0, g.chosen)
	}
	return slices.Concat(
		[]fiber.Handler{g.startConfirm(r)},
		g.credentials[r.Credential], permitted, g.limits[r.Limits], []fiber.Handler{confirm}, g.recordActed(r),
	)
}
