// Package store reads and writes the rows of files. Only the parent package uses it.
package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// storedBytes counts shared bytes once. Its condition matches that of the media_blob index, which
// contains all columns that the query reads.
const storedBytes = `select coalesce(sum(stored), 0)::bigint from (
  select distinct on (blob) stored from media where org_id = $1 and deleted_at is null and size > 0 order by blob) x`

const mediaStored = `-- publishing.MediaStored
` + storedBytes

// StoredBytes returns how many bytes an organization has in the file store. Bytes that several
// files share count once. StoredBytes returns pg.ErrOrgBusy or a Postgres error.
func StoredBytes(ctx context.Context, d *db.DB, org tenancy.OrgID) (bytes int64, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(mediaStored, org).QueryRow(func(row pgx.Row) error { return row.Scan(&bytes) })
	})
	return bytes, err
}

// mediaShare serializes an organization's uploads and deletions. Otherwise, an upload could start
// sharing bytes that are about to be deleted.
const mediaShare = `-- publishing.MediaShare
select pg_advisory_xact_lock(hashtextextended('media/' || $1, 0))`

const mediaInsert = `-- publishing.MediaInsert
with same as (
  select blob from media where org_id = $1 and sha256 = $12 and deleted_at is null limit 1)
insert into media (org_id, id, key, name, ext, content_type, size, width, height, duration_ms, original_name, sha256,
  created_at, blob, stored, edits)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, coalesce((select blob from same), $15), $16::bigint, $17
where $14::bigint = 0 or exists (select from same) or (` + storedBytes + `) + $16::bigint <= $14
returning blob`

// ErrStorageFull means that a file would exceed the limit given to SaveMedium. No row was inserted,
// but the file's bytes are still stored.
var ErrStorageFull = errors.New("the organization's storage is full")

// SaveMedium inserts the row of a file whose bytes are already stored as m.Blob, and returns the
// file. If the organization already has a file with the same SHA-256 hash, the returned file uses
// that file's Blob, and no row refers to m.Blob. A file without a hash never equals another file.
//
// SaveMedium returns ErrStorageFull if the file would increase the organization's stored bytes
// beyond the limit given by most. If most is 0, there is no limit.
func SaveMedium(
	ctx context.Context, d *db.DB, m publishing.Medium, hash []byte, most int64,
) (publishing.Medium, error) {
	var blobs []string
	err := d.WriteOrg(ctx, m.Org.UUID(), func(b *pgx.Batch) { queueMedium(b, m, hash, most, &blobs) })
	return saved(m, blobs, err)
}

// AddMedium is like SaveMedium, but runs in the given transaction.
func AddMedium(
	ctx context.Context, tx *db.Tx, m publishing.Medium, hash []byte, most int64,
) (publishing.Medium, error) {
	var blobs []string
	b := &pgx.Batch{}
	queueMedium(b, m, hash, most, &blobs)
	err := tx.SendBatch(ctx, b).Close()
	return saved(m, blobs, err)
}

func queueMedium(b *pgx.Batch, m publishing.Medium, hash []byte, most int64, blobs *[]string) {
	b.Queue(mediaShare, m.Org.String())
	b.Queue(mediaInsert, m.Org, m.ID, m.Key, m.Name, m.Ext, m.ContentType, m.Size, m.Width, m.Height, m.DurationMS,
		m.OriginalName, hash, m.CreatedAt, most, m.Blob, m.Stored, m.Edits).Query(db.Into(blobs, pgx.RowTo[string]))
}

func saved(m publishing.Medium, blobs []string, err error) (publishing.Medium, error) {
	if err != nil {
		return publishing.Medium{}, err
	}
	if len(blobs) == 0 {
		return publishing.Medium{}, ErrStorageFull
	}
	m.Blob = blobs[0]
	return m, nil
}

// The role that serves files may read only these columns.
const mediaByKey = `-- publishing.MediaByKey
select org_id, id, key, blob, name, ext, content_type, size, edits from media where key = $1 and deleted_at is null`

// MediumByKey returns the file with the given unguessable key from any organization. It does not
// set Width, Height, OriginalName or CreatedAt. It returns pgx.ErrNoRows if the file does not
// exist.
func MediumByKey(ctx context.Context, d *db.DB, key string) (m publishing.Medium, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(mediaByKey, key).QueryRow(func(row pgx.Row) error {
			return row.Scan(&m.Org, &m.ID, &m.Key, &m.Blob, &m.Name, &m.Ext, &m.ContentType, &m.Size, &m.Edits)
		})
	})
	return m, err
}

// FindMedia returns an organization's files with the given ids or keys, except deleted ones. It
// returns pg.ErrOrgBusy or a Postgres error.
func FindMedia(
	ctx context.Context, d *db.DB, org tenancy.OrgID, media []publishing.MediaID, keys []string,
) (found []publishing.Medium, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(db.MediaFind, db.UUIDs(media), keys).Query(db.Into(&found, db.ScanMedium))
	})
	return found, err
}
