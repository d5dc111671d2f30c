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
	// maxKeptBack is the maximum number of posts returned by a single search for posts to abandon.
	maxKeptBack = 20 * schedulerstore.MaxGiveUp
	// maxRefused is the number of post changes the database may reject before endPause fails.
	maxRefused = 1000
)

// endPause abandons the posts that have been held back for too long, and then ends a pause or a
// stop. If there are many such posts, it abandons most of them in a series of short transactions,
// and the rest in the transaction that deletes the pause.
//
// If there is an error or a crash before that transaction commits, the pause stays in force and no
// paused post is claimed. The next call continues where this one stopped.
//
// If the database rejects the change that abandons a post, endPause logs the post and leaves it in
// the queue. The other posts are not affected. The function in must run fn in a transaction for the
// organization. fn returns true if it has ended the pause and the pause's subject exists.
//
// missed is the number of posts abandoned by this call, including followers. It is valid even if
// endPause returns an error. known is false if the subject or the organization does not exist.
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
// end. If the database rejects the change to a post, the post is added to refused. giveUpKeptBack
// returns how many posts it found and how many of them it abandoned.
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

// isPostError reports whether err may have been caused by one of the posts. It returns false for a
// lock held by another transaction, because the lock will be released.
func isPostError(ctx context.Context, err error) bool {
	return ctx.Err() == nil && pg.IsRowError(err) && !pg.IsLocked(err)
}
