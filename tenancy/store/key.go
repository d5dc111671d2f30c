package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
)

const keyInsert = `-- tenancy.KeyInsert
insert into api_key (org_id, id, name, prefix, hash, created_by, created_at, expires_at, rotated)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

// CreateKey inserts an API key with its hash. Rotated means that the key replaces another one.
// CreateKey returns the error of Postgres, which is a unique violation if the hash exists.
func (t *OrgTx) CreateKey(ctx context.Context, k tenancy.APIKey, hash []byte, rotated bool) error {
	_, err := exec(ctx, t.tx, keyInsert,
		t.org, k.ID, k.Name, k.Prefix, hash, k.CreatedBy, k.CreatedAt, k.ExpiresAt, rotated)
	return err
}

// keyColumns are the columns of keyRow, of api_key k and its creator p.
const keyColumns = `k.org_id, k.id, k.name, k.prefix, k.created_by, coalesce(p.email, '') email, k.created_at, k.used_at,
k.expires_at, k.overlap_until, k.rotated, k.hash`

// keyWorks is the condition that a key has not ended at the time of the parameter $1.
const keyWorks = `coalesce(least(k.expires_at, k.overlap_until) > $1, true)`

type keyRow struct {
	Org       tenancy.OrgID    `db:"org_id"`
	ID        tenancy.KeyID    `db:"id"`
	Name      string           `db:"name"`
	Prefix    string           `db:"prefix"`
	CreatedBy tenancy.PersonID `db:"created_by"`
	Email     string           `db:"email"`
	CreatedAt time.Time        `db:"created_at"`
	UsedAt    *time.Time       `db:"used_at"`
	ExpiresAt *time.Time       `db:"expires_at"`
	Overlap   *time.Time       `db:"overlap_until"`
	Rotated   bool             `db:"rotated"`
	Hash      []byte           `db:"hash"`
}

// Key is an API key with its hash.
type Key struct {
	tenancy.KeyOf
	// Rotated means that the key was made to replace another key.
	Rotated bool
	Hash    []byte
}

func (r keyRow) key() Key {
	k := tenancy.APIKey{
		ID: r.ID, Org: r.Org, Name: r.Name, Prefix: r.Prefix, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt,
		UsedAt: r.UsedAt, ExpiresAt: r.ExpiresAt, OverlapUntil: r.Overlap,
	}
	return Key{KeyOf: tenancy.KeyOf{APIKey: k, CreatedByEmail: r.Email}, Rotated: r.Rotated, Hash: r.Hash}
}

const keyList = `-- tenancy.KeyList
select ` + keyColumns + ` from api_key k left join person p on p.id = k.created_by
where ` + keyWorks + ` order by k.created_at desc, k.id desc limit $2`

// Keys returns at most limit keys that have not ended, the newest first.
func (t *OrgTx) Keys(ctx context.Context, now time.Time, limit int) ([]Key, error) {
	rows, err := list[keyRow](ctx, t.tx, keyList, now, limit)
	return keysOf(rows), err
}

func keysOf(rows []keyRow) []Key {
	out := make([]Key, len(rows))
	for i, r := range rows {
		out[i] = r.key()
	}
	return out
}

const keysBy = `-- tenancy.KeysBy
select ` + keyColumns + ` from api_key k left join person p on p.id = k.created_by
where k.created_by = $2 and ` + keyWorks + ` order by k.created_at, k.id for update of k`

// KeysBy returns the keys made by a person that have not ended, the oldest first, and locks them
// until the end of the transaction.
func (t *OrgTx) KeysBy(ctx context.Context, person tenancy.PersonID, now time.Time) ([]Key, error) {
	rows, err := list[keyRow](ctx, t.tx, keysBy, now, person)
	return keysOf(rows), err
}

const keysDeleteBy = `-- tenancy.KeysDeleteBy
delete from api_key where created_by = $1 returning pg_notify('` + revocationChannel + `', encode(hash, 'hex'))`

// DeleteKeysBy deletes the keys made by a person. All processes are notified.
func (t *OrgTx) DeleteKeysBy(ctx context.Context, person tenancy.PersonID) error {
	_, err := exec(ctx, t.tx, keysDeleteBy, person)
	return err
}

const keyLock = `-- tenancy.KeyLock
select ` + keyColumns + ` from api_key k left join person p on p.id = k.created_by
where k.id = $1 for update of k`

// LockKey returns a key and locks it until the end of the transaction. It returns pgx.ErrNoRows if
// the key has ended or does not exist. It reads the time after it has the lock, because the key may
// have ended during the wait.
func (t *OrgTx) LockKey(ctx context.Context, key tenancy.KeyID, now func() time.Time) (Key, error) {
	row, err := one[keyRow](ctx, t.tx, keyLock, key)
	found := row.key()
	if ends := found.Ends(); err == nil && ends != nil && !ends.After(now()) {
		return found, pgx.ErrNoRows
	}
	return found, err
}

const keyOldest = `-- tenancy.KeyOldest
select k.id from api_key k where k.overlap_until is null and ` + keyWorks + ` order by k.created_at, k.id limit 1`

// OldestKey returns the id of the oldest key that has neither ended nor been replaced, or
// pgx.ErrNoRows.
func (t *OrgTx) OldestKey(ctx context.Context, now time.Time) (key tenancy.KeyID, err error) {
	err = t.tx.QueryRow(ctx, keyOldest, now).Scan(&key)
	return key, err
}

const keyName = `-- tenancy.KeyName
update api_key set name = $2 where id = $1`

// RenameKey changes the name of a key, or returns pgx.ErrNoRows.
func (t *OrgTx) RenameKey(ctx context.Context, key tenancy.KeyID, name string) error {
	return change(ctx, t.tx, keyName, key, name)
}

const keyReplace = `-- tenancy.KeyReplace
update api_key set overlap_until = $2 where id = $1
returning pg_notify('` + revocationChannel + `', encode(hash, 'hex'))`

// ReplaceKey stores that a key has been replaced and works until a given time. It returns
// pgx.ErrNoRows if there is no such key. All processes are notified.
func (t *OrgTx) ReplaceKey(ctx context.Context, key tenancy.KeyID, until time.Time) error {
	return change(ctx, t.tx, keyReplace, key, until)
}

const keyDelete = `-- tenancy.KeyDelete
delete from api_key where id = $1 returning pg_notify('` + revocationChannel + `', encode(hash, 'hex'))`

// DeleteKey deletes a key, or returns pgx.ErrNoRows. All processes are notified.
func (t *OrgTx) DeleteKey(ctx context.Context, key tenancy.KeyID) error {
	return change(ctx, t.tx, keyDelete, key)
}

const keyCount = `-- tenancy.KeyCount
select count(*) from api_key k where ` + keyWorks

// CountKeys returns the number of keys that have not ended.
func (t *OrgTx) CountKeys(ctx context.Context, now time.Time) (n int, err error) {
	err = t.tx.QueryRow(ctx, keyCount, now).Scan(&n)
	return n, err
}

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

// FoundKey is an API key as its look-up by hash returns it.
type FoundKey struct {
	Hash      []byte           `db:"hash"`
	Org       tenancy.OrgID    `db:"org_id"`
	ID        tenancy.KeyID    `db:"id"`
	CreatedBy tenancy.PersonID `db:"created_by"`
	// EndsAt is nil for a key that does not end.
	EndsAt *time.Time `db:"ends_at"`
	// Suspended means that the operator has suspended the organization.
	Suspended bool `db:"suspended"`
}

// KeysByHash returns the keys that have one of the hashes, by their hash, and stores that they were used. It leaves out
// the keys of organizations that are to be deleted. It uses a connection pool of its own (pg.Keys), so that other
// look-ups cannot delay the authentication of API keys. A hash without a key is no error; it returns the error of
// Postgres.
func (s *Store) KeysByHash(ctx context.Context, hashes [][]byte, now time.Time) (map[string]FoundKey, error) {
	keys := map[string]FoundKey{}
	err := s.db.WriteRole(ctx, pg.Keys, func(b *pgx.Batch) {
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
