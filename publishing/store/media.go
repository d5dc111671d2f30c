package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// mediumRow converts to publishing.Medium, so the two must have the same fields in the same order.
type mediumRow struct {
	ID           publishing.MediaID `db:"id"`
	Org          tenancy.OrgID      `db:"org_id"`
	Key          string             `db:"key"`
	Blob         string             `db:"blob"`
	Name         string             `db:"name"`
	Ext          string             `db:"ext"`
	ContentType  string             `db:"content_type"`
	Size         int64              `db:"size"`
	Stored       int64              `db:"stored"`
	Edits        []byte             `db:"edits"`
	Width        int                `db:"width"`
	Height       int                `db:"height"`
	DurationMS   int64              `db:"duration_ms"`
	OriginalName string             `db:"original_name"`
	Alt          string             `db:"alt_text"`
	CreatedAt    time.Time          `db:"created_at"`
}

var mediaColumns = columns[mediumRow]("m")

func (r mediumRow) medium() publishing.Medium { return publishing.Medium(r) }

func scanMedium(row pgx.CollectableRow) (publishing.Medium, error) {
	r, err := pgx.RowToStructByName[mediumRow](row)
	return r.medium(), err
}

type attachmentRow struct {
	Part    publishing.PartID `db:"part_id"`
	PostAlt string            `db:"alt"`
	mediumRow
}

var attachmentColumns = "t.part_id, t.alt, " + mediaColumns

// storedBytes counts shared bytes once. It uses the condition of the index media_blob, which has
// every column that it reads.
const storedBytes = `select coalesce(sum(stored), 0)::bigint from (
  select distinct on (blob) stored from media where org_id = $1 and deleted_at is null and size > 0 order by blob) x`

const mediaStored = `-- publishing.MediaStored
` + storedBytes

// StoredBytes returns the number of bytes that an organization has in the file store: files with the same bytes count
// once. It returns pg.ErrOrgBusy or the error of
// Postgres.
func StoredBytes(ctx context.Context, d *Store, org tenancy.OrgID) (bytes int64, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(mediaStored, org).QueryRow(func(row pgx.Row) error { return row.Scan(&bytes) })
	})
	return bytes, err
}

// mediaShare serializes the uploads and deletions of an organization, so that no upload starts to
// share bytes that are about to be deleted.
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

// ErrStorageFull means that a file would take its organization over the limit that was given to SaveMedium, which has
// then inserted no row. The bytes of the file are stored all the same.
var ErrStorageFull = errors.New("the storage of the organization is full")

// SaveMedium inserts a file whose bytes are stored already, as m.Blob, and returns it. If the
// organization has a file with the same SHA-256, the returned file has that file's Blob, and no row
// names the given Blob. It returns ErrStorageFull when the organization would have more than most
// bytes in the file store; 0 means no limit. A file without a hash never equals another file.
func SaveMedium(
	ctx context.Context, d *Store, m publishing.Medium, hash []byte, most int64,
) (publishing.Medium, error) {
	var blobs []string
	err := d.WriteOrg(ctx, m.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(mediaShare, m.Org.String())
		b.Queue(mediaInsert, m.Org, m.ID, m.Key, m.Name, m.Ext, m.ContentType, m.Size, m.Width, m.Height, m.DurationMS,
			m.OriginalName, hash, m.CreatedAt, most, m.Blob, m.Stored, m.Edits).Query(into(&blobs, pgx.RowTo[string]))
	})
	if err != nil {
		return publishing.Medium{}, err
	}
	if len(blobs) == 0 {
		return publishing.Medium{}, ErrStorageFull
	}
	m.Blob = blobs[0]
	return m, nil
}

// The role that serves files reads these columns only.
const mediaByKey = `-- publishing.MediaByKey
select org_id, id, key, blob, name, ext, content_type, size, edits from media where key = $1 and deleted_at is null`

// MediumByKey returns the file of any organization with an unguessable key, or pgx.ErrNoRows. Width, Height,
// OriginalName and CreatedAt are not set.
func MediumByKey(ctx context.Context, d *Store, key string) (m publishing.Medium, err error) {
	err = d.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(mediaByKey, key).QueryRow(func(row pgx.Row) error {
			return row.Scan(&m.Org, &m.ID, &m.Key, &m.Blob, &m.Name, &m.Ext, &m.ContentType, &m.Size, &m.Edits)
		})
	})
	return m, err
}

var mediaFind = `-- publishing.MediaFind
select ` + mediaColumns + ` from media m where m.deleted_at is null and (m.id = any($1) or m.key = any($2))`

// Known are the channels and media that a create names and that exist.
type Known struct {
	Channels []publishing.Channel
	Media    []publishing.Medium
}

// Lookup returns those of the channels and media of an organization that exist, in one round trip. A medium is named by
// its id or its key. A channel or a medium that does not exist is no error; it returns pg.ErrOrgBusy or the error of
// Postgres.
func Lookup(
	ctx context.Context, d *Store, org tenancy.OrgID, channels []publishing.ChannelID, media []publishing.MediaID, keys []string,
) (k Known, err error) {
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(channelsByID, uuids(channels)).Query(into(&k.Channels, scanChannel))
		b.Queue(mediaFind, uuids(media), keys).Query(into(&k.Media, scanMedium))
	})
	return k, err
}
