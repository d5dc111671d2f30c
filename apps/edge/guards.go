package edge

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"crier/apps/edge/appapi"
)

// Credential is what a request must carry to reach the handler of a route.
type Credential string

const (
	// none: everybody may call the route.
	none Credential = "none"
	// signIn: everybody may call the route, but browsers only from a page of the service or of the dashboard.
	signIn Credential = "sign-in"
	// operator: MONITOR_TOKEN in X-Monitor-Token. The handler checks it.
	operator Credential = "operator"
	// apiKey: an API key in the header Authorization. The request is counted for its organization.
	apiKey Credential = "api key"
	// session: a session in the header or cookie auth. The request is counted for the session. An unsafe request must
	// name no organization, or one of which the person is a member.
	session Credential = "session"
	// person: a session as before, without the check of the organization, for routes that also work when showorg names
	// an organization that the person has left.
	person Credential = "person"
)

// Limits are how much a request of a route may take: the bytes of its body, its time, and how many of the same
// organization run at the same time in this process.
type Limits string

const (
	// quick: the body is not read. REQUEST_TIMEOUT.
	quick Limits = "quick"
	// download: the body is not read. UPLOAD_TIMEOUT.
	download Limits = "download"
	// login: JSON of at most loginBody bytes, all log-ins together loginBodies. REQUEST_TIMEOUT.
	login Limits = "login"
	// connect: JSON of at most connectBody bytes, all such requests together connectBodies. REQUEST_TIMEOUT.
	connect Limits = "connect"

	// read: the body is not read. REQUEST_TIMEOUT. At most maxReads until the answer is written.
	read Limits = "read"
	// list: the body is not read. REQUEST_TIMEOUT. At most maxLists until the answer is written.
	list Limits = "list"
	// write: JSON of at most BODY_LIMIT. REQUEST_TIMEOUT. At most maxWrites, post included.
	write Limits = "write"
	// post: JSON of at most POST_BODY_LIMIT, all bodies of an organization together maxBodies times as much.
	// REQUEST_TIMEOUT. At most maxWrites, write included.
	post Limits = "post"
	// upload: a body that the handler reads, of at most UPLOAD_BODY_LIMIT. UPLOAD_TIMEOUT. At most maxUploads.
	upload Limits = "upload"

	// user: JSON of at most BODY_LIMIT. REQUEST_TIMEOUT. At most maxSessions of the routes with user and form.
	user Limits = "user"
	// form: the same, and the body must have the type application/json, which no HTML form can send.
	form Limits = "form"
	// own: JSON of at most BODY_LIMIT. REQUEST_TIMEOUT.
	own Limits = "own"
)

// guards are the handlers that run before those of the routes. All routes of a Server use the same guards, because they
// share the places that limit how many requests run at the same time.
type guards struct {
	credentials map[Credential][]fiber.Handler
	limits      map[Limits][]fiber.Handler
}

// newGuards returns the guards of the server. Bodies are read by the guards of limits, which run after those of
// credentials.
func (s *Server) newGuards() guards {
	inTime, inLongTime := s.deadline(s.cfg.Timeout), s.deadline(s.cfg.UploadTimeout)
	body := s.readBody(s.cfg.BodyLimit, maxBodyValues)
	writes, sessions := s.limitRequests(maxWrites), s.limitRequests(maxSessions)
	jsonOnly := []fiber.Handler{appapi.JSONOnly}
	return guards{
		credentials: map[Credential][]fiber.Handler{
			none:     nil,
			signIn:   {s.session.CheckSignInOrigin},
			operator: nil,
			apiKey:   {s.authenticate, s.admit},
			session:  {s.session.Session, s.session.Member},
			person:   {s.session.Session},
		},
		limits: map[Limits][]fiber.Handler{
			quick:    {inTime},
			download: {inLongTime},
			login:    slices.Concat(jsonOnly, s.openBodies(loginBodies, loginBody)),
			connect:  slices.Concat(jsonOnly, s.openBodies(connectBodies, connectBody)),
			read:     {inTime, s.limitAnswers(maxReads)},
			list:     {inTime, s.limitAnswers(maxLists)},
			write:    {body, inTime, writes},
			post:     {s.limitBodies(s.cfg.PostLimit), s.readBody(s.cfg.PostLimit, 0), inTime, writes},
			upload:   {inLongTime, s.limitRequests(maxUploads), s.limitUpload},
			user:     {body, inTime, sessions},
			form:     {body, inTime, sessions, appapi.JSONOnly},
			own:      {body, inTime},
		},
	}
}

// before returns the handlers that run before the handler of a route.
func (g guards) before(r Route) []fiber.Handler {
	return slices.Concat(g.credentials[r.Credential], g.limits[r.Limits])
}
