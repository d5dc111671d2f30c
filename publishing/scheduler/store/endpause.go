package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// MaxGiveUp limits how many posts EndPause abandons in its transaction. Callers of GiveUpKeptBack
// must observe the same limit, which GiveUpKeptBack does not check.
const MaxGiveUp = 1000

// PauseEnd says which pause ends, and how. With the scope publishing.PauseInstance, a stop ends,
// and the subject is the organization.
type PauseEnd struct {
	Scope   publishing.PauseScope
	Subject any
	// Hold is the longest time that a post may have been held back and still be published. Posts
	// held back for longer are abandoned, except those that another pause still holds back.
	Hold time.Duration
	// AllSince means that every post that became due since the pause began is abandoned, even if
	// another pause still covers the post.
	AllSince bool
	// By says who ends the pause, for timelines.
	By string
}

//go:embed sql/find_kept_back.sql
var findKeptBack string

//go:embed sql/expire_paused.sql
var expirePaused string

// EndPause ends a pause. It abandons the posts that e selects, except those in except, then deletes
// the pause and updates the flags of the channels that the pause covered. A channel that another
// pause covers stays paused. missed is the number of posts abandoned, including followers.
//
// If MaxGiveUp or more posts must be abandoned, EndPause changes nothing and done is false: call
// GiveUpKeptBack, then EndPause again in another transaction. No post that the pause covers is
// claimed until EndPause has returned done and the transaction is committed.
//
// known is false if the subject or the organization does not exist. A stop does not end while the
// organization is suspended or marked for deletion. In that case, and if there is no stop, EndPause
// changes nothing and done is true. EndPause returns the same errors as Pause.
func EndPause(
	ctx context.Context, tx *db.Tx, e PauseEnd, except []publishing.PostID,
) (missed int, known, done bool, err error) {
	if known, err = lockPauses(ctx, tx, e.Scope, e.Subject); err != nil || !known {
		return 0, known, true, err
	}
	if e.Scope == publishing.PauseInstance {
		may := false
		if err := tx.QueryRow(ctx, stopMayEnd, e.Subject).Scan(&may); err != nil || !may {
			return 0, true, true, err
		}
	}
	var posts []publishing.PostID
	b := &pgx.Batch{}
	b.Queue(findKeptBack, e.find(except, MaxGiveUp)...).Query(db.Into(&posts, pgx.RowTo[publishing.PostID]))
	if err := tx.SendBatch(ctx, b).Close(); err != nil || len(posts) == MaxGiveUp {
		return 0, true, false, err
	}
	b = &pgx.Batch{}
	b.Queue(expirePaused, e.expire(posts, tx.Node)...).Exec(written(&missed))
	b.Queue(pauseClear, e.Subject, e.Scope)
	b.Queue(pauseApply, e.Scope, e.Subject)
	tx.Freed = true
	return missed, true, true, tx.SendBatch(ctx, b).Close()
}

// find returns the parameters of find_kept_back.sql.
func (e PauseEnd) find(except []publishing.PostID, limit int) []any {
	return []any{e.Scope, e.Subject, e.Hold.Milliseconds(), e.AllSince, db.UUIDs(except), limit}
}

// expire returns the parameters of expire_paused.sql.
func (e PauseEnd) expire(posts []publishing.PostID, node string) []any {
	return []any{e.Scope, e.Subject, e.Hold.Milliseconds(), e.AllSince, db.UUIDs(posts), e.By, node}
}

// written returns a callback that stores the number of rows written by a statement in n.
func written(n *int) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		*n = int(tag.RowsAffected())
		return nil
	}
}

// FindKeptBack returns at most limit posts that must be abandoned when the pause ends, in no
// particular order and without the posts in except. It returns pg.ErrOrgBusy or a Postgres error.
func FindKeptBack(
	ctx context.Context, d *db.DB, org tenancy.OrgID, e PauseEnd, except []publishing.PostID, limit int,
) (posts []publishing.PostID, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(findKeptBack, e.find(except, limit)...).Query(db.Into(&posts, pgx.RowTo[publishing.PostID]))
	})
	return posts, err
}

// GiveUpKeptBack abandons, in one statement, those of the given posts that must still be abandoned
// when the pause ends. It returns how many posts it abandoned, including followers. It does not end
// the pause: see EndPause. If Postgres rejects the change to one post, none is changed.
// GiveUpKeptBack returns pg.ErrOrgBusy or a Postgres error.
func GiveUpKeptBack(
	ctx context.Context, d *db.DB, org tenancy.OrgID, e PauseEnd, posts []publishing.PostID,
) (missed int, err error) {
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(expirePaused, e.expire(posts, d.Node)...).Exec(written(&missed))
	})
	return missed, err
}
