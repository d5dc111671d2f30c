package edge

import (
	"github.com/gofiber/fiber/v2"
)

// Credential is what a request must carry to reach a route's handler.
type Credential string

const (
	// none requires no credential.
	none Credential = "none"
	// signIn is like none but rejects requests that a browser sends on behalf of a page on another
	// site.
	signIn Credential = "sign-in"
	// operator requires MONITOR_TOKEN in the X-Monitor-Token header. The route's handler checks the
	// token.
	operator Credential = "operator"
	// accessToken requires an access token in the Authorization header, after Bearer. The route's
	// handler checks the token.
	accessToken Credential = "access token"
	// apiKey requires an API key in the Authorization header, or an agent's access token; see
	// permitsAgent. The request counts toward the organization's limit.
	apiKey Credential = "api key"
	// agent requires an API key or an access token in the Authorization header, as a bearer token.
	// The request counts toward the limit of the credential's organization. Errors have the format
	// that MCP clients understand.
	agent Credential = "agent"
	// address requires the path to contain an upload address's token. The request acts for the API
	// key or access token that was used to create the address, and counts toward the limit of its
	// organization.
	address Credential = "upload address"
	// member requires a session, in the auth header or the auth cookie. The request counts toward
	// the session's limit. If an unsafe request names an organization in showorg, the person must
	// be a member of that organization.
	member Credential = "session"
	// memberWithoutMFA is like member but also admits a person who lacks the second factor that the
	// organization requires. The use case decides what that person can do.
	memberWithoutMFA Credential = "joined"
	// admin requires a session. The person must be an administrator or the owner of the
	// organization.
	admin Credential = "admin"
	// owner requires a session. The person must be the owner of the organization.
	owner Credential = "owner"
	// person requires a session but does not check its organization. It also admits a person who
	// has no access to any organization, or who has left the organization named in showorg.
	person Credential = "person"
	// instance is like person but admits only instance administrators. It admits them even while
	// they are impersonating another person.
	instance Credential = "instance"
	// optionalSession is like signIn, but a request with a live session acts for the session's
	// person. The request does not count toward the session's limit.
	optionalSession Credential = "visitor"
)

// audience is the kind of client that uses a credential. It determines which limits a route can
// have, and which security the OpenAPI document specifies for the route.
type audience string

const (
	anybody  audience = "anybody"
	programs audience = "programs" // an API key or an access token
	agents   audience = "agents"   // an API key or an access token, as a bearer token
	holders  audience = "holders"  // an upload address
	members  audience = "members"  // a session and an organization
	people   audience = "people"   // a session
)

// rules says how a credential is checked.
type rules struct {
	audience audience
	// find returns the handlers that look up the principal.
	find func(*Server) []fiber.Handler
	// again returns a function that authenticates a request a second time without counting it. It
	// returns nil if the credential is not looked up.
	again func(*Server) func(*fiber.Ctx) error
	// needs lists the conditions that the principal must meet, in the order in which they are
	// checked.
	needs []condition
	// note is a sentence for the OpenAPI document that says which holders of the credential may use
	// its routes. It is empty if all holders may use them.
	note string
}

// credentials holds the rules for every credential. A route whose credential is not in the table
// responds with 500.
//
// Route handlers do not check roles. Use cases make the decisions that depend on more than the
// caller's role, for example on another member's rank.
var credentials = map[Credential]rules{
	none:             {audience: anybody, find: nothing, again: never},
	signIn:           {audience: anybody, find: sameSite, again: never},
	operator:         {audience: anybody, find: nothing, again: never},
	accessToken:      {audience: anybody, find: nothing, again: never},
	optionalSession:  {audience: anybody, find: liveSession, again: sessionAgain},
	apiKey:           {audience: programs, find: key, again: keyAgain},
	agent:            {audience: agents, find: keyOrToken, again: keyOrTokenAgain, needs: []condition{hasAccess}},
	address:          {audience: holders, find: asker, again: askerAgain, needs: []condition{hasAccess, writes}},
	person:           {audience: people, find: anySession, again: sessionAgain},
	member:           {audience: members, find: sessionOfMember, again: sessionAgain, needs: []condition{hasAccess}},
	memberWithoutMFA: {audience: members, find: sessionOfMember, again: sessionAgain, needs: []condition{hasJoined}},
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

// keyOrToken also checks which page sent the request before it looks up the credential.
func keyOrToken(s *Server) []fiber.Handler {
	return []fiber.Handler{s.mcp.Guard, s.mcp.Authenticate, s.admit}
}

func asker(s *Server) []fiber.Handler { return []fiber.Handler{s.findAddress, s.admit} }

func sessionOfMember(s *Server) []fiber.Handler {
	return []fiber.Handler{s.session.Session, s.session.Member}
}

func liveSession(s *Server) []fiber.Handler {
	return []fiber.Handler{s.session.CheckSignInOrigin, s.session.Visitor}
}

func never(*Server) func(*fiber.Ctx) error             { return nil }
func keyAgain(s *Server) func(*fiber.Ctx) error        { return s.authenticateKey }
func keyOrTokenAgain(s *Server) func(*fiber.Ctx) error { return s.mcp.AuthenticateAgain }
func askerAgain(s *Server) func(*fiber.Ctx) error      { return s.authenticateAsker }
func sessionAgain(s *Server) func(*fiber.Ctx) error    { return s.session.Confirm }
