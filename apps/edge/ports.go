package edge

import (
	"context"
	"io"

	"crier/actors/org"
	"crier/platform/blob"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// Posts is what the edge asks of publishing about posts. Ids come as the client sent them: one that does not parse is NotFound.
type Posts interface {
	// Create answers 400 with fields, or with one entry per bad channel, 409 while the same key is running.
	Create(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) (publishing.CreateResult, error)
	List(ctx context.Context, p tenancy.Principal, q publishing.ListPosts) (publishing.ThreadPage, error)
	Get(ctx context.Context, p tenancy.Principal, id string) (publishing.PostDetail, error)
	Delete(ctx context.Context, p tenancy.Principal, id string) error
	DeleteGroup(ctx context.Context, p tenancy.Principal, group string) error
	ChangeStatus(ctx context.Context, p tenancy.Principal, id string, cmd publishing.ChangeStatus) (publishing.State, error)
}

// Queue is what the edge asks of publishing about the queue as a whole.
type Queue interface {
	// Pause keeps posts back or lets them go on; when it returns, no call that it keeps back begins any more.
	Pause(ctx context.Context, p tenancy.Principal, cmd publishing.SetPause) (publishing.PauseResult, error)
	// Figures are those of all organizations; NotFound when there is no queue of that name.
	Figures(ctx context.Context, queue string) (publishing.Figures, error)
}

// Channels is what the edge asks of publishing about channels.
type Channels interface {
	// Catalogue is every connector of this instance.
	Catalogue() []connector.Descriptor
	List(ctx context.Context, p tenancy.Principal, customer string) ([]publishing.Channel, error)
	Disconnect(ctx context.Context, p tenancy.Principal, channel string) error
	// Begin returns what the contract calls url: for a credential platform the bare state.
	Begin(ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect) (string, error)
	Finish(ctx context.Context, cmd publishing.FinishConnect) (publishing.ChannelConnected, error)
}

// Media is what the edge asks of publishing about files.
type Media interface {
	// Upload reads r to its end or to the first fault; it sniffs the content and keeps nothing of a refused file. filename may be anything.
	Upload(ctx context.Context, p tenancy.Principal, filename string, r io.Reader) (publishing.Medium, error)
	// Open finds a file by the two parts of its public path; NotFound when either is wrong.
	Open(ctx context.Context, key, file string) (publishing.Medium, blob.File, error)
}

// Accounts is what the edge asks of tenancy.
type Accounts interface {
	// Authenticate finds whose API key this is; anything else is Unauthenticated.
	Authenticate(ctx context.Context, authorization string) (tenancy.Principal, error)
	// Session finds whose session token this is, in the chosen organization (organization id or "" = the first enabled membership).
	Session(ctx context.Context, token, organization string) (tenancy.Principal, error)
	// Login answers a fresh session token; a wrong pair is Invalid, and takes as long as a right one.
	Login(ctx context.Context, email, password string) (token string, err error)
	Logout(ctx context.Context, token string) error
}

// Limiter is the organization's actor, wherever it lives.
type Limiter interface {
	// Admit counts one request of the organization. It never blocks longer than its budget and never fails: without the actor a window of this node decides.
	Admit(ctx context.Context, organization tenancy.OrgID) org.Admission
}

// Health tells what the service depends on: "ok" or a short word for each, and whether all is well.
type Health interface {
	Check(ctx context.Context) (answers map[string]string, healthy bool)
}
