package service

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
	store *publishingstore.Store
	keep  map[Prunable]time.Duration
}

// NewPruner makes the service.
func NewPruner(cfg Retention, db *pg.DB) *Pruner {
	p := &Pruner{publishingstore.New(db), map[Prunable]time.Duration{
		publishingstore.PruneKeys:    cfg.Keys,
		publishingstore.PruneEvents:  cfg.Events,
		publishingstore.PruneDeleted: cfg.Deleted,
	}}
	maps.DeleteFunc(p.keep, func(_ Prunable, keep time.Duration) bool { return keep == 0 })
	p.keep[publishingstore.PruneConnects] = 0 // one whose time is over is of no use
	return p
}

// Kinds are the kinds of rows that are not kept for ever.
func (p *Pruner) Kinds() []Prunable { return slices.Sorted(maps.Keys(p.keep)) }

const (
	pruneSize = 100 // rows, or groups of posts, in one statement
	pruneRest = 19  // so that pruning takes a twentieth of one connection's time
)

// Prune deletes everything of one kind that nothing needs any more, in short transactions with pauses between, and
// returns how many rows; what belongs to a deleted post is not counted. It may end at any point: the next call goes on.
// A row that the database refuses to delete stops no other; the first such error is returned when all have been tried.
func (p *Pruner) Prune(ctx context.Context, kind Prunable) (int, error) {
	return batch.Sweep[publishingstore.OldRow]{
		Size: pruneSize, Rest: pruneRest, Blame: pg.IsOfRows,
		Find: func(ctx context.Context, after publishingstore.OldRow, limit int) ([]publishingstore.OldRow, error) {
			return p.store.FindOld(ctx, kind, p.keep[kind], after, limit)
		},
		Do: func(ctx context.Context, rows []publishingstore.OldRow) (n int, _ error) {
			for {
				some, err := p.store.Prune(ctx, kind, p.keep[kind], rows)
				n += some
				if err != nil || some <= len(rows) {
					return n, err
				}
			}
		},
	}.Run(ctx)
}
