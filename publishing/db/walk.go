package db

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"crier/platform/pg"
	"crier/tenancy"
)

// orgWait is the maximum time a Walk waits for one of an organization's database connections.
const orgWait = 200 * time.Millisecond

// WalkRules configures a Walk. All fields are required.
type WalkRules struct {
	// Size is the maximum number of organizations on a page.
	Size int
	// Shards returns the shards that this process owns. Only their organizations are visited.
	Shards func() []int16
	Log    *slog.Logger
	// Skipped is the message to log when an organization is skipped.
	Skipped string
}

// Walk visits organizations in the background, page by page, so that every organization gets a
// turn. If the database rejects an organization's rows, or the organization's connections are all
// in use, Walk logs and skips the organization. Any other error ends the page. A Walk is safe for
// concurrent use, but visits only one page at a time.
type Walk struct {
	rules WalkRules

	mu    sync.Mutex
	after tenancy.OrgID // the last organization that was reached, or zero after a complete walk
}

// NewWalk returns a Walk that starts at the first organization.
func NewWalk(rules WalkRules) *Walk { return &Walk{rules: rules} }

// Page visits the organizations that find returns. find must return at most limit organizations
// that follow the given organization in a fixed order. If an error ends the page, the next page
// begins after the organization that caused the error. more is true if find returned a full page or
// a visit returned true, because there may be more work.
func (w *Walk) Page(
	ctx context.Context,
	find func(ctx context.Context, after tenancy.OrgID, limit int) ([]tenancy.OrgID, error),
	visit func(ctx context.Context, org tenancy.OrgID) (more bool, err error),
) (more bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	orgs, err := find(ctx, w.after, w.rules.Size)
	if err != nil {
		return false, err
	}
	more = len(orgs) == w.rules.Size
	err = w.Visit(ctx, orgs, func(ctx context.Context, org tenancy.OrgID) error {
		w.after = org
		again, err := visit(ctx, org)
		more = more || again
		return err
	})
	switch {
	case err != nil:
	case len(orgs) == w.rules.Size:
		w.after = orgs[len(orgs)-1]
	default:
		w.after = tenancy.OrgID{}
	}
	return more, err
}

// Visit calls visit for each given organization in this process's shards. It handles errors as
// described for Walk.
func (w *Walk) Visit(
	ctx context.Context, orgs []tenancy.OrgID, visit func(ctx context.Context, org tenancy.OrgID) error,
) error {
	ctx = pg.WithOrgWait(ctx, orgWait)
	own := map[int]bool{}
	for _, shard := range w.rules.Shards() {
		own[int(shard)] = true
	}
	for _, org := range orgs {
		if !own[tenancy.Shard(org)] {
			continue
		}
		err := visit(ctx, org)
		if err == nil && ctx.Err() == nil {
			continue
		}
		if ctx.Err() != nil || !pg.IsRowError(err) && !pg.IsOrgBusy(err) {
			return errors.Join(err, ctx.Err())
		}
		w.rules.Log.WarnContext(ctx, w.rules.Skipped, "org", org, "error", err)
	}
	return nil
}
