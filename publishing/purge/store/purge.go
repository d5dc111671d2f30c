// Package store finds and deletes an organization's rows, and rows that have passed their retention
// period. Only the parent package uses it.
package store

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// Purgeable is a kind of row that belongs to an organization and is deleted with it. FindOwned
// finds such rows, and Purge deletes them. For rows with files, see FileKind.
type Purgeable string

// The order of the kinds satisfies the foreign keys. Posts come before files, and files before the
// other kinds.
const (
	// PurgePosts are posts with their parts, publications and timelines, including series templates
	// and deleted posts.
	PurgePosts Purgeable = "posts"
	// PurgeKeys are idempotency keys.
	PurgeKeys Purgeable = "idempotency-keys"
	// PurgeConnects are unfinished attempts to connect a channel.
	PurgeConnects Purgeable = "connects"
	// PurgeDeliveries are webhook deliveries, and PurgeWebhooks are the webhooks.
	PurgeDeliveries Purgeable = "webhook-deliveries"
	PurgeWebhooks   Purgeable = "webhooks"
	// PurgeNotifications are notifications, and PurgeIncidentEvents are incident events that have
	// not been counted yet. All posts and channels must be deleted before these rows. Deleting
	// posts and channels creates events, and nothing deletes events that are created later.
	PurgeNotifications  Purgeable = "notifications"
	PurgeIncidentEvents Purgeable = "incident-events"
	// PurgeSeries are series. All posts must be deleted first.
	PurgeSeries Purgeable = "series"
	// PurgeChannels are channels with their credentials and queues. All posts and series must be
	// deleted first.
	PurgeChannels Purgeable = "channels"
	// PurgeCustomers are customers. All channels must be deleted first.
	PurgeCustomers Purgeable = "customers"
	// PurgePauses are pauses, including the pause that stops all publishing for the organization.
	// They are deleted last, so that nothing is published in the meantime.
	PurgePauses Purgeable = "pauses"
)

// beforeAll is the parameter $2 or, if $2 is empty, the smallest uuid.
const beforeAll = `coalesce(nullif($2::text, ''), '00000000-0000-0000-0000-000000000000')::uuid`

// These statements return an organization's rows in key order, after the key $2. The results
// include posts whose group has a post that is being sent. The statement that deletes posts skips
// them.
const (
	findOwnedPosts = `-- publishing.FindOwnedPosts
select id::text from post where org_id = $1 and id > ` + beforeAll + ` order by id limit $3`

	findOwnedKeys = `-- publishing.FindOwnedKeys
select key from idempotency where org_id = $1 and key > $2 order by key limit $3`

	findOwnedConnects = `-- publishing.FindOwnedConnects
select encode(hash, 'hex') from connect_state where org_id = $1 and hash > decode($2, 'hex') order by hash limit $3`

	findOwnedDeliveries = `-- publishing.FindOwnedDeliveries
select id::text from webhook_delivery where org_id = $1 and id > ` + beforeAll + ` order by id limit $3`

	findOwnedWebhooks = `-- publishing.FindOwnedWebhooks
select id::text from webhook where org_id = $1 and id > ` + beforeAll + ` order by id limit $3`

	findOwnedNotifications = `-- publishing.FindOwnedNotifications
select id::text from notification where org_id = $1 and id > ` + beforeAll + ` order by id limit $3`

	findOwnedIncidentEvents = `-- publishing.FindOwnedIncidentEvents
select id::text from incident_event where org_id = $1 and id > coalesce(nullif($2::text, ''), '0')::bigint
order by id limit $3`

	findOwnedSeries = `-- publishing.FindOwnedSeries
select id::text from series where org_id = $1 and id > ` + beforeAll + ` order by id limit $3`

	findOwnedChannels = `-- publishing.FindOwnedChannels
select id::text from channel where org_id = $1 and id > ` + beforeAll + ` order by id limit $3`

	findOwnedCustomers = `-- publishing.FindOwnedCustomers
select id::text from customer where org_id = $1 and id > ` + beforeAll + ` order by id limit $3`

	// Here, all of a subject's rows share one key.
	findOwnedPauses = `-- publishing.FindOwnedPauses
select subject::text from pause where org_id = $1 and subject > ` + beforeAll + `
group by subject order by subject limit $3`
)

