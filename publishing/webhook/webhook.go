// Package webhook delivers an organization's events to its webhook endpoints.
//
// An event is a row that is written in the same transaction as the change it reports. The
// Deliverer's loop turns events into deliveries, whose bodies are rendered once, and adds a task
// for each endpoint that has something to send. Each task sends one endpoint's deliveries. After a
// crash, the next run continues with the remaining work. As a result, a delivery can be sent twice
// with the same id.
package webhook

import (
	"context"
	"log/slog"
	"time"

	"crier/platform/clock"
	"crier/platform/jobs"
	"crier/platform/lifecycle"
	"crier/platform/limit"
	"crier/platform/secret"
	"crier/publishing"
	"crier/publishing/db"
	webhookstore "crier/publishing/webhook/store"
	"crier/tenancy"
)

// The kinds of tasks that Deliver handles. Separate workers serve endpoints that have never
// succeeded, that failed on their last attempt, or that respond slowly. Other endpoints do not have
// to wait for them.
const (
	TaskHealthy = "webhook"
	TaskAside   = "webhook-aside"
)

// Workers is how many tasks of each kind a process runs concurrently. Tasks spend most of their
// time waiting for a response. Workers is a multiple of the limit per creator, so that no single
// creator delays the others.
const Workers = 4 * perCreator

// TaskTimeout is the time limit for a single run of Deliver.
const TaskTimeout = drainTime + publishing.WebhookTimeout + 15*time.Second

const (
	// perOrg limits how many endpoints of one organization are in progress at a time. perCreator is
	// the total limit for all organizations that one person created. Working endpoints and
	// endpoints set aside are counted separately.
	perOrg     = 4
	perCreator = 16
	// pollInterval is how often the loop queries the database for events and due endpoints.
	pollInterval = time.Second
	// stepTimeout limits one round of the loop.
	stepTimeout = 30 * time.Second
)

var perOwner = webhookstore.WebhookShares{PerOrg: perOrg, PerCreator: perCreator}

// Deps holds the dependencies of New and NewWebhooks. Only New needs Queue, Chance and Shards. Only
// Quota is optional.
type Deps struct {
	DB      *db.DB
	Queue   *jobs.Queue
	Keyring *secret.Keyring
	HTTP    HTTP
	Clock   clock.Clock
	Log     *slog.Logger
	// Quota limits an organization's webhooks. It is nil on an instance without plans. Only
	// Webhooks uses it.
	Quota db.Quota
	// Chance returns a random number between 0 and 1, which is used to add jitter to waits.
	Chance func() float64
	// Shards returns the shards that this process owns. The loop serves the organizations in these
	// shards.
	Shards func() []int16
}

// Deliverer turns events into deliveries and sends them. It is safe for concurrent use.
type Deliverer struct {
	deps Deps
	db   *db.DB
	// shares counts this process's current turns per creator. The limits in dispatch are not
	// enough, because they miss endpoints that were deleted during their turn.
	shares *limit.PerKey[share]
	walk   *db.Walk
	// turn is the organization whose endpoints had their turn last, or zero to start over with the
	// first organization.
	turn tenancy.OrgID

	loop *lifecycle.Loop
}

// New returns a Deliverer. Its loop does not run until Start is called. Deliver works even if the
// loop does not run in this process.
func New(deps Deps) *Deliverer {
	loop := lifecycle.NewLoop(lifecycle.LoopRules{
		Interval: pollInterval, Timeout: stepTimeout,
		Failed: func(ctx context.Context, err error) {
			deps.Log.WarnContext(ctx, "cannot deliver webhooks yet; retrying", "error", err)
		},
	})
	walk := db.NewWalk(db.WalkRules{
		Size: orgsPerRound, Shards: deps.Shards, Log: deps.Log,
		Skipped: "cannot deliver an organization's webhooks yet; retrying later",
	})
	return &Deliverer{deps: deps, db: deps.DB, shares: limit.New[share](perCreator), walk: walk, loop: loop}
}

// Start starts the loop, which runs until Stop is called, even if ctx ends. Start must be called
// only once.
func (d *Deliverer) Start(ctx context.Context) { d.loop.Start(ctx, d.Step) }

// Stop ends the loop and waits for it. It returns ctx's error if ctx ends first.
func (d *Deliverer) Stop(ctx context.Context) error { return d.loop.Stop(ctx) }

// Step turns events into deliveries and adds a task for each endpoint that has something to send.
// It serves the organizations in this process's shards. more is true if there may be further
// events. If the database rejects an organization's rows, or if all of an organization's
// connections are in use, Step continues with the other organizations.
func (d *Deliverer) Step(ctx context.Context) (more bool, err error) {
	more, err = d.walk.Page(ctx, func(ctx context.Context, after tenancy.OrgID, limit int) ([]tenancy.OrgID, error) {
		return webhookstore.WebhookOrgs(ctx, d.db, after, limit)
	}, d.expandOrg)
	if err != nil {
		return more, err
	}
	return more, d.dispatch(ctx)
}
