package scheduler

import (
	"context"
	"slices"

	"crier/platform/batch"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
)

const (
	// maxKeptBack is how many posts one search for those that are to be given up returns.
	maxKeptBack = 20 * schedulerstore.MaxGiveUp
	// maxRefused is how many posts the database may refuse to change before the end of a pause fails.
	maxRefused = 1000
)

// endPause ends a pause or a stop. The posts that it has kept back for too long are given up first, in short
// transactions; a smaller number, and the rest, in the one that deletes the pause. An error or a crash in between leaves
// the pause, so that nothing is claimed, and the next call goes on.
//
// A post that the database refuses to give up is logged and stays in the queue, so that it does not keep back the
// others. in runs a function in a transaction of the organization; the function returns whether it has ended a pause
// that it knows. missed is the number of posts that this call has given up, followers included, also with an error. known is
// false when there is no such subject or organization.
func (s *Queue) endPause(
	ctx context.Context, org tenancy.OrgID, end schedulerstore.PauseEnd,
	in func(fn func(*db.Tx) (ended bool, err error)) error,
) (missed int, known bool, err error) {
	var refused []publishing.PostID
	for {
		last, done := 0, false
		err := in(func(tx *db.Tx) (ended bool, err error) {
			last, known, done, err = schedulerstore.EndPause(ctx, tx, end, refused)
			return known && done, err
		})
		if err == nil && done {
			return missed + last, known, nil
		}
		if err != nil && !isPostError(ctx, err) {
			return missed, known, err
		}
		found, n, failed := s.giveUpKeptBack(ctx, org, end, &refused)
		missed += n
		switch {
		case failed != nil:
			return missed, known, failed
		case err != nil && found == 0: // the cause is no post
			return missed, known, err
		}
	}
}

// giveUpKeptBack gives up at most maxKeptBack posts of a pause that is about to end, and adds to refused those that the
// database refuses. It returns how many posts it has found and how many were given up.
func (s *Queue) giveUpKeptBack(
	ctx context.Context, org tenancy.OrgID, end schedulerstore.PauseEnd, refused *[]publishing.PostID,
) (found, missed int, err error) {
	posts, err := schedulerstore.FindKeptBack(ctx, s.db, org, end, *refused, maxKeptBack)
	if err != nil {
		return 0, 0, err
	}
	giveUp := func(some []publishing.PostID) error {
		n, err := schedulerstore.GiveUpKeptBack(ctx, s.db, org, end, some)
		missed += n
		return err
	}
	blame := func(err error) bool { return isPostError(ctx, err) }
	var last error
	alone := func(post publishing.PostID, cause error) {
		*refused, last = append(*refused, post), cause
		s.deps.Log.Error("a post that a pause has kept back for too long cannot be given up; it stays in the queue",
			"org", org, "post", post, "error", cause)
	}
	for some := range slices.Chunk(posts, schedulerstore.MaxGiveUp) {
		if _, err := batch.Isolate(some, giveUp, blame, alone); err != nil {
			return len(posts), missed, err
		}
		if len(*refused) > maxRefused {
			return len(posts), missed, last
		}
	}
	return len(posts), missed, nil
}

// isPostError reports whether a post may be the cause of an error. A lock that others hold is none: it passes.
func isPostError(ctx context.Context, err error) bool {
	return ctx.Err() == nil && pg.IsRowError(err) && !pg.IsLocked(err)
}
