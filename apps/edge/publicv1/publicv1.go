// Package publicv1 is the public API. It converts requests to commands and queries of package publishing, and their
// results to the JSON of the contract.
package publicv1

import (
	"context"
	"encoding/json"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

// Posts are the use cases of posts. Ids are text as the client sent it. A post or group that does not exist, that is of
// another organization, or whose id does not parse, is NotFound. Every method can also return Unavailable and Internal.
type Posts interface {
	// Create creates or updates posts and returns one post for each entry. It returns Invalid with the wrong fields or
	// with one entry for each wrong channel, Quota at the limit of posts, TooLarge, and Conflict for a post that cannot be changed now or while
	// another request with the same idempotency key is running. The result of a key is stored in the transaction of
	// its posts: after a crash a repeated request returns that result, or creates the posts.
	Create(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) (publishing.CreateResult, error)
	// List returns the threads of a range of dates, or of a page. A range that is too large is Invalid.
	List(ctx context.Context, p tenancy.Principal, q publishing.ListPosts) (publishing.ThreadPage, error)
	// Get returns one post with its timeline.
	Get(ctx context.Context, p tenancy.Principal, id string) (publishing.PostDetail, error)
	// Delete deletes a post with its group. For a repeated post it skips one occurrence. It returns Conflict while the
	// post is being published.
	Delete(ctx context.Context, p tenancy.Principal, id string) error
	// DeleteGroup deletes a group of posts, and ends a repeated post. It returns Conflict like Delete.
	DeleteGroup(ctx context.Context, p tenancy.Principal, group string) error
	// ChangeStatus makes a post a draft or schedules it, and returns its new state. It returns
	// Invalid for another status or a post that breaks the rules of its platform, Quota at the
	// limit of posts, Conflict while the post is being published, when it is published and
	// cmd.Republish is false, or when its content is not what was approved and cmd.Override is
	// false, and Forbidden if the principal may not override.
	ChangeStatus(
		ctx context.Context, p tenancy.Principal, id string, cmd publishing.ChangeStatus,
	) (publishing.StatusChanged, error)
	// ChangeSettings replaces the settings of a post, which keeps its state unless it was approved
	// with different settings. It returns Invalid for settings that a queued post may not have,
	// Conflict for a post that is published or is being published, and Forbidden if the principal
	// may not override.
	ChangeSettings(
		ctx context.Context, p tenancy.Principal, id string, cmd publishing.ChangeSettings,
	) (publishing.SettingsChanged, error)
	// Check applies all rules to entries and stores nothing. It returns Invalid for what is no list of entries, and
	// TooLarge.
	Check(ctx context.Context, p tenancy.Principal, cmd publishing.CreatePosts) ([]publishing.Checked, error)
	Tags
}

// Tags are the use cases of tags. A tag that does not exist, or whose id does not parse, is NotFound.
type Tags interface {
	// Tags returns the tags of the organization in the order of their names.
	Tags(ctx context.Context, p tenancy.Principal) ([]publishing.Tag, error)
	// CreateTag returns Invalid, and Conflict for a name that is taken and at the limit of tags.
	CreateTag(ctx context.Context, p tenancy.Principal, cmd publishing.SaveTag) (publishing.Tag, error)
	// UpdateTag returns Invalid, and Conflict for a name that is taken.
	UpdateTag(ctx context.Context, p tenancy.Principal, tag string, cmd publishing.SaveTag) (publishing.Tag, error)
	// DeleteTag returns the tag that is deleted.
	DeleteTag(ctx context.Context, p tenancy.Principal, tag string) (publishing.Tag, error)
}

// Channels are the use cases of connected channels.
type Channels interface {
	// List returns the channels of the organization, or of one of its customers if customer is not empty. A customer
	// that does not exist has none.
	List(ctx context.Context, p tenancy.Principal, customer string) ([]publishing.Channel, error)
	// Disconnect removes a channel and its scheduled posts. It returns NotFound when the organization has no such
	// channel.
	Disconnect(ctx context.Context, p tenancy.Principal, channel string) error
	// Customers returns the customers of the organization.
	Customers(ctx context.Context, p tenancy.Principal) ([]publishing.Customer, error)
}

// Connectors are the use cases of platforms.
type Connectors interface {
	// Platforms returns the platforms of this instance.
	Platforms(ctx context.Context, p tenancy.Principal) ([]publishing.Platform, error)
	// Begin starts to connect a channel and returns the address of the platform. It returns Invalid for an unknown
	// platform, one without an application or with a form, and for a channel to reconnect that does not exist, and Quota
	// at the limit of channels unless one is reconnected.
	Begin(ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect) (string, error)
	// Authorize is Begin unless there is a channel that works and force is false; the URL is then empty. An unknown
	// platform is NotFound.
	Authorize(
		ctx context.Context, p tenancy.Principal, cmd publishing.BeginConnect, force bool,
	) (publishing.Authorized, error)
}

// Tools are the use cases of the platform of a channel. A channel that does not exist is NotFound.
type Tools interface {
	// Platform returns the descriptor and the tools of the platform.
	Platform(ctx context.Context, p tenancy.Principal, channel string) (connector.Descriptor, []connector.Tool, error)
	// Trigger runs a tool and returns its output. It returns NotFound for a tool that is not listed, Invalid for wrong
	// data, Unauthenticated when the channel must be connected again, and Upstream when the platform fails.
	Trigger(ctx context.Context, p tenancy.Principal, cmd publishing.TriggerTool) (json.RawMessage, error)
}

// Releases are the use cases of what platforms have made of posts. Ids are as for Posts.
type Releases interface {
	// Missing returns what a post may be on its platform. It returns Unauthenticated and Upstream like Tools.
	Missing(ctx context.Context, p tenancy.Principal, id string) ([]publishing.RemoteItem, error)
	// SetRelease stores the platform's id of a post. It returns Invalid, and Conflict when an id is known.
	SetRelease(ctx context.Context, p tenancy.Principal, id, release string) error
}

// Media are the use cases of files.
type Media interface {
	// UploadFromURL stores the file at a public address, as Upload does. It returns Invalid for an address that is not
	// public or that cannot be read.
	UploadFromURL(ctx context.Context, p tenancy.Principal, address string) (publishing.Medium, error)
	// List returns a page of the files, and Invalid for a page that cannot be.
	List(ctx context.Context, p tenancy.Principal, q publishing.ListMedia) (publishing.MediaPage, error)
	// SetAlt changes the alternative text of a file.
	SetAlt(ctx context.Context, p tenancy.Principal, medium, alt string) (publishing.Medium, error)
	// Delete deletes a file. It returns Conflict while a post that is queued or being sent has it.
	Delete(ctx context.Context, p tenancy.Principal, medium string) error
	// Upload stores the file that it reads from r and detects its type by its content; the filename may be any text. It
	// returns Invalid for a file that is incomplete or of a type that is not accepted, and TooLarge for one that is
	// larger than its limit or than the rest of the organization's storage. A refused file is not stored. A crash
	// leaves the file recorded, or bytes that are never served.
	Upload(ctx context.Context, p tenancy.Principal, filename string, r io.Reader) (publishing.Medium, error)
}

// Config are the settings of the instance that the public API uses.
type Config struct {
	// BaseURL is the address of the service, without a slash at the end.
	BaseURL string
	// UploadLimit is the limit of a whole upload request, in bytes.
	UploadLimit int64
}

// Deps are the services that an API uses. All are required.
type Deps struct {
	Posts      Posts
	Releases   Releases
	Reports    Reports
	Analytics  Analytics
	Channels   Channels
	Connectors Connectors
	Tools      Tools
	Slots      Slots
	Media      Media
	Webhooks   Webhooks
	Approvals  Approvals
	Reviewers  Reviewers

	Notifications Notifications
	Clock         clock.Clock
}

// API is the public API. Each of its exported methods returns one endpoint for the route table. Endpoints are safe for
// concurrent use, and one may have several routes.
type API struct {
	cfg  Config
	deps Deps
}

// New returns an API. It does not check that deps are complete.
func New(cfg Config, deps Deps) *API { return &API{cfg: cfg, deps: deps} }

// explain returns the operation with a description.
func explain(d huma.Operation, text string) huma.Operation {
	d.Description = text
	return d
}

// describe returns the description of an endpoint that can refuse a request with the statuses of errors, or with 500.
func describe(summary string, errors ...int) huma.Operation {
	return huma.Operation{
		Summary: summary, Tags: []string{"Public API"}, Errors: append(errors, http.StatusInternalServerError),
	}
}
