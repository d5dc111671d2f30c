package purge

import (
	"context"
	"maps"
	"slices"
	"time"

	"crier/platform/batch"
	"crier/platform/env"
	"crier/platform/pg"
	"crier/publishing/db"
	purgestore "crier/publishing/purge/store"
)

// Retention configures how long rows are kept after they are no longer needed; 0 means forever.
type Retention struct {
	// Keys is how long idempotency keys are kept, measured from when the posts created with the key
	// ended or last changed.
	Keys time.Duration `env:"IDEMPOTENCY_KEY_RETENTION, default=720h" doc:"How long an Idempotency-Key is kept; 0s: forever."`
	// Events is how long a post's timeline is kept, measured from when the post ended.
	Events time.Duration `env:"EVENT_RETENTION, default=4320h" doc:"How long a post's timeline is kept; 0s: forever."`
	// Deleted is how long a deleted post is kept, measured from its deletion. The default is longer
	// than a billing month, because a month's quota counts the posts published in that month.
	Deleted time.Duration `env:"DELETED_POST_RETENTION, default=768h" doc:"How long a deleted post is kept; 0s: forever."`
	// Deliveries is measured from the event.
	Deliveries time.Duration `env:"WEBHOOK_RETENTION, default=720h" doc:"How long a webhook delivery is kept; 0s: forever."`
	// Figures is how long daily metrics are kept, measured from the day that they describe.
	Figures time.Duration `env:"ANALYTICS_RETENTION, default=17568h" doc:"How long daily metrics are kept; 0s: forever."`
	// Notifications is how long a notification is kept, measured from its incident's last event.
	Notifications time.Duration `env:"NOTIFICATION_RETENTION, default=2160h" doc:"How long a notification is kept; 0s: forever."`
}

// Validate returns a fault for each duration other than 0 that is shorter than a day or longer than
// ten years.
func (r Retention) Validate() error {
	var faults env.Faults
	for _, v := range []struct {
		name string
		keep time.Duration
	}{
		{name: "IDEMPOTENCY_KEY_RETENTION", keep: r.Keys},
		{name: "EVENT_RETENTION", keep: r.Events},
		{name: "DELETED_POST_RETENTION", keep: r.Deleted},
		{name: "WEBHOOK_RETENTION", keep: r.Deliveries},
		{name: "ANALYTICS_RETENTION", keep: r.Figures},
		{name: "NOTIFICATION_RETENTION", keep: r.Notifications},
	} {
		if v.keep != 0 && (v.keep < minRetention || v.keep > maxRetention) {
			faults.Add(v.name, "must be a duration from 24h to 87600h, or 0s to keep everything")
		}
	}
	return faults.Err()
}

// secretRetention is how long an expired secret is kept. It is longer than any clock skew between
// processes, so that no process is still signing with a secret that has been deleted.
const secretRetention = time.Hour

// uploadRetention is how long an expired upload address is kept. An upload that begins before the
// address expires can take until later, and a client that repeats an upload learns which file the
// first one stored.
const uploadRetention = 25 * time.Hour

// minRetention is longer than a client keeps retrying a request, and longer than an outcome can be
// delayed.
const minRetention = 24 * time.Hour

const maxRetention = 10 * 365 * 24 * time.Hour

// Prunable is a kind of row that is deleted after its retention period.
type Prunable = purgestore.Prunable

// Pruner deletes rows after their retention period. It is safe for concurrent use, even by several
// processes.
type Pruner struct {
	sweeps map[Prunable]*batch.Sweep[purgestore.OldRow]
}

// NewPruner returns a Pruner for the kinds of rows that cfg does not keep forever.
func NewPruner(cfg Retention, db *db.DB) *Pruner {
	keeps := map[Prunable]time.Duration{
		purgestore.PruneKeys:       cfg.Keys,
		purgestore.PruneEvents:     cfg.Events,
		purgestore.PruneDeleted:    cfg.Deleted,
		purgestore.PruneDeliveries: cfg.Deliveries,

		purgestore.PruneFigures: cfg.Figures, purgestore.PruneNotifications: cfg.Notifications,
	}
	maps.DeleteFunc(keeps, func(_ Prunable, keep time.Duration) bool { return keep == 0 })
	keeps[purgestore.PruneConnects] = 0 // an expired state cannot be used
	keeps[purgestore.PruneSecrets] = secretRetention
	keeps[purgestore.PruneUploads] = uploadRetention
	p := &Pruner{sweeps: map[Prunable]*batch.Sweep[purgestore.OldRow]{}}
	for kind, keep := range keeps {
		p.sweeps[kind] = pruning(db, kind, keep)
	}
	return p
}

// Kinds returns the kinds of rows that are not kept forever. It always includes
// purgestore.PruneConnects, purgestore.PruneSecrets and purgestore.PruneUploads.
func (p *Pruner) Kinds() []Prunable { return slices.Sorted(maps.Keys(p.sweeps)) }

// Prune deletes the rows of one kind that have passed their retention period, in short transactions
// with pauses in between. It returns the number of deleted rows. Rows that belong to a deleted post
// are not counted.
//
// If ctx reaches its deadline, Prune returns no error, and the next call continues where this one
// stopped. Once all rows have been tried, it starts over with the oldest. If the database rejects
// the deletion of a row, Prune continues with the others and returns the first such error at the
// end.
func (p *Pruner) Prune(ctx context.Context, kind Prunable) (int, error) {
	return p.sweeps[kind].Run(ctx)
}

const (
	// pruneSize is the number of rows, or of post groups, per statement.
	pruneSize = 100
	// pruneRest is the pause after a batch, as a multiple of the time the batch took. As a result,
	// pruning uses a twentieth of one connection's time.
	pruneRest = 19
)

func pruning(store *db.DB, kind Prunable, keep time.Duration) *batch.Sweep[purgestore.OldRow] {
	return &batch.Sweep[purgestore.OldRow]{
		Size: pruneSize, PauseFactor: pruneRest, IsItemError: pg.IsRowError,
		Find: func(ctx context.Context, after purgestore.OldRow, limit int) ([]purgestore.OldRow, error) {
			return purgestore.FindOld(ctx, store, kind, keep, after, limit)
		},
		Do: func(ctx context.Context, rows []purgestore.OldRow) (n int, _ error) {
			for {
				some, err := purgestore.Prune(ctx, store, kind, keep, rows)
				n += some
				if err != nil || some <= len(rows) {
					return n, err
				}
			}
		},
	}
}
