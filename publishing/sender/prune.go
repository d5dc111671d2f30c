package sender

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"crier/platform/batch"
	"crier/platform/env"
	"crier/platform/pg"
	publishingstore "crier/publishing/store"
)

// Retention says how long what is not needed any more is kept; 0 is for ever.
type Retention struct {
	Keys    time.Duration `env:"KEEP_KEYS, default=720h" doc:"How long an Idempotency-Key is kept after its posts ended or changed; 0s: for ever."`
	Events  time.Duration `env:"KEEP_EVENTS, default=4320h" doc:"How long the timeline of a post is kept after its end; 0s: for ever."`
	Deleted time.Duration `env:"KEEP_DELETED, default=720h" doc:"How long a deleted post is kept with its texts; 0s: for ever."`
}

// Validate refuses what would delete too early.
func (r Retention) Validate() error {
	var faults []error
	all := map[string]time.Duration{"KEEP_KEYS": r.Keys, "KEEP_EVENTS": r.Events, "KEEP_DELETED": r.Deleted}
	for name, keep := range all {
		if keep != 0 && keep < leastKept {
			faults = append(faults, env.Fault{Name: name, Message: "must be 24h or longer, or 0s to keep everything."})
		}
	}
	return errors.Join(faults...)
}

// leastKept is longer than any request is repeated, any call may take, and any outcome may be learnt late.
const leastKept = 24 * time.Hour

// Prunable is a kind of row that is deleted after a while.
type Prunable = publishingstore.Prunable

// Pruner deletes what was kept for long enough. It is safe for concurrent use, also by several processes.
type Pruner struct {
	sweeps map[Prunable]*batch.Sweep[publishingstore.OldRow]
}

// NewPruner makes the service.
func NewPruner(cfg Retention, db *pg.DB) *Pruner {
	keeps := map[Prunable]time.Duration{
		publishingstore.PruneKeys:    cfg.Keys,
		publishingstore.PruneEvents:  cfg.Events,
		publishingstore.PruneDeleted: cfg.Deleted,
	}
	maps.DeleteFunc(keeps, func(_ Prunable, keep time.Duration) bool { return keep == 0 })
	keeps[publishingstore.PruneConnects] = 0 // one whose time is over is of no use
	p := &Pruner{map[Prunable]*batch.Sweep[publishingstore.OldRow]{}}
	for kind, keep := range keeps {
		p.sweeps[kind] = pruning(publishingstore.New(db), kind, keep)
	}
	return p
}

// Kinds are the kinds of rows that are not kept for ever.
func (p *Pruner) Kinds() []Prunable { return slices.Sorted(maps.Keys(p.sweeps)) }

// Prune deletes everything of one kind that nothing needs any more, in short transactions with pauses between, and
// returns how many rows; what belongs to a deleted post is not counted. It may end at any point, also by the deadline of
// ctx, which is no error: the next call goes on there, and begins with the oldest row when all have been tried. A row
// that the database refuses to delete stops no other; the first such error is returned at the end.
func (p *Pruner) Prune(ctx context.Context, kind Prunable) (int, error) {
	return p.sweeps[kind].Run(ctx)
}

const (
	pruneSize = 100 // rows, or groups of posts, in one statement
	pruneRest = 19  // so that pruning takes a twentieth of one connection's time, or more of it where a batch takes long
)

// pruning deletes the rows of one kind that are older than keep.
func pruning(store *publishingstore.Store, kind Prunable, keep time.Duration) *batch.Sweep[publishingstore.OldRow] {
	return &batch.Sweep[publishingstore.OldRow]{
		Size: pruneSize, PauseFactor: pruneRest, IsItemError: pg.IsRowError,
		Find: func(ctx context.Context, after publishingstore.OldRow, limit int) ([]publishingstore.OldRow, error) {
			return store.FindOld(ctx, kind, keep, after, limit)
		},
		Do: func(ctx context.Context, rows []publishingstore.OldRow) (n int, _ error) {
			for {
				some, err := store.Prune(ctx, kind, keep, rows)
				n += some
				if err != nil || some <= len(rows) {
					return n, err
				}
			}
		},
	}
}
