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

// MaxGiveUp is the largest number of posts that EndPause gives up in its transaction, and the limit for callers of
// GiveUpKeptBack, which does not check it.
const MaxGiveUp = 1000

// PauseEnd says how a pause ends, or with the scope publishing.PauseInstance a stop, whose subject is the organization.
type PauseEnd struct {
	Scope   publishing.PauseScope
	Subject any
	// Hold is for how long the pause may have kept back a post that is published now; the others are given up, except
	// those that another pause still keeps back.
	Hold time.Duration
	// AllSince means that what fell due since the pause began is given up in any case, also where another pause goes on.
	AllSince bool
	// By is who ends it, for timelines.
	By string
}

//go:embed sql/find_kept_back.sql
var findKeptBack string

//go:embed sql/expire_paused.sql
var expirePaused string

// EndPause gives up the posts that are to be given up, deletes the pause and updates the flags of the channels that it
// reached; a channel that another pause reaches stays paused. It leaves out the posts in except. missed is the number of
// posts that were given up, followers included.
//
// With MaxGiveUp posts or more to be given up it changes nothing and returns done false: call GiveUpKeptBack, and then
// EndPause again in another transaction. Until EndPause has returned done true and is committed, no post that the pause
// reaches is claimed.
//
// known is false when the subject or the organization does not exist. A stop does not end while the organization is
// suspended or to be deleted; then, and without a stop, EndPause changes nothing and returns done true. The errors are
// those of Pause.
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

// written stores in n how many rows a statement has written.
func written(n *int) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		*n = int(tag.RowsAffected())
		return nil
	}
}

// FindKeptBack returns at most limit posts that are to be given up when the pause ends, in no order and without those in
// except. It returns pg.ErrOrgBusy or the error of Postgres.
func FindKeptBack(
	ctx context.Context, d *db.DB, org tenancy.OrgID, e PauseEnd, except []publishing.PostID, limit int,
) (posts []publishing.PostID, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(findKeptBack, e.find(except, limit)...).Query(db.Into(&posts, pgx.RowTo[publishing.PostID]))
	})
	return posts, err
}

// GiveUpKeptBack gives up, in one statement, those of the posts that are still to be given up when the pause ends, and
// returns their number, followers included. The pause stays: see EndPause. When Postgres refuses one post, none is
// changed. It returns pg.ErrOrgBusy or the error of Postgres.
func GiveUpKeptBack(
	ctx context.Context, d *db.DB, org tenancy.OrgID, e PauseEnd, posts []publishing.PostID,
) (missed int, err error) {
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(expirePaused, e.expire(posts, d.Node)...).Exec(written(&missed))
	})
	return missed, err
}
