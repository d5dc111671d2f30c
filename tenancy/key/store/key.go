// Package store contains the statements for API keys. Only tenancy/key uses it.
package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/tenancy"
	"crier/tenancy/db"
)

const keyInsert = `-- tenancy.KeyInsert
insert into api_key (org_id, id, name, prefix, hash, created_by, created_at, expires_at, rotated)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

// CreateKey inserts an API key with its hash. rotated means that RotateKey created the key.
// CreateKey returns a unique violation if a key with the same hash exists.
func CreateKey(ctx context.Context, tx *db.OrgTx, k tenancy.APIKey, hash []byte, rotated bool) error {
	_, err := db.Exec(ctx, tx, keyInsert,
		tx.Org, k.ID, k.Name, k.Prefix, hash, k.CreatedBy, k.CreatedAt, k.ExpiresAt, rotated)
	return err
}

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
	// Rotated means that RotateKey created the key.
	Rotated bool
	Hash    []byte
}

// keyColumns lists the columns of keyRow. It selects them from api_key k and its creator, person p.
const keyColumns = `k.org_id, k.id, k.name, k.prefix, k.created_by, coalesce(p.email, '') email, k.created_at, k.used_at,
k.expires_at, k.overlap_until, k.rotated, k.hash`

const keyList = `-- tenancy.KeyList
select ` + keyColumns + ` from api_key k left join person p on p.id = k.created_by
where ` + db.KeyWorks + ` order by k.created_at desc, k.id desc limit $2`

// ListKeys returns at most limit active keys, newest first.
func ListKeys(ctx context.Context, tx *db.OrgTx, now time.Time, limit int) ([]Key, error) {
	rows, err := db.List[keyRow](ctx, tx, keyList, now, limit)
	return keysOf(rows), err
}

const keysBy = `-- tenancy.KeysBy
select ` + keyColumns + ` from api_key k left join person p on p.id = k.created_by
where k.created_by = $2 and ` + db.KeyWorks + ` order by k.created_at, k.id for update of k`

// KeysBy returns the active keys that a person created, oldest first. It locks the keys until the
// end of the transaction.
func KeysBy(ctx context.Context, tx *db.OrgTx, person tenancy.PersonID, now time.Time) ([]Key, error) {
	rows, err := db.List[keyRow](ctx, tx, keysBy, now, person)
	return keysOf(rows), err
}

const keysDeleteBy = `-- tenancy.KeysDeleteBy
delete from api_key where created_by = $1 returning pg_notify('` + db.RevocationChannel + `', encode(hash, 'hex'))`

// DeleteKeysBy deletes the keys that a person created. It notifies all processes that the keys have
// been revoked.
func DeleteKeysBy(ctx context.Context, tx *db.OrgTx, person tenancy.PersonID) error {
	_, err := db.Exec(ctx, tx, keysDeleteBy, person)
	return err
}

const keyLock = `-- tenancy.KeyLock
select ` + keyColumns + ` from api_key k left join person p on p.id = k.created_by
where k.id = $1 for update of k`

// LockKey returns a key and locks it until the end of the transaction. It returns pgx.ErrNoRows if
// there is no such key or the key no longer works. It calls the now function only after it has
// acquired the lock, because the key may have stopped working during the wait.
func LockKey(ctx context.Context, tx *db.OrgTx, key tenancy.KeyID, now func() time.Time) (Key, error) {
	row, err := db.One[keyRow](ctx, tx, keyLock, key)
	found := row.key()
	if ends := found.Ends(); err == nil && ends != nil && !ends.After(now()) {
		return found, pgx.ErrNoRows
	}
	return found, err
}

const keyOldest = `-- tenancy.KeyOldest
select k.id from api_key k where k.overlap_until is null and ` + db.KeyWorks + ` order by k.created_at, k.id limit 1`

// OldestKey returns the id of the oldest active key that has not been replaced, or pgx.ErrNoRows if
// there is none.
func OldestKey(ctx context.Context, tx *db.OrgTx, now time.Time) (key tenancy.KeyID, err error) {
	err = tx.QueryRow(ctx, keyOldest, now).Scan(&key)
	return key, err
}

const keyName = `-- tenancy.KeyName
update api_key set name = $2 where id = $1`

// RenameKey changes a key's name, or returns pgx.ErrNoRows if the key does not exist.
func RenameKey(ctx context.Context, tx *db.OrgTx, key tenancy.KeyID, name string) error {
	return db.Change(ctx, tx, keyName, key, name)
}

const keyReplace = `-- tenancy.KeyReplace
update api_key set overlap_until = $2 where id = $1
returning pg_notify('` + db.RevocationChannel + `', encode(hash, 'hex'))`

// ReplaceKey records that a key has been replaced and works only until the given time. It notifies
// all processes that the key has changed. It returns pgx.ErrNoRows if the key does not exist.
func ReplaceKey(ctx context.Context, tx *db.OrgTx, key tenancy.KeyID, until time.Time) error {
	return db.Change(ctx, tx, keyReplace, key, until)
}

const keyDelete = `-- tenancy.KeyDelete
delete from api_key where id = $1 returning pg_notify('` + db.RevocationChannel + `', encode(hash, 'hex'))`

// DeleteKey deletes a key and notifies all processes that the key has been revoked. It returns
// pgx.ErrNoRows if the key does not exist.
func DeleteKey(ctx context.Context, tx *db.OrgTx, key tenancy.KeyID) error {
	return db.Change(ctx, tx, keyDelete, key)
}

const keyCount = `-- tenancy.KeyCount
select count(*) from api_key k where ` + db.KeyWorks

// CountKeys returns the number of active keys.
func CountKeys(ctx context.Context, tx *db.OrgTx, now time.Time) (n int, err error) {
	err = tx.QueryRow(ctx, keyCount, now).Scan(&n)
	return n, err
}

func keysOf(rows []keyRow) []Key {
	out := make([]Key, len(rows))
	for i, r := range rows {
		out[i] = r.key()
	}
	return out
}

func (r keyRow) key() Key {
	k := tenancy.APIKey{
		ID: r.ID, Org: r.Org, Name: r.Name, Prefix: r.Prefix, CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt,
		UsedAt: r.UsedAt, ExpiresAt: r.ExpiresAt, OverlapUntil: r.Overlap,
	}
	return Key{KeyOf: tenancy.KeyOf{APIKey: k, CreatedByEmail: r.Email}, Rotated: r.Rotated, Hash: r.Hash}
}
