package mcp

import (
	"context"
	"encoding/json"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// Authenticator finds the principal of a credential: an API key or an access token.
type Authenticator interface {
	// Authenticate returns the principal, or Unauthenticated if the credential is unknown or no
	// longer valid. Forbidden means that the person or the organization has lost access.
	Authenticate(ctx context.Context, credential string) (tenancy.Principal, error)
}

// The ports below are subsets of the public API's ports. Their methods have the same contracts; see
// the packages in apps/edge/api.

// Posts creates, reads and changes posts.
type Posts interface {
	Create(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) (publishing.CreateResult, error)
	Check(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) ([]publishing.Checked, error)
	List(ctx context.Context, p tenancy.Principal, q publishing.ListPosts) (publishing.ThreadPage, error)
	Get(ctx context.Context, p tenancy.Principal, id string) (publishing.PostDetail, error)
	Delete(ctx context.Context, p tenancy.Principal, id string) error
	ChangeStatus(
		ctx context.Context, p tenancy.Principal, id string, cmd publishing.ChangeStatus,
	) (publishing.StatusChanged, error)
	ChangeSettings(
		ctx context.Context, p tenancy.Principal, id string, cmd publishing.ChangeSettings,
	) (publishing.SettingsChanged, error)
}

// Channels lists channels, customers and platforms, and runs the platforms' tools.
type Channels interface {
	List(ctx context.Context, p tenancy.Principal, customer string) ([]publishing.Channel, error)
	Customers(ctx context.Context, p tenancy.Principal) ([]publishing.Customer, error)
	Catalogue() []connector.Descriptor
	Platform(ctx context.Context, p tenancy.Principal, channel string) (connector.Descriptor, []connector.Tool, error)
	Trigger(ctx context.Context, p tenancy.Principal, cmd publishing.TriggerTool) (json.RawMessage, error)
}

// Slots finds free posting times.
type Slots interface {
	Find(ctx context.Context, p tenancy.Principal, channel string) (time.Time, error)
	Plan(ctx context.Context, p tenancy.Principal, channel string) (publishing.ChannelPlan, error)
}

// Media stores files.
type Media interface {
	UploadFromURL(ctx context.Context, p tenancy.Principal, address string) (publishing.Medium, error)
	// CreateAddress returns a new upload address for one file. credential is the SHA-256 hash of
	// the API key or access token that asks for it. CreateAddress returns TooLarge if the
	// organization's storage is full, and RateLimited if the organization has too many unused
	// addresses.
	CreateAddress(ctx context.Context, p tenancy.Principal, credential []byte) (publishing.UploadAddress, error)
}

// Approvals manages requests to approve drafts.
type Approvals interface {
	Request(
		ctx context.Context, p tenancy.Principal, post string, cmd publishing.RequestApproval,
	) (publishing.Approval, error)
	Status(ctx context.Context, p tenancy.Principal, post string) (publishing.Approval, error)
}

// Reviewers limits how often reviewers are emailed.
type Reviewers interface {
	ReviewerAdmission(ctx context.Context) (admit func(ctx context.Context, email string) error, err error)
}

// Analytics provides statistics and reports.
type Analytics interface {
	Channel(ctx context.Context, p tenancy.Principal, q publishing.GetAnalytics) (publishing.Analytics, error)
	Report(ctx context.Context, p tenancy.Principal, q publishing.GetReport) (publishing.Report, error)
}
