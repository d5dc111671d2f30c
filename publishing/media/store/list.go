package store

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

const listedMedia = `m.org_id = $1 and m.deleted_at is null and m.size > 0
  and ($2::text = '' or m.original_name ilike $2 or m.name ilike $2)`

const mediaCount = `-- publishing.MediaCount
select count(*) from media m where ` + listedMedia

var mediaList = `-- publishing.MediaList
select ` + db.MediaColumns + ` from media m where ` + listedMedia + `
order by m.id desc limit $3 offset $4`

var escapeLike = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// ListMedia returns a page of an organization's files, newest first. It returns pg.ErrOrgBusy or a
// Postgres error.
func ListMedia(
	ctx context.Context, d *db.DB, org tenancy.OrgID, q publishing.ListMedia,
) (page publishing.MediaPage, err error) {
	pattern := ""
	if q.Search != "" {
		pattern = "%" + escapeLike.Replace(q.Search) + "%"
	}
	const size = publishing.MediaPerPage
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(mediaCount, org, pattern).QueryRow(func(row pgx.Row) error {
			total := 0
			err := row.Scan(&total)
			page.Pages = (total + size - 1) / size
			return err
		})
		b.Queue(mediaList, org, pattern, size, (q.Page-1)*size).Query(db.Into(&page.Media, db.ScanMedium))
	})
	return page, err
}

var mediaAlt = `-- publishing.MediaAlt
update media m set alt_text = $2 where m.id = $1 and m.deleted_at is null returning ` + db.MediaColumns

// SetAlt sets a file's alternative text and returns the file, or nothing if the file does not
// exist. It returns any Postgres error.
func SetAlt(ctx context.Context, tx *db.Tx, medium publishing.MediaID, alt string) ([]publishing.Medium, error) {
	rows, err := tx.Query(ctx, mediaAlt, medium, alt)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, db.ScanMedium)
}

// mediaLock waits for transactions that attach the file, and makes any later ones wait. See
// attachmentInsert and mediaHeld in publishing/post/store.
var mediaLock = `-- publishing.MediaLock
select ` + db.MediaColumns + ` from media m where m.id = $1 and m.deleted_at is null for update`

// LockMedium locks and returns a file, or returns nothing if the file does not exist. Until the
// transaction ends, no other transaction can attach the file, and no upload can start sharing its
// bytes. LockMedium returns any Postgres error.
func LockMedium(ctx context.Context, tx *db.Tx, medium publishing.MediaID) (found []publishing.Medium, err error) {
	b := &pgx.Batch{}
	b.Queue(mediaShare, tx.Org.String())
	b.Queue(mediaLock, medium).Query(db.Into(&found, db.ScanMedium))
	return found, tx.SendBatch(ctx, b).Close()
}

const mediaDelete = `-- publishing.MediaDelete
update media m set deleted_at = now() where m.id = $1 and not exists (
  select from attachment t
  join part a on a.org_id = t.org_id and a.id = t.part_id
  join post p on p.org_id = a.org_id and p.id = a.post_id
  where t.org_id = m.org_id and t.media_id = m.id and (
    p.state in ('PUBLISHING', 'UNKNOWN') or p.state in ('QUEUE', 'WAITING') and p.deleted_at is null
    or exists (select from series s where s.org_id = p.org_id and s.template = p.group_id and s.stopped_at is null)))`

// DeleteMedium marks a file as deleted. The caller must have locked the file with LockMedium. If
// the file belongs to the template of a running series, or to a post that is scheduled, is being
// sent or has an unknown outcome, DeleteMedium changes nothing and returns false. It returns any
// Postgres error.
func DeleteMedium(ctx context.Context, tx *db.Tx, medium publishing.MediaID) (bool, error) {
	tag, err := tx.Exec(ctx, mediaDelete, medium)
	return tag.RowsAffected() == 1, err
}

const mediaSharing = `-- publishing.MediaSharing
select exists (select from media where org_id = $1 and blob = $2 and deleted_at is null and size > 0)`

// IsBlobUsed reports whether any of the organization's files, other than deleted ones, uses the
// blob. It returns any Postgres error.
func IsBlobUsed(ctx context.Context, tx *db.Tx, blob string) (used bool, err error) {
	return used, tx.QueryRow(ctx, mediaSharing, tx.Org, blob).Scan(&used)
}

const (
	orgKnown = `-- publishing.OrgKnown
select exists (select from organization where id = $1)`

	// mediaNewest sorts by id, because ids are ordered by creation time.
	mediaNewest = `-- publishing.MediaNewest
select greatest(
  (select created_at from media where org_id = $1 and deleted_at is null and size > 0 order by id desc limit 1),
  (select created_at from media where org_id = $1 and deleted_at is not null order by id desc limit 1))`

	blobsOfMedia = `-- publishing.BlobsOfMedia
select distinct org_id || '/' || blob from media
where org_id = $1 and blob = any ($2) and deleted_at is null and size > 0`

	blobsOfPictures = `-- publishing.BlobsOfPictures
select d.blob_key from derived_picture d join media m on m.org_id = d.org_id and m.id = d.media_id
where d.org_id = $1 and m.key = any ($2) and m.deleted_at is null and d.blob_key is not null`
)

// BlobUse describes which of an organization's blobs the database refers to.
type BlobUse struct {
	// Known is false if the organization is not in the database.
	Known bool
	// Newest is when the row of the newest file was inserted, or zero if there are no files. A
	// deleted file counts as long as it has a row.
	Newest time.Time
	// Used holds the blob keys that rows refer to.
	Used map[string]bool
}

// UsedBlobs returns the blob keys that an organization's rows refer to. It considers only files
// whose blob is one of the given keys, and pictures derived from files with one of these keys. It
// returns pg.ErrOrgBusy or a Postgres error.
func UsedBlobs(ctx context.Context, d *db.DB, org tenancy.OrgID, keys []string) (out BlobUse, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		out = BlobUse{Used: map[string]bool{}}
		var newest *time.Time
		b.Queue(orgKnown, org).QueryRow(func(row pgx.Row) error { return row.Scan(&out.Known) })
		b.Queue(mediaNewest, org).QueryRow(func(row pgx.Row) error {
			err := row.Scan(&newest)
			if newest != nil {
				out.Newest = *newest
			}
			return err
		})
		for _, sql := range []string{blobsOfMedia, blobsOfPictures} {
			b.Queue(sql, org, keys).Query(db.Each(pgx.RowTo[string], func(key string) { out.Used[key] = true }))
		}
	})
	return out, err
}

// Once a file's row is deleted, its bytes can be found only by listing the store.
const mediaForget = `-- publishing.MediaForget
delete from media x where x.org_id = $1 and x.id = any (array(
  select m.id from media m where m.org_id = $1 and m.deleted_at is not null and ` + db.Unattached + ` limit $2))`

// ForgetMedia deletes at most limit rows of deleted files that are no longer attached to any part,
// and returns how many it deleted. It returns pg.ErrOrgBusy or a Postgres error.
func ForgetMedia(ctx context.Context, d *db.DB, org tenancy.OrgID, limit int) (n int, err error) {
	err = d.WriteOrg(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(mediaForget, org, limit).Exec(func(tag pgconn.CommandTag) error {
			n = int(tag.RowsAffected())
			return nil
		})
	})
	return n, err
}
