package edge

import (
	"github.com/gofiber/fiber/v2"
)

// Credential is what a request must carry to reach the handler of a route.
type Credential string

const (
	// none is for routes that need no credential.
	none Credential = "none"
	// signIn is like none but refuses requests that a browser sends on behalf of another site's
	// page.
	signIn Credential = "sign-in"
	// operator is MONITOR_TOKEN in the header X-Monitor-Token. The handler checks it.
	operator Credential = "operator"
	// apiKey is an API key in the header Authorization. The request is counted for the key's
	// organization.
	apiKey Credential = "api key"
	// member is a session, in the header or the cookie auth. The request is counted for the
	// session. An unsafe request must not name an organization in showorg unless the person is a
	// member of it.
	member Credential = "session"
	// joined is like member but also admits a person who lacks the second factor that the
	// organization requires. The use case decides what that person may do.
	joined Credential = "joined"
	// admin is a session with the role of an administrator or of the owner.
	admin Credential = "admin"
	// owner is a session with the role of the owner.
	owner Credential = "owner"
	// person is a session whose organization is not checked. Its routes also work if showorg names
	// an organization that the person has left, or if the person has access to none.
	person Credential = "person"
	// instance is like person but only for administrators of the instance, even while they act as
	// another person.
	instance Credential = "instance"
	// visitor is like signIn. If there is a live session, the request acts for its person but is
	// not counted for the session.
	visitor Credential = "visitor"
)

// audience is the kind of client that has a credential, as far as limits and the OpenAPI document
// distinguish them.
type audience string

const (
	anybody  audience = "anybody"
	programs audience = "programs" // an API key
	members  audience = "members"  // a session and an organization
	people   audience = "people"   // a session
)

// rules define a credential.
type rules struct {
	audience audience
	// find returns the handlers that find the principal.
	find func(*Server) []fiber.Handler
	// again returns a function that authenticates a request a second time without counting it, or
	// nil for a credential that is not looked up.
	again func(*Server) func(*fiber.Ctx) error
	// needs are the conditions on the principal, in the order in which they are checked.
	needs []condition
	// note says in the OpenAPI document which holders of the credential may use the routes. It is
	// empty if all of them may.
	note string
}

// credentials holds the rules of every credential, and every route consults it. Route handlers
// check no roles themselves; what depends on more than the role, such as another member's rank, is
// decided by the use cases. A route whose credential is not in the table responds with 500.
var credentials = map[Credential]rules{
	none:     {audience: anybody, find: nothing, again: never},
	signIn:   {audience: anybody, find: sameSite, again: never},
	operator: {audience: anybody, find: nothing, again: never},
	visitor:  {audience: anybody, find: liveSession, again: sessionAgain},
	apiKey:   {audience: programs, find: key, again: keyAgain},
	person:   {audience: people, find: anySession, again: sessionAgain},
	member:   {audience: members, find: sessionOfMember, again: sessionAgain, needs: []condition{hasAccess}},
	joined:   {audience: members, find: sessionOfMember, again: sessionAgain, needs: []condition{hasJoined}},
	admin: {
		audience: members, find: sessionOfMember, again: sessionAgain, needs: []condition{hasAccess, manages},
		note: "Only for administrators of the organization.",
	},
	owner: {
		audience: members, find: sessionOfMember, again: sessionAgain, needs: []condition{hasAccess, owns},
		note: "Only for the owner of the organization.",
	},
	instance: {
		audience: people, find: anySession, again: sessionAgain, needs: []condition{administersInstance},
		note: "Only for instance administrators.",
	},
}

func nothing(*Server) []fiber.Handler      { return nil }
func key(s *Server) []fiber.Handler        { return []fiber.Handler{s.authenticate, s.admit} }
func anySession(s *Server) []fiber.Handler { return []fiber.Handler{s.session.Session} }
func sameSite(s *Server) []fiber.Handler   { return []fiber.Handler{s.session.CheckSignInOrigin} }

func sessionOfMember(s *Server) []fiber.Handler {
	return []fiber.Handler{s.session.Session, s.session.Member}
}

func liveSession(s *Server) []fiber.Handler {
	return []fiber.Handler{s.session.CheckSignInOrigin, s.session.Visitor}
}

func never(*Server) func(*fiber.Ctx) error          { return nil }
func keyAgain(s *Server) func(*fiber.Ctx) error     { return s.authenticateKey }
func sessionAgain(s *Server) func(*fiber.Ctx) error { return s.session.Confirm }
