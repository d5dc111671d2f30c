package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// Release holds a post's channel, state and release id.
type Release struct {
	Channel   publishing.ChannelID `db:"channel_id"`
	State     publishing.State     `db:"state"`
	ReleaseID *string              `db:"release_id"`
}

const releaseRead = `-- publishing.ReleaseRead
select channel_id, state, release_id from post where id = $1 and deleted_at is null`

// FindRelease returns a post's release. It returns pgx.ErrNoRows if the post does not exist or has
// been deleted.
func FindRelease(ctx context.Context, d *db.DB, org tenancy.OrgID, post publishing.PostID) (out Release, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(releaseRead, post).QueryRow(func(row pgx.Row) error {
			return row.Scan(&out.Channel, &out.State, &out.ReleaseID)
		})
	})
	return out, err
}

const releaseLock = `-- publishing.ReleaseLock
select channel_id, state, release_id from post where id = $1 and deleted_at is null for no key update`

// LockRelease is like FindRelease, but runs in a transaction and locks the post until that
// transaction ends.
func LockRelease(ctx context.Context, tx *db.Tx, post publishing.PostID) (out Release, err error) {
	return out, tx.QueryRow(ctx, releaseLock, post).Scan(&out.Channel, &out.State, &out.ReleaseID)
}

const releaseSet = `-- publishing.ReleaseSet
with p as (update post set release_id = $2, updated_at = now() where id = $1 returning org_id, id)
insert into post_event (org_id, post_id, event, by, node, reason)
select p.org_id, p.id, 'released', $3, nullif($4, ''), $2 from p`

// SetRelease stores a post's release id and adds an event to the post's timeline.
func SetRelease(ctx context.Context, tx *db.Tx, post publishing.PostID, release, by string) error {
	_, err := tx.Exec(ctx, releaseSet, post, release, by, tx.Node)
	return err
}
