package boot

import (
	"context"
	"time"

	"crier/apps/edge"
	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/analytics"
	"crier/publishing/approval"
	"crier/publishing/channel"
	"crier/publishing/db"
	"crier/publishing/media"
	"crier/publishing/notification"
	"crier/publishing/post"
	"crier/publishing/purge"
	"crier/publishing/scheduler"
	"crier/publishing/slot"
	"crier/publishing/tag"
	"crier/publishing/webhook"
)

// useCases holds the publishing use cases.
type useCases struct {
	Channels  *channel.Channels
	apps      *channel.Apps
	tools     *channel.Tools
	posts     *post.Posts
	slots     *slot.Slots
	tags      *tag.Tags
	media     *media.Media
	hooks     *webhook.Webhooks
	analytics *analytics.Analytics
	approvals *approval.Approvals
	bell      *notification.Notifications
	queue     *scheduler.Queue
	// stats reads statistics across all organizations over a separate connection.
	stats *scheduler.Queue
	// purger deletes the data of purged organizations.
	purger *purge.Purger
}

// publishingDB returns the database for work that no user requested. Writes to it do not wake any
// actor.
func (a *App) publishingDB() *db.DB {
	d := &db.DB{DB: a.db, Node: a.nodeName()}
	if a.Accounts != nil { // parts created before Accounts write no audit log
		d.Auditor = a.Accounts
	}
	return d
}

// openPublishing creates the publishing use cases and connects their ports.
func (a *App) openPublishing() error {
	d := &db.DB{DB: a.db, Node: a.nodeName(), Authority: a.Accounts.DB, Auditor: a.Accounts, Waker: a.actors}
	a.bell = notification.NewNotifications(notification.Deps{
		DB: d, Connectors: a.connectors, Clock: clock.System{}, Log: a.log,
	}, preferences{accounts: a.Accounts})
	a.hooks = webhook.NewWebhooks(a.cfg.Webhooks, webhook.Deps{
		DB: d, Keyring: a.keyring, HTTP: a.http, Clock: clock.System{}, Log: a.log, Quota: a.plans,
	})
	requests, err := a.openRequests(d)
	if err != nil {
		return err
	}
	deps := post.Deps{
		DB: d, Blobs: a.blobs, Connectors: a.connectors, Access: a.access, Clock: clock.System{}, Waker: a.actors,
		Log: a.log, Pictures: a.pictures, Quota: a.plans, Approvals: requests,
		Allowance: a.OAuth.Grants,
	}
	a.posts = post.New(a.cfg.Posts, deps)
	a.slots, a.tags = slot.New(d, clock.System{}, a.posts), tag.New(d)
	a.openApprovals(requests)
	a.apps = channel.NewApps(d, a.keyring, a.connectors, a.access)
	a.tools = channel.NewTools(a.connectors, a.access, a.log)
	a.Channels = channel.New(a.cfg.Channels, channel.Deps{
		DB: d, Keyring: a.keyring, Connectors: a.connectors, Access: a.access, HTTP: httpAdapter{Client: a.http},
		Clock: clock.System{}, Waker: a.actors, Log: a.log, Quota: a.plans, Posts: a.posts, Notices: a.bell,
		Disowned: a.mailDisowned,
	})
	a.media = media.New(a.cfg.Media, media.Deps{
		DB: d, Blobs: a.blobs, Fetch: a.http.Transport(), Clock: clock.System{}, Log: a.log,
	})
	a.analytics = analytics.New(a.cfg.Analytics, analytics.Deps{
		DB: d, Connectors: a.connectors, Access: a.access, Clock: clock.System{}, Log: a.log,
	})
	a.queue = scheduler.NewQueue(a.cfg.Sender, scheduler.Deps{DB: d, Connectors: a.connectors, Log: a.log})
	a.stats = scheduler.NewQueue(a.cfg.Sender, scheduler.Deps{
		DB: &db.DB{DB: a.queueDB}, Connectors: a.connectors, Log: a.log,
	})
	a.purger = purge.New(purge.Deps{DB: d, Blobs: a.blobs})
	return nil
}

// ports returns the edge ports that the use cases implement.
func (u *useCases) ports() edge.Deps {
	return edge.Deps{
		Posts: u.posts, Queue: queue{Queue: u.queue, stats: u.stats}, Slots: u.slots, Tags: u.tags, Media: u.media,
		Channels:  channels{connections: u.Channels, applications: u.apps, tools: u.tools},
		Analytics: u.analytics, Webhooks: u.hooks, Approvals: u.approvals, Notifications: u.bell,
	}
}

// These aliases give the embedded channel types unexported field names, which cannot hide the
// types' methods.
type (
	connections  = channel.Channels
	applications = channel.Apps
	tools        = channel.Tools
)

// channels combines the channel types into the single port that the edge requires.
type channels struct {
	*connections
	*applications
	*tools
}

// mailTimeout limits how long queuing an email about a completed change may take.
const mailTimeout = 5 * time.Second

// mailDisowned queues emails about a channel disconnected by the person who had granted access to
// it. It only logs errors, because the channel is already disconnected.
func (a *App) mailDisowned(ctx context.Context, d publishing.Disowned) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), mailTimeout)
	defer cancel()
	if err := a.Accounts.MailDisowned(ctx, d.Org, d.Channel); err != nil {
		a.log.ErrorContext(ctx, "the administrators were not mailed about a disowned channel", "org", d.Org, "error", err)
	}
}