// FindOwned returns the keys of at most limit rows of a kind, in key order, starting after the
// given key. If after is empty, it starts with the first row. Any error is pg.ErrOrgBusy or a
// Postgres error.
func FindOwned(
	ctx context.Context, d *db.DB, org tenancy.OrgID, kind Purgeable, after string, limit int,
) (keys []string, err error) {
	sql := map[Purgeable]string{
		PurgePosts: findOwnedPosts, PurgeKeys: findOwnedKeys, PurgeConnects: findOwnedConnects,
		PurgeSeries: findOwnedSeries, PurgeChannels: findOwnedChannels, PurgeCustomers: findOwnedCustomers,
		PurgePauses: findOwnedPauses, PurgeDeliveries: findOwnedDeliveries, PurgeWebhooks: findOwnedWebhooks,
		PurgeNotifications: findOwnedNotifications, PurgeIncidentEvents: findOwnedIncidentEvents,
	}[kind]
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(sql, org, after, limit).Query(db.Into(&keys, pgx.RowTo[string]))
	})
	return keys, err
}

//go:embed sql/purge_posts.sql
var purgePosts string

const (
	purgeKeys = `-- publishing.PurgeKeys
delete from idempotency where org_id = $1 and key = any ($2::text[])`

	purgeConnects = `-- publishing.PurgeConnects
delete from connect_state
where org_id = $1 and hash = any (array(select decode(u.hash, 'hex') from unnest($2::text[]) u(hash)))`

	purgeDeliveries = `-- publishing.PurgeDeliveries
delete from webhook_delivery where org_id = $1 and id = any ($2::text[]::uuid[])`

	purgeWebhooks = `-- publishing.PurgeWebhooks
delete from webhook where org_id = $1 and id = any ($2::text[]::uuid[])`

	purgeNotifications = `-- publishing.PurgeNotifications
delete from notification where org_id = $1 and id = any ($2::text[]::uuid[])`

	purgeIncidentEvents = `-- publishing.PurgeIncidentEvents
delete from incident_event where org_id = $1 and id = any ($2::text[]::bigint[])`

	purgeSeries = `-- publishing.PurgeSeries
delete from series where org_id = $1 and id = any ($2::text[]::uuid[])`

	purgeChannels = `-- publishing.PurgeChannels
delete from channel where org_id = $1 and id = any ($2::text[]::uuid[])`

	purgeCustomers = `-- publishing.PurgeCustomers
delete from customer where org_id = $1 and id = any ($2::text[]::uuid[])`

	purgePauses = `-- publishing.PurgePauses
delete from pause where org_id = $1 and subject = any ($2::text[]::uuid[])`
)

// Purge deletes the rows of a kind with the given keys in one statement, and returns how many of
// these rows it deleted. Rows that are deleted along with them do not count. Purge skips locked
// posts, and all posts of a group in which a post is being sent.
//
// If Postgres rejects the deletion of one row, for example because rows of another kind refer to
// it, Purge deletes nothing and returns the error; see batch.Sweep.
func Purge(ctx context.Context, d *db.DB, org tenancy.OrgID, kind Purgeable, keys []string) (n int, err error) {
	sql := map[Purgeable]string{
		PurgePosts: purgePosts, PurgeKeys: purgeKeys, PurgeConnects: purgeConnects, PurgeSeries: purgeSeries,
		PurgeChannels: purgeChannels, PurgeCustomers: purgeCustomers, PurgePauses: purgePauses,
		PurgeDeliveries: purgeDeliveries, PurgeWebhooks: purgeWebhooks,
		PurgeNotifications: purgeNotifications, PurgeIncidentEvents: purgeIncidentEvents,
	}[kind]
	return purge(ctx, d, org, sql, org, keys)
}

