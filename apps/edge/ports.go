package edge

import (
	"context"

	"crier/actors/org"
	auditapi "crier/apps/edge/account/audit"
	deletionapi "crier/apps/edge/account/deletion"
	instanceapi "crier/apps/edge/account/instance"
	keyapi "crier/apps/edge/account/key"
	organizationapi "crier/apps/edge/account/organization"
	securityapi "crier/apps/edge/account/security"
	signinapi "crier/apps/edge/account/signin"
	teamapi "crier/apps/edge/account/team"
	userapi "crier/apps/edge/account/user"
	"crier/apps/edge/admission"
	analyticsapi "crier/apps/edge/api/analytics"
	approvalapi "crier/apps/edge/api/approval"
	channelapi "crier/apps/edge/api/channel"
	connectapi "crier/apps/edge/api/connect"
	mediaapi "crier/apps/edge/api/media"
	postapi "crier/apps/edge/api/post"
	"crier/apps/edge/monitor"
	"crier/apps/edge/session"
	"crier/publishing"
	"crier/tenancy"
)

// Posts manages posts and their release ids.
type Posts interface {
	postapi.Posts
	postapi.Releases
}

// Queue provides the statistics of the publishing queue and manages pauses.
type Queue interface {
	monitor.Queue
	channelapi.Pauses
}

// Analytics provides statistics and reports for both APIs.
type Analytics interface {
	analyticsapi.Analytics
	analyticsapi.Reports
}

// Channels manages channels and platforms for both APIs.
type Channels interface {
	channelapi.Channels
	connectapi.Connectors
	channelapi.Tools
	connectapi.Channels
	connectapi.Connects
	connectapi.Apps
}

// Media manages uploaded files for the public API, people's pictures, and GET /files.
type Media interface {
	mediaapi.Media
	mediaapi.Files
	userapi.Media
	// CreateAddress is called by the MCP server; see mcp.Media.
	CreateAddress(ctx context.Context, p tenancy.Principal, credential []byte) (publishing.UploadAddress, error)
	// Address returns the upload address with the given token. It returns NotFound if there is no
	// such address, and Gone if the address has expired.
	Address(ctx context.Context, token string) (publishing.UploadAddress, error)
}

// Approvals manages draft approvals for both APIs and for guests with a review link.
type Approvals interface {
	approvalapi.Approvals
	approvalapi.Reviews
}

// Accounts manages people, organizations and keys. Unless a method's comment says otherwise, the
// method returns
//
//   - Invalid, which lists the invalid fields, if the input breaks a rule
//   - Forbidden if the principal's role is too low
//   - NotFound if the organization does not have the requested item
//   - RateLimited or Unavailable, which say when to retry
type Accounts interface {
	// Authenticate returns the principal of an API key, or Unauthenticated if the key does not
	// exist.
	Authenticate(ctx context.Context, authorization string) (tenancy.Principal, error)
	// AuthenticateHash is like Authenticate, but for the SHA-256 hash of a key.
	AuthenticateHash(ctx context.Context, hash []byte) (tenancy.Principal, error)
	// RecordActed adds an audit entry for a request that an instance administrator makes while
	// impersonating a member.
	RecordActed(ctx context.Context, p tenancy.Principal, request string) error
	session.Sessions
	securityapi.SessionLists
	signinapi.SignUp
	admission.Senders
	signinapi.Logins
	signinapi.Providers
	securityapi.Identities
	userapi.People
	userapi.Unsubscribers
	securityapi.Security
	securityapi.Factors
	signinapi.Offers
	organizationapi.Organizations
	auditapi.AuditLog
	deletionapi.Deletions
	teamapi.Team
	keyapi.Keys
	instanceapi.Instance
	instanceapi.Enterprise
}

// Limiter limits each organization's requests by querying the organization's actor, which may run
// in another process.
type Limiter interface {
	// Admit counts one request from the organization. It blocks for at most ACTOR_TIMEOUT and never
	// fails. If the actor does not respond in time, this process decides with its own window.
	Admit(ctx context.Context, organization tenancy.OrgID) org.Admission
}
