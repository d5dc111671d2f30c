// Package notification implements the bell. It counts what happens to posts and channels in
// incidents, which are notifications, and queues the mails about them.
//
// An event is a row that the transaction of the change writes. The loop of Notifier adds the events of an organization
// to its incidents and deletes them, in one transaction, so that each is counted once whatever crashes. Some time after
// an incident has begun the loop gives its report to the mailer and then records that. After a crash in between it
// gives the report again, and the mailer ignores it.
package notification

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"crier/platform/clock"
	"crier/platform/lifecycle"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/db"
	"crier/tenancy"
)

const (
	// pollInterval is how often the database is asked for events.
	pollInterval = 2 * time.Second
	// mailInterval is how often it is asked for mails that are due, and how many events wait.
	mailInterval = 5 * time.Second
	// stepTimeout limits one call of Count or Mail.
	stepTimeout = 30 * time.Second
	// orgWait is the longest wait of a round for a connection of one organization.
	orgWait = 200 * time.Millisecond
)

// Deps are what New and NewNotifications need. Only New needs Mailer and Shards.
type Deps struct {
	DB         *db.DB
	Connectors *connector.Registry
	Mailer     publishing.IncidentMailer
	Clock      clock.Clock
	Log        *slog.Logger
	// Shards returns the shards that this process owns. The loop serves the organizations in them.
	Shards func() []int16
}

// Notifier turns the events of all organizations into notifications and mails. It is safe for concurrent use.
type Notifier struct {
	deps Deps
	db   *db.DB

	// step is held by a round. afterEvents and afterMails are the last organizations that the rounds reached, zero when
	// they reached all.
	step                    sync.Mutex
	afterEvents, afterMails tenancy.OrgID

	waiting, oldest atomic.Int64

	loop *lifecycle.Loop
	// mailed is when the loop last called Mail, by clock.Boot. Only the loop uses it.
	mailed time.Duration
}

// New returns a Notifier. Its loop runs from Start on.
func New(deps Deps) *Notifier {
	loop := lifecycle.NewLoop(lifecycle.LoopRules{
		Interval: pollInterval, Timeout: stepTimeout,
		Failed: func(ctx context.Context, err error) {
			deps.Log.WarnContext(ctx, "people are notified later; trying again", "error", err)
		},
	})
	return &Notifier{deps: deps, db: deps.DB, loop: loop}
}

// Start starts the loop, which ends with Stop and not with ctx. It is called once.
func (n *Notifier) Start(ctx context.Context) { n.loop.Start(ctx, n.Count, n.mailIfDue) }

// mailIfDue calls Mail if the last call was mailInterval ago.
func (n *Notifier) mailIfDue(ctx context.Context) (more bool, err error) {
	now := clock.Boot()
	if now-n.mailed < mailInterval {
		return false, nil
	}
	n.mailed = now
	return n.Mail(ctx)
}

// Stop ends the loop and waits for it, or returns the error of ctx.
func (n *Notifier) Stop(ctx context.Context) error { return n.loop.Stop(ctx) }

// Waiting returns how many events wait to be counted in all organizations, at most maxWaiting, as of the last round of
// mails.
func (n *Notifier) Waiting() int64 { return n.waiting.Load() }

// OldestSeconds returns the age of the oldest event at that time, in seconds.
func (n *Notifier) OldestSeconds() int64 { return n.oldest.Load() }

// owned returns the shards of this process.
func (n *Notifier) owned() map[int]bool {
	out := map[int]bool{}
	for _, s := range n.deps.Shards() {
		out[int(s)] = true
	}
	return out
}

// visit calls do for each organization of the shards of this process that next finds, a page of them behind the last one
// that was reached. An organization whose rows the database refuses, or whose connections are all in use, does not stop
// the others. more is true when there may be further work.
func (n *Notifier) visit(
	ctx context.Context, after *tenancy.OrgID,
	next func(ctx context.Context, after tenancy.OrgID) ([]tenancy.OrgID, error),
	do func(ctx context.Context, org tenancy.OrgID) (more bool, err error),
) (more bool, err error) {
	n.step.Lock()
	defer n.step.Unlock()
	ctx = pg.WithOrgWait(ctx, orgWait)
	orgs, err := next(ctx, *after)
	if err != nil {
		return false, err
	}
	shards := n.owned()
	more = len(orgs) == orgsPerRound
	for _, org := range orgs {
		*after = org // also when the round ends with it: the next one goes on behind it
		if !shards[tenancy.Shard(org)] {
			continue
		}
		full, err := do(ctx, org)
		if err := n.carryOn(ctx, org, err); err != nil {
			return more, err
		}
		more = more || full
	}
	if len(orgs) < orgsPerRound {
		*after = tenancy.OrgID{}
	}
	return more, nil
}

// carryOn returns the errors that concern all organizations; one that concerns only this one is logged.
func (n *Notifier) carryOn(ctx context.Context, org tenancy.OrgID, err error) error {
	if err == nil || ctx.Err() != nil || !pg.IsRowError(err) && !pg.IsOrgBusy(err) {
		return errors.Join(err, ctx.Err())
	}
	n.deps.Log.WarnContext(ctx, "the people of an organization are notified later", "org", org, "error", err)
	return nil
}
