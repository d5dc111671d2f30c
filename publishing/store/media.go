package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// mediumRow converts to publishing.Medium, so the two must have the same fields in the same order.
type mediumRow struct {
	ID           publishing.MediaID `db:"id"`
	Org          tenancy.OrgID      `db:"org_id"`
	Key          string             `db:"key"`
	Name         string             `db:"name"`
	Ext          string             `db:"ext"`
	ContentType  string             `db:"content_type"`
	Size         int64              `db:"size"`
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

// storedBytes has the condition of the index media_org, which has all that it reads.
const storedBytes = `select coalesce(sum(size), 0)::bigint from media
where org_id = $1 and deleted_at is null and size > 0`

const mediaStored = `-- publishing.MediaStored
` + storedBytes

// StoredBytes returns the number of bytes of the files of an organization. It returns pg.ErrOrgBusy or the error of
// Postgres.
func (s *Store) StoredBytes(ctx context.Context, org tenancy.OrgID) (bytes int64, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(mediaStored, org).QueryRow(func(row pgx.Row) error { return row.Scan(&bytes) })
	})
	return bytes, err
}

const mediaInsert = `-- publishing.MediaInsert
insert into media (org_id, id, key, name, ext, content_type, size, width, height, duration_ms, original_name, sha256,
  created_at)
select $1, $2, $3, $4, $5, $6, $7::bigint, $8, $9, $10, $11, $12, $13
where $14::bigint = 0 or (` + storedBytes + `) + $7::bigint <= $14
on conflict (org_id, sha256) where deleted_at is null and sha256 is not null do nothing`

var mediaByHash = `-- publishing.MediaByHash
select ` + mediaColumns + ` from media m
where m.org_id = $1 and m.sha256 = $2 and m.deleted_at is null`

// ErrStorageFull means that a file would take its organization over the limit that was given to SaveMedium, which has
// then inserted no row. The bytes of the file are stored all the same.
var ErrStorageFull = errors.New("the storage of the organization is full")

// SaveMedium inserts a file whose bytes are stored already, and returns it. If the organization has a file with the same
// SHA-256 it inserts nothing and returns that one, whose ID differs. It returns ErrStorageFull when the files of the
// organization would have more than most bytes in all; 0 means no limit. A file that is inserted at the same time is
// not counted. A file without a hash is never equal to another one.
func (s *Store) SaveMedium(
	ctx context.Context, m publishing.Medium, hash []byte, most int64,
) (publishing.Medium, error) {
	saved := false
	var same []publishing.Medium
	err := s.db.WriteOrg(ctx, m.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(mediaInsert, m.Org, m.ID, m.Key, m.Name, m.Ext, m.ContentType, m.Size, m.Width, m.Height, m.DurationMS,
			m.OriginalName, hash, m.CreatedAt, most).Exec(func(tag pgconn.CommandTag) error {
			saved = tag.RowsAffected() == 1
			return nil
		})
		b.Queue(mediaByHash, m.Org, hash).Query(into(&same, scanMedium))
	})
	switch {
	case err != nil:
		return publishing.Medium{}, err
	case saved:
		return m, nil
	case len(same) == 0:
		return publishing.Medium{}, ErrStorageFull
	}
	return same[0], nil
}

// The role that serves files reads these columns only.
const mediaByKey = `-- publishing.MediaByKey
select org_id, id, key, name, ext, content_type, size from media where key = $1 and deleted_at is null`

// MediumByKey returns the file of any organization with an unguessable key, or pgx.ErrNoRows. Width, Height,
// OriginalName and CreatedAt are not set.
func (s *Store) MediumByKey(ctx context.Context, key string) (m publishing.Medium, err error) {
	err = s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(mediaByKey, key).QueryRow(func(row pgx.Row) error {
			return row.Scan(&m.Org, &m.ID, &m.Key, &m.Name, &m.Ext, &m.ContentType, &m.Size)
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
func (s *Store) Lookup(
	ctx context.Context, org tenancy.OrgID, channels []publishing.ChannelID, media []publishing.MediaID, keys []string,
) (k Known, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(channelsByID, uuids(channels)).Query(into(&k.Channels, scanChannel))
		b.Queue(mediaFind, uuids(media), keys).Query(into(&k.Media, scanMedium))
	})
	return k, err
}
