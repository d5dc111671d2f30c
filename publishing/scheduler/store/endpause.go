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

// MaxGiveUp limits the number of posts that EndPause abandons in its transaction. Callers of
// GiveUpKeptBack must not exceed this limit either. GiveUpKeptBack does not enforce the limit.
const MaxGiveUp = 1000

// PauseEnd describes which pause ends and what happens to the posts. If Scope is
// publishing.PauseInstance, a stop ends and Subject is the organization.
type PauseEnd struct {
	Scope   publishing.PauseScope
	Subject any
	// Hold is how long a post can be held back and still be published. Posts held back for longer
	// are abandoned, except for posts that another pause still holds back.
	Hold time.Duration
	// AllSince means that all posts that became due since the pause began are abandoned, even posts
	// that another pause still covers.
	AllSince bool
	// By identifies who ends the pause, as shown in timelines.
	By string
}

//go:embed sql/find_kept_back.sql
var findKeptBack string

//go:embed sql/expire_paused.sql
var expirePaused string

// EndPause ends a pause. It abandons the posts selected by e, except for the posts in except. Then
// it deletes the pause and updates the flags of the channels that the pause covered. If another
// pause covers a channel, the channel stays paused. missed is the number of abandoned posts,
// including followers.
//
// If MaxGiveUp or more posts must be abandoned, EndPause changes nothing and returns done == false.
// In that case, call GiveUpKeptBack, and then EndPause again in a new transaction. Posts covered by
// the pause are not claimed until EndPause has returned done == true and its transaction commits.
//
// known is false if the subject or the organization does not exist. A stop cannot end while the
// organization is suspended or marked for deletion. In that case, or if there is no stop, EndPause
// changes nothing and returns done == true. EndPause returns the same errors as Pause.
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

// written returns a callback that counts the rows a statement has written and stores the count in
// n.
func written(n *int) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		*n = int(tag.RowsAffected())
		return nil
	}
}

// FindKeptBack returns posts that must be abandoned when the pause ends. It returns at most limit
// posts, in no particular order, and none of the posts in except. It returns pg.ErrOrgBusy or any
// Postgres error.
func FindKeptBack(
	ctx context.Context, d *db.DB, org tenancy.OrgID, e PauseEnd, except []publishing.PostID, limit int,
) (posts []publishing.PostID, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(findKeptBack, e.find(except, limit)...).Query(db.Into(&posts, pgx.RowTo[publishing.PostID]))
	})
	return posts, err
}

// GiveUpKeptBack abandons the given posts in one statement. Posts that no longer need to be
// abandoned when the pause ends are skipped. GiveUpKeptBack returns the number of abandoned posts,
// including followers. It does not end the pause; see EndPause.
//
// If Postgres rejects the change to one post, no post is changed. GiveUpKeptBack returns
// pg.ErrOrgBusy or any Postgres error.
func GiveUpKeptBack(
	ctx context.Context, d *db.DB, org tenancy.OrgID, e PauseEnd, posts []publishing.PostID,
) (missed int, err error) {
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(expirePaused, e.expire(posts, d.Node)...).Exec(written(&missed))
	})
	return missed, err
}
