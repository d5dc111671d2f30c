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
	// maxKeptBack limits how many posts one search for posts to abandon returns.
	maxKeptBack = 20 * schedulerstore.MaxGiveUp
	// maxRefused is how many changes to posts the database may reject before ending a pause fails.
	maxRefused = 1000
)

// endPause ends a pause or a stop. It first abandons posts that have been held back for too long.
// If there are many, they are abandoned in a series of short transactions; any that remain are
// handled in the transaction that deletes the pause. After an error or a crash in between, the
// pause stays in force, no paused post is claimed, and the next call continues.
//
// A post that cannot be abandoned because the database rejects the change is logged and stays in
// the queue, so that it does not block the others. The parameter in runs fn in a transaction for
// the organization; fn reports whether it has ended a pause whose subject exists.
//
// missed is the number of posts that this call abandoned, including followers. It is also valid if
// endPause returns an error. known is false if there is no such subject or organization.
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
		case err != nil && found == 0: // not caused by a post
			return missed, known, err
		}
	}
}

// giveUpKeptBack abandons at most maxKeptBack posts that were held back by a pause that is about to
// end. Posts whose change the database rejects are added to refused. It returns how many posts it
// found and how many it abandoned.
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
		s.deps.Log.Error("cannot give up a post that a pause has held back for too long; it stays in the queue",
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

// isPostError reports whether a post may be the cause of err. A lock held by another transaction
// does not count, because it will be released.
func isPostError(ctx context.Context, err error) bool {
	return ctx.Err() == nil && pg.IsRowError(err) && !pg.IsLocked(err)
}