// purge executes a statement for the organization and returns the number of affected rows.
func purge(ctx context.Context, d *db.DB, org tenancy.OrgID, sql string, args ...any) (n int, err error) {
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
			n = int(tag.RowsAffected())
			return nil
		})
	})
	return n, err
}

const seriesEndAll = `-- publishing.SeriesEndAll
update series set stopped_at = now(), stopped_for = 'deleted'
where org_id = $1 and stopped_at is null
  and id in (select id from series where org_id = $1 and stopped_at is null order by id limit $2)`

// EndAllSeries ends at most limit series and returns how many it ended. No further occurrences of
// these series are created. Any error is pg.ErrOrgBusy or a Postgres error.
func EndAllSeries(ctx context.Context, d *db.DB, org tenancy.OrgID, limit int) (n int, err error) {
	return purge(ctx, d, org, seriesEndAll, org, limit)
}

// FileKind is a kind of row that has files in the blob store. FindFiles finds such rows, and
// PurgeFiles deletes them.
type FileKind string

// Pictures must be deleted before the media from which they are derived, because deleting a medium
// also deletes its pictures' rows.
const (
	// FilePictures are derived pictures. Each attempt to make a picture may have left a file.
	FilePictures FileKind = "pictures"
	// FileMedia are uploaded files.
	FileMedia FileKind = "media"
	// FileDeletedMedia are uploaded files that are marked as deleted.
	FileDeletedMedia FileKind = "deleted-media"
)

// StoredFile identifies a row that has files in the blob store.
type StoredFile struct {
	Media publishing.MediaID `db:"media_id"`
	// Spec says which picture was derived from the medium. It is empty if the row is the medium
	// itself.
	Spec string `db:"spec"`
	// Attempts is the number of attempts made to generate the picture.
	Attempts int `db:"attempts"`
	// Key is the Blob of a medium, or empty if another medium still needs the same bytes. For a
	// picture, Key is the publishing.Medium.Key of the medium that the picture was derived from.
	Key string `db:"key"`
}

// String returns the row's ids for use in error messages.
func (f StoredFile) String() string {
	if f.Spec == "" {
		return fmt.Sprintf("the medium %s", f.Media)
	}
	return fmt.Sprintf("the picture %s of the medium %s", f.Spec, f.Media)
}

// BlobKeys returns the keys under which the row may have files. For a picture, it returns one key
// per attempt; most of these files do not exist.
func (f StoredFile) BlobKeys(org tenancy.OrgID) []string {
	m := publishing.Medium{Org: org, Key: f.Key, Blob: f.Key}
	switch {
	case f.Key == "":
		return nil
	case f.Spec == "":
		return []string{m.BlobKey()}
	}
	keys := make([]string, f.Attempts)
	for i := range keys {
		keys[i] = m.DerivedKey(f.Spec, i+1)
	}
	return keys
}

// keptBytes is the SQL condition that another medium still needs the bytes of medium m. That is the
// case if a part uses the other medium, or if it will be deleted later than m. As a result, shared
// bytes are deleted with the last medium that uses them.
const keptBytes = `exists (select from media o
  where o.org_id = m.org_id and o.blob = m.blob and o.id <> m.id and o.deleted_at is null and o.size > 0
    and (o.id > m.id or m.deleted_at is not null
      or exists (select from attachment a where a.org_id = o.org_id and a.media_id = o.id)))`

// findOwnedPictures skips pictures whose file a process may be writing.
const findOwnedPictures = `-- publishing.FindOwnedPictures
select d.media_id, d.spec, d.attempts, m.key
from derived_picture d join media m on m.org_id = d.org_id and m.id = d.media_id
where d.org_id = $1 and (d.media_id, d.spec) > (` + beforeAll + `, $3)
  and (d.state = 'pending' and d.unfinished > 0 and d.not_before > now()) is not true and ` + db.Unattached + `
order by d.media_id, d.spec limit $4`

