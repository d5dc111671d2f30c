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

// MaxGiveUp bounds the posts that EndPause gives up in its transaction. Callers of GiveUpKeptBack
// must keep to it too; GiveUpKeptBack does not check it.
const MaxGiveUp = 1000

// PauseEnd says how a pause ends. With the scope publishing.PauseInstance, it ends a stop, and the
// subject is the organization.
type PauseEnd struct {
	Scope   publishing.PauseScope
	Subject any
	// Hold is how long a post may have been held back and still be published. Posts held back for
	// longer are given up, except those that another pause still holds back.
	Hold time.Duration
	// AllSince gives up every post that became due since the pause began, even where another pause
	// remains.
	AllSince bool
	// By says who ends the pause, for timelines.
	By string
}

//go:embed sql/find_kept_back.sql
var findKeptBack string

//go:embed sql/expire_paused.sql
var expirePaused string

// EndPause gives up the posts that must be given up when the pause ends, deletes the pause, and
// updates the flags of the channels that the pause covered. A channel that another pause covers
// stays paused. EndPause leaves out the posts in except. missed is the number of posts given up,
// including followers.
//
// If MaxGiveUp posts or more must be given up, EndPause changes nothing and returns done false:
// call GiveUpKeptBack, then EndPause again in another transaction. Until a transaction in which
// EndPause returned done true is committed, no post that the pause covers is claimed.
//
// known is false if the subject or the organization does not exist. A stop does not end while the
// organization is suspended or marked for deletion. In that case, and if there is no stop, EndPause
// changes nothing and returns done true. It returns the errors of Pause.
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

// written stores in n the number of rows that a statement wrote.
func written(n *int) func(pgconn.CommandTag) error {
	return func(tag pgconn.CommandTag) error {
		*n = int(tag.RowsAffected())
		return nil
	}
}

// FindKeptBack returns at most limit posts that must be given up when the pause ends, in no order
// and without the posts in except. It returns pg.ErrOrgBusy or the Postgres error.
func FindKeptBack(
	ctx context.Context, d *db.DB, org tenancy.OrgID, e PauseEnd, except []publishing.PostID, limit int,
) (posts []publishing.PostID, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(findKeptBack, e.find(except, limit)...).Query(db.Into(&posts, pgx.RowTo[publishing.PostID]))
	})
	return posts, err
}

// GiveUpKeptBack gives up, in one statement, the given posts that must still be given up when the
// pause ends, and returns how many it gave up, including followers. It does not end the pause: see
// EndPause. If Postgres refuses one post, none is changed. It returns pg.ErrOrgBusy or the Postgres
// error.
func GiveUpKeptBack(
	ctx context.Context, d *db.DB, org tenancy.OrgID, e PauseEnd, posts []publishing.PostID,
) (missed int, err error) {
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(expirePaused, e.expire(posts, d.Node)...).Exec(written(&missed))
	})
	return missed, err
}
