package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
)

// FoundKey is the result of looking up an API key by its hash.
type FoundKey struct {
	Hash      []byte           `db:"hash"`
	Org       tenancy.OrgID    `db:"org_id"`
	ID        tenancy.KeyID    `db:"id"`
	CreatedBy tenancy.PersonID `db:"created_by"`
	// EndsAt is when the key stops working, or nil if it never does.
	EndsAt *time.Time `db:"ends_at"`
	// Suspended means that the operator has suspended the organization.
	Suspended bool `db:"suspended"`
}

// Of returns the organization that the key belongs to.
func (k FoundKey) Of() tenancy.OrgID { return k.Org }

const keysByHash = `-- tenancy.KeysByHash
with found as (
  select k.hash, k.org_id, k.id, k.created_by, k.used_at, least(k.expires_at, k.overlap_until) ends_at, o.suspended_at
  from api_key k join organization o on o.id = k.org_id and o.deleted_at is null where k.hash = any ($1)
), due as (
  select k.org_id, k.id from api_key k join found f on f.org_id = k.org_id and f.id = k.id
  where k.used_at is null or k.used_at < $2::timestamptz - interval '1 minute' for update of k skip locked
), used as (
  update api_key k set used_at = $2 from due d where d.org_id = k.org_id and d.id = k.id
)
select hash, org_id, id, created_by, ends_at, suspended_at is not null suspended from found`

// KeysByHash returns the keys with the given hashes, keyed by hash, and records that they were
// used. The map has no entry for a hash that matches no key. Keys of organizations that are marked
// for deletion are omitted.
//
// KeysByHash uses a separate connection pool (pg.Keys), so that other statements cannot delay API
// key authentication.
func KeysByHash(ctx context.Context, d *db.DB, hashes [][]byte, now time.Time) (map[string]FoundKey, error) {
	keys := map[string]FoundKey{}
	err := d.WriteRole(ctx, pg.Keys, func(b *pgx.Batch) {
		b.Queue(keysByHash, hashes, now).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToStructByName[FoundKey])
			for _, k := range found {
				keys[string(k.Hash)] = k
			}
			return err
		})
	})
	return keys, err
}
