package edge

import (
	"context"

	"crier/actors/org"
	"crier/apps/edge/appapi"
	"crier/apps/edge/publicv1"
	"crier/platform/blob"
	"crier/platform/mail"
	"crier/publishing"
	"crier/tenancy"
)

// Posts are the use cases of posts.
type Posts interface {
	publicv1.Posts
	publicv1.Releases
}

// Analytics are the use cases of statistics and reports in both APIs.
type Analytics interface {
	publicv1.Analytics
	publicv1.Reports
}

// Channels are the use cases of channels and platforms in both APIs.
type Channels interface {
	publicv1.Channels
	publicv1.Connectors
	publicv1.Tools
	appapi.Channels
	appapi.Connects
	appapi.Apps
}

// Media are the use cases of uploaded files: uploads of the public API, pictures of people, and GET /files.
type Media interface {
	publicv1.Media
	appapi.Media
	// Open returns a file by the two parts of its public path, without metadata, or NotFound if
	// either part is wrong. The caller closes it.
	Open(ctx context.Context, key, file string) (publishing.Medium, blob.File, error)
	// Original returns a file of the organization by its id, as it was uploaded, or NotFound if the
	// organization has no such file. The caller closes it.
	Original(ctx context.Context, p tenancy.Principal, medium string) (publishing.Medium, blob.File, error)
	// OwnFile returns the two parts of the public path of a file for Open; ours is false for other addresses.
	OwnFile(address string) (key, file string, ours bool)
	// Stream opens a video of another server; requested is a header Range. ctx limits the transfer, after the return
	// too. It returns Invalid for an address that is not public or no video, and Upstream and Loop.
	Stream(ctx context.Context, address, requested string) (publishing.VideoStream, error)
}

// Approvals are the use cases of the approval of drafts in both APIs, and those of guests.
type Approvals interface {
	publicv1.Approvals
	appapi.Reviews
}

// Accounts are the use cases of API keys, for the public API, and of sessions, for the application API.
type Accounts interface {
	// Authenticate returns the principal of an API key, and Unauthenticated when there is no such key.
	Authenticate(ctx context.Context, authorization string) (tenancy.Principal, error)
	// RecordActed appends an audit entry for a request that an instance administrator makes while
	// impersonating a member.
	RecordActed(ctx context.Context, p tenancy.Principal, request string) error
	appapi.Accounts
}

// DevMail has the mails of `crier dev`, which are not sent.
type DevMail interface {
	// Messages returns them, the newest first.
	Messages() []mail.Stored
}

// Limiter limits the requests of each organization by its actor, which may be in another process.
type Limiter interface {
	// Admit counts one request of the organization. It blocks no longer than ACTOR_TIMEOUT and never fails: when the
	// actor does not answer, this process decides by a window of its own.
	Admit(ctx context.Context, organization tenancy.OrgID) org.Admission
}