// ownedMedia returns the statement for one of the two kinds of media. "offset 0" makes Postgres
// find the media by organization instead of scanning all organizations' media in id order. There is
// no index for media that are marked as deleted.
func ownedMedia(name, kind string) string {
	return `-- publishing.` + name + `
select m.id as media_id, '' as spec, 0 as attempts, case when ` + keptBytes + ` then '' else m.blob end as key from (
  select org_id, id, blob, deleted_at from media where org_id = $1 and ` + kind + ` offset 0) m
where (m.id, '') > (` + beforeAll + `, $3) and ` + db.Unattached + `
  and not exists (select from derived_picture d where d.org_id = m.org_id and d.media_id = m.id)
order by m.id limit $4`
}

var (
	findOwnedMedia        = ownedMedia("FindOwnedMedia", "deleted_at is null and size > 0")
	findOwnedDeletedMedia = ownedMedia("FindOwnedDeletedMedia", "deleted_at is not null")
)

// FindFiles returns at most limit rows of a kind, in key order, starting after the given row. If
// after is zero, it starts with the first row. FindFiles skips media that are attached to a part,
// along with their derived pictures. It also skips media that still have derived pictures, and
// pictures that are being made. Any error is pg.ErrOrgBusy or a Postgres error.
func FindFiles(
	ctx context.Context, d *db.DB, org tenancy.OrgID, kind FileKind, after StoredFile, limit int,
) (files []StoredFile, err error) {
	sql := map[FileKind]string{
		FilePictures: findOwnedPictures, FileMedia: findOwnedMedia, FileDeletedMedia: findOwnedDeletedMedia,
	}[kind]
	first := ""
	if after != (StoredFile{}) {
		first = after.Media.String()
	}
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(sql, org, first, after.Spec, limit).Query(db.Into(&files, pgx.RowToStructByName[StoredFile]))
	})
	return files, err
}

// purgePictures compares the number of attempts, so that a picture keeps its row if another attempt
// has begun in the meantime.
const purgePictures = `-- publishing.PurgePictures
delete from derived_picture d using unnest($2::uuid[], $3::text[], $4::integer[]) f(media, spec, attempts)
where d.org_id = $1 and d.media_id = f.media and d.spec = f.spec and d.attempts = f.attempts`

const purgeMedia = `-- publishing.PurgeMedia
delete from media m where m.org_id = $1 and m.id = any ($2::uuid[]) and ` + db.Unattached + `
  and not exists (select from derived_picture d where d.org_id = m.org_id and d.media_id = m.id)`

// PurgeFiles deletes the rows of files that have been deleted from the blob store, and returns how
// many rows it deleted. It skips pictures that were taken after FindFiles, because the new attempt
// may write a file. If PurgeFiles returns an error, it has deleted nothing. Any error is
// pg.ErrOrgBusy or a Postgres error.
func PurgeFiles(
	ctx context.Context, d *db.DB, org tenancy.OrgID, kind FileKind, files []StoredFile,
) (n int, err error) {
	media, specs, attempts := make([][16]byte, len(files)), make([]string, len(files)), make([]int, len(files))
	for i, f := range files {
		media[i], specs[i], attempts[i] = f.Media.UUID(), f.Spec, f.Attempts
	}
	if kind == FilePictures {
		return purge(ctx, d, org, purgePictures, org, media, specs, attempts)
	}
	return purge(ctx, d, org, purgeMedia, org, media)
}

const ownedLeft = `-- publishing.OwnedLeft
select exists (select from post where org_id = $1),
  exists (select from media where org_id = $1 and deleted_at is null and size > 0)
    or exists (select from derived_picture where org_id = $1)`

// OwnedLeft reports whether the organization still has posts, and whether it still has media or
// pictures. Any error is pg.ErrOrgBusy or a Postgres error.
func OwnedLeft(ctx context.Context, d *db.DB, org tenancy.OrgID) (posts, files bool, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(ownedLeft, org).QueryRow(func(row pgx.Row) error { return row.Scan(&posts, &files) })
	})
	return posts, files, err
}
