// Package webhook delivers the events of an organization to its endpoints.
//
// An event is a row written by the transaction of the change. The loop of Deliverer turns events
// into deliveries, whose bodies are rendered once, and adds a task for each endpoint that has
// something to send. A task sends the deliveries of one endpoint. After a crash at any point, the
// next run continues; a delivery may then be sent twice, with the same id.
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

// The kinds of tasks that Deliver handles. Endpoints that have never succeeded, whose last attempt
// failed, or that respond slowly have their own workers, so that the others do not wait behind
// them.
const (
	TaskHealthy = "webhook"
	TaskAside   = "webhook-aside"
)

// Workers is how many tasks of each kind a process runs at a time. Most of them only wait for a
// response. It is a multiple of what one creator may have, so that no single person delays the
// others.
const Workers = 4 * perCreator

// TaskTimeout is the deadline of one run of Deliver.
const TaskTimeout = drainTime + publishing.WebhookTimeout + 15*time.Second

const (
	// perOrg is how many endpoints of one organization may be under way at once, separately for
	// endpoints that work and endpoints set aside, and perCreator is the same limit for all
	// organizations that one person created.
	perOrg     = 4
	perCreator = 16
	// pollInterval is how often the database is asked for events and for endpoints with something
	// to send.
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
	// Quota limits the webhooks of an organization. It is nil on an instance without plans. Only
	// Webhooks uses it.
	Quota db.Quota
	// Chance returns a number between 0 and 1, for the jitter of waits.
	Chance func() float64
	// Shards returns the shards that this process owns. The loop serves the organizations in them.
	Shards func() []int16
}

// Deliverer delivers the events of all organizations. It is safe for concurrent use.
type Deliverer struct {
	deps Deps
	db   *db.DB
	// shares counts the turns of this process by creator. The limits of dispatch alone are not
	// enough: they do not see endpoints that were deleted during their turn.
	shares *limit.PerKey[share]
	walk   *db.Walk
	// turn is the last organization whose endpoints had their turn, or zero if it was the last of
	// all.
	turn tenancy.OrgID

	loop *lifecycle.Loop
}

// New returns a Deliverer. Its loop runs after Start; Deliver does not need a loop in this process.
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

// Start starts the loop, which ends with Stop and not with ctx. Start must be called once.
func (d *Deliverer) Start(ctx context.Context) { d.loop.Start(ctx, d.Step) }

// Stop ends the loop and waits for it, or returns the error of ctx.
func (d *Deliverer) Stop(ctx context.Context) error { return d.loop.Stop(ctx) }

// Step turns events into deliveries and adds tasks for endpoints with something to send, for the
// organizations in the shards of this process. It reports whether there were more events than it
// took. An organization whose rows the database refuses, or whose connections are all in use, does
// not stop the others.
func (d *Deliverer) Step(ctx context.Context) (more bool, err error) {
	more, err = d.walk.Page(ctx, func(ctx context.Context, after tenancy.OrgID, limit int) ([]tenancy.OrgID, error) {
		return webhookstore.WebhookOrgs(ctx, d.db, after, limit)
	}, d.expandOrg)
	if err != nil {
		return more, err
	}
	return more, d.dispatch(ctx)
}
