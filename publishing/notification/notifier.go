// Package notification maintains each member's list of notifications. It groups post and channel
// events into incidents, which are notifications, and queues emails about the incidents.
//
// An event is a row that is written in the same transaction as the change it reports. The
// Notifier's loop adds an organization's events to its incidents and deletes the events in one
// transaction. Each event is therefore counted exactly once, even after a crash.
//
// Some time after an incident begins, the loop passes a report to the mailer and then records that
// the report was queued. After a crash between these two steps, the loop passes the report again,
// and the mailer ignores it.
package notification

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"crier/platform/clock"
	"crier/platform/lifecycle"
	"crier/publishing/connector"
	"crier/publishing/db"
)

const (
	// pollInterval is how often the loop queries the database for events.
	pollInterval = 2 * time.Second
	// mailInterval is how often the loop queries the database for due emails and for the number of
	// waiting events.
	mailInterval = 5 * time.Second
	// stepTimeout limits one call to Count or Mail.
	stepTimeout = 30 * time.Second
)

// Deps holds the dependencies of New and NewNotifications. Only New needs Mailer and Shards.
type Deps struct {
	DB         *db.DB
	Connectors *connector.Registry
	Mailer     IncidentMailer
	Clock      clock.Clock
	Log        *slog.Logger
	// Shards returns the shards that this process owns. The loop handles the organizations in these
	// shards.
	Shards func() []int16
}

// Notifier turns events into notifications and emails. It is safe for concurrent use.
type Notifier struct {
	deps Deps
	db   *db.DB

	events, mails *db.Walk

	waiting, oldest atomic.Int64

	loop *lifecycle.Loop
	// mailed is when the loop last called Mail, as measured by clock.Boot. Only the loop uses it.
	mailed time.Duration
}

// New returns a Notifier. Its loop runs after Start.
func New(deps Deps) *Notifier {
	loop := lifecycle.NewLoop(lifecycle.LoopRules{
		Interval: pollInterval, Timeout: stepTimeout,
		Failed: func(ctx context.Context, err error) {
			deps.Log.WarnContext(ctx, "cannot notify people yet; retrying", "error", err)
		},
	})
	walk := db.WalkRules{
		Size: orgsPerRound, Shards: deps.Shards, Log: deps.Log,
		Skipped: "cannot notify an organization's people yet; retrying later",
	}
	return &Notifier{deps: deps, db: deps.DB, events: db.NewWalk(walk), mails: db.NewWalk(walk), loop: loop}
}

// Start starts the loop, which runs until Stop is called, even if ctx ends. Start must be called
// only once.
func (n *Notifier) Start(ctx context.Context) { n.loop.Start(ctx, n.Count, n.mailIfDue) }

// mailIfDue calls Mail if the last call was at least mailInterval ago.
func (n *Notifier) mailIfDue(ctx context.Context) (more bool, err error) {
	now := clock.Boot()
	if now-n.mailed < mailInterval {
		return false, nil
	}
	n.mailed = now
	return n.Mail(ctx)
}

// Stop ends the loop and waits for it. It returns ctx's error if ctx ends first.
func (n *Notifier) Stop(ctx context.Context) error { return n.loop.Stop(ctx) }

// Waiting returns how many events are waiting to be counted across all organizations, up to
// maxWaiting, as of the last call to Mail.
func (n *Notifier) Waiting() int64 { return n.waiting.Load() }

// OldestSeconds returns the age of the oldest waiting event in seconds, as of the last call to
// Mail.
func (n *Notifier) OldestSeconds() int64 { return n.oldest.Load() }
