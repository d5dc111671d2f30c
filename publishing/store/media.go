package store

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// mediaColumns are those of publishing.Medium, in the order of its fields.
const mediaColumns = `m.id, m.org_id, m.key, m.name, m.ext, m.content_type, m.size, m.width, m.height, m.original_name, m.created_at`

// attached is a medium of a part.
type attached struct {
	Part publishing.PartID
	Alt  string
	publishing.Medium
}

// storedBytes has the condition of the index media_org, which holds what it reads.
const storedBytes = `select coalesce(sum(size), 0)::bigint from media where org_id = $1 and deleted_at is null and size > 0`

const mediaStored = `-- publishing.MediaStored
` + storedBytes

// Stored is how many bytes the files of an organization have.
func (s *Store) Stored(ctx context.Context, org tenancy.OrgID) (bytes int64, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(mediaStored, org).QueryRow(func(row pgx.Row) error { return row.Scan(&bytes) })
	})
	return bytes, err
}

const mediaInsert = `-- publishing.MediaInsert
insert into media (org_id, id, key, name, ext, content_type, size, width, height, original_name, created_at)
select $1, $2, $3, $4, $5, $6, $7::bigint, $8, $9, $10, $11
where $12::bigint = 0 or (` + storedBytes + `) + $7::bigint <= $12`

// ErrStorageFull means that a file would take its organization past its limit.
var ErrStorageFull = errors.New("the storage of the organization is full")

// SaveMedium stores what is known of a file whose bytes are at rest already. It returns ErrStorageFull when the files of
// the organization would have more bytes than most (0 = no limit); one that is stored at the same time does not count.
func (s *Store) SaveMedium(ctx context.Context, m publishing.Medium, most int64) error {
	saved := false
	err := s.db.WriteOrg(ctx, m.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(mediaInsert, m.Org, m.ID, m.Key, m.Name, m.Ext, m.ContentType, m.Size, m.Width, m.Height, m.OriginalName, m.CreatedAt, most).
			Exec(func(tag pgconn.CommandTag) error { saved = tag.RowsAffected() == 1; return nil })
	})
	if err == nil && !saved {
		return ErrStorageFull
	}
	return err
}

const mediaByKey = `-- publishing.MediaByKey
select org_id, id, key, name, ext, content_type, size from media where key = $1 and deleted_at is null`

// MediumByKey finds a file by its unguessable key, whoever's it is, or pgx.ErrNoRows. Sizes in pixels are not told.
func (s *Store) MediumByKey(ctx context.Context, key string) (m publishing.Medium, err error) {
	err = s.db.WriteRole(ctx, pg.Gate, func(b *pgx.Batch) {
		b.Queue(mediaByKey, key).QueryRow(func(row pgx.Row) error {
			return row.Scan(&m.Org, &m.ID, &m.Key, &m.Name, &m.Ext, &m.ContentType, &m.Size)
		})
	})
	return m, err
}

const mediaFind = `-- publishing.MediaFind
select ` + mediaColumns + ` from media m where m.deleted_at is null and (m.id = any($1) or m.key = any($2))`

// Known is what a create refers to and what of it exists.
type Known struct {
	Channels []publishing.Channel
	Media    []publishing.Medium
}

// Lookup finds channels and media of an organization in one round trip; what does not exist is left out.
func (s *Store) Lookup(ctx context.Context, org tenancy.OrgID, channels []publishing.ChannelID, media []publishing.MediaID, keys []string) (k Known, err error) {
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(channelsByID, uuids(channels)).Query(into(&k.Channels, scanChannel))
		b.Queue(mediaFind, uuids(media), keys).Query(into(&k.Media, pgx.RowToStructByPos[publishing.Medium]))
	})
	return k, err
}
