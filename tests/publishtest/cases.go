package publishtest

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"crier/platform/blob"
	"crier/platform/clock"
	"crier/platform/jobs"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/access"
	"crier/publishing/analytics"
	"crier/publishing/approval"
	"crier/publishing/channel"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/publishing/media"
	"crier/publishing/notification"
	"crier/publishing/pictures"
	"crier/publishing/post"
	"crier/publishing/purge"
	"crier/publishing/scheduler"
	"crier/publishing/slot"
	"crier/publishing/webhook"
	"crier/tenancy"
)

// Config holds the settings for the use cases of all nouns.
type Config struct {
	BaseURL                        string
	PlatformTimeout, UploadTimeout time.Duration
	SnapshotRate                   float64
	MaxImage, MaxVideo, MaxStorage int64
	MaxChannels, MaxWebhooks       int
	PauseMaxAge                    time.Duration
}

// Limits holds the limits for tests that do not test limits.
var Limits = Config{
	BaseURL: "http://crier.test", MaxImage: 10 << 20, MaxVideo: 1 << 20,
	PlatformTimeout: 20 * time.Second, MaxChannels: 1000,
}

// Deps holds what the use cases of all nouns need. A test changes it before creating the use cases.
type Deps struct {
	DB          *db.DB
	Blobs       blob.Store
	Keyring     *secret.Keyring
	Connectors  *connector.Registry
	Access      *access.Refresher
	HTTP        connector.HTTP
	Fetch       http.RoundTripper
	Clock       clock.Clock
	Waker       publishing.Waker
	Log         *slog.Logger
	Pictures    *pictures.Maker
	Quota       db.Quota
	Allowance   post.Allowance
	ReviewMails *jobs.Queue
}

// Platform is a connector with only a descriptor.
type Platform struct{ connector.Connector }

// Describe returns the descriptor of the sandbox.
func (Platform) Describe() connector.Descriptor {
	return connector.Descriptor{ID: "sandbox", Name: "Sandbox", Grade: publishing.GradeMarked}
}

// Lenient is a Platform that accepts every post.
type Lenient struct{ Platform }

// Validate returns no problem.
func (Lenient) Validate(connector.Draft) []connector.Problem { return nil }

// CreateAt creates a post in a channel, with a text and for a time, and returns its id.
func CreateAt(
	ctx context.Context, posts *post.Posts, who tenancy.Principal, channel string, kind publishing.CreateType,
	at time.Time, repeat publishing.Repeat,
) (publishing.PostID, error) {
	out, err := posts.Create(ctx, who, publishing.CreatePosts{
		Type: kind, Date: at, Repeat: repeat,
		Entries: []publishing.CreateEntry{{Channel: channel, Parts: []publishing.CreatePart{{Content: "a post"}}}},
	})
	if err != nil {
		return publishing.PostID{}, err
	}
	return out.Created[0].Post, nil
}

// Rig provides the use cases of one process with a database.
type Rig struct {
	*Base
	Platform *Platform
	Deps     Deps
}

// NewRig returns a Rig with its own database.
func NewRig(t *testing.T) *Rig {
	t.Helper()
	r := &Rig{Base: New(t), Platform: &Platform{}}
	r.Deps = Deps{
		DB: r.Store, Blobs: r.Disk, Keyring: r.Keyring, Connectors: r.Registry(r.Platform), Clock: clock.System{},
		Waker: Waker{}, Log: r.Logger,
	}
	r.Deps.Access = r.Access(r.Deps.Connectors, nil, nil)
	return r
}

// Member is the owner of an organization that has a channel.
type Member struct {
	*Rig
	Who tenancy.Principal
}

// Member stores an organization with a channel and returns its owner.
func (r *Rig) Member() Member {
	r.Helper()
	m := Member{Rig: r, Who: r.Organization()}
	m.Connect(m.Who.Org)
	return m
}

// Register makes c the only connector of the rig.
func (r *Rig) Register(c connector.Connector) {
	r.Helper()
	r.Deps.Connectors = r.Registry(c)
	r.Deps.Access = r.Access(r.Deps.Connectors, nil, nil)
}

// Posts returns the use cases of posts.
func (d Deps) Posts(cfg Config) *post.Posts {
	return post.New(post.Config{BaseURL: cfg.BaseURL}, d.post())
}

// Slots returns the use cases of posting times.
func (d Deps) Slots(cfg Config) *slot.Slots { return slot.New(d.DB, d.Clock, d.Posts(cfg)) }

func (d Deps) post() post.Deps {
	return post.Deps{
		DB: d.DB, Blobs: d.Blobs, Connectors: d.Connectors, Access: d.Access, Clock: d.Clock, Waker: d.Waker,
		Log: d.Log, Pictures: d.Pictures, Quota: d.Quota, Allowance: d.Allowance, Approvals: d.requests(),
	}
}

func (d Deps) requests() *approval.Requests {
	return approval.NewRequests(approval.RequestDeps{
		DB: d.DB, Clock: d.Clock, Notices: d.bell(), Events: d.Webhooks(Config{}), Mails: d.ReviewMails,
	})
}

// Approvals returns the use cases of approvals of posts. Their mails are sent with mailer.
func (d Deps) Approvals(cfg Config, posts *post.Posts, mailer approval.ReviewMailer) *approval.Approvals {
	return approval.New(approval.Config{BaseURL: cfg.BaseURL}, approval.Deps{
		Requests: d.requests(), Threads: posts, Drafts: post.NewDrafts(posts), Keyring: d.Keyring,
		Connectors: d.Connectors, Waker: d.Waker, Log: d.Log, Pictures: d.Pictures, Mailer: mailer,
	})
}

// Channels returns the use cases of channels.
func (d Deps) Channels(cfg Config) *channel.Channels {
	return channel.New(channel.Config{
		BaseURL: cfg.BaseURL, PlatformTimeout: cfg.PlatformTimeout, MaxChannels: cfg.MaxChannels,
	}, channel.Deps{
		DB: d.DB, Keyring: d.Keyring, Connectors: d.Connectors, Access: d.Access, HTTP: d.HTTP, Clock: d.Clock,
		Waker: d.Waker, Log: d.Log, Quota: d.Quota, Posts: d.Posts(cfg), Notices: d.bell(),
	})
}

// Apps returns the use cases of applications at platforms.
func (d Deps) Apps() *channel.Apps { return channel.NewApps(d.DB, d.Keyring, d.Connectors, d.Access) }

// Media returns the use cases of files.
func (d Deps) Media(cfg Config) *media.Media {
	return media.New(media.Config{
		BaseURL: cfg.BaseURL, UploadTimeout: cfg.UploadTimeout,
		MaxImage: cfg.MaxImage, MaxVideo: cfg.MaxVideo, MaxStorage: cfg.MaxStorage,
	}, media.Deps{DB: d.DB, Blobs: d.Blobs, Fetch: d.Fetch, Clock: d.Clock, Log: d.Log})
}

// Analytics returns the use cases of statistics.
func (d Deps) Analytics(cfg Config) *analytics.Analytics {
	return analytics.New(analytics.Config{SnapshotRate: cfg.SnapshotRate}, analytics.Deps{
		DB: d.DB, Connectors: d.Connectors, Access: d.Access, Clock: d.Clock, Log: d.Log,
	})
}

// Queue returns the use cases of the post queue.
func (d Deps) Queue(cfg Config) *scheduler.Queue {
	return scheduler.NewQueue(scheduler.Config{PauseMaxAge: cfg.PauseMaxAge}, scheduler.Deps{
		DB: d.DB, Connectors: d.Connectors, Log: d.Log,
	})
}

// Purger returns the Purger that deletes organizations.
func (d Deps) Purger() *purge.Purger { return purge.New(purge.Deps{DB: d.DB, Blobs: d.Blobs}) }

// Webhooks returns the use cases of webhooks, without a client for calling endpoints.
func (d Deps) Webhooks(cfg Config) *webhook.Webhooks {
	return webhook.NewWebhooks(webhook.Config{MaxWebhooks: cfg.MaxWebhooks}, webhook.Deps{
		DB: d.DB, Keyring: d.Keyring, Clock: d.Clock, Log: d.Log, Quota: d.Quota,
	})
}

// Notifications returns the use cases of the bell, without muted kinds.
func (d Deps) Notifications() *notification.Notifications { return d.bell() }

func (d Deps) bell() *notification.Notifications {
	return notification.NewNotifications(notification.Deps{
		DB: d.DB, Connectors: d.Connectors, Clock: d.Clock, Log: d.Log,
	}, nil)
}
