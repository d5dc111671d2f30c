package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing/db"
	"crier/tenancy"
)

// idempotencyDeleted reports whether any post of the stored result i has been deleted.
const idempotencyDeleted = `exists (
  select from jsonb_array_elements(i.body) x join post p on p.org_id = i.org_id and p.id = (x ->> 'post')::uuid
  where p.deleted_at is not null)`

// $2 is the maximum age in seconds; 0 means any age.
const idempotencyRead = `-- publishing.IdempotencyRead
select i.body, i.request_hash from idempotency i
where i.key = $1 and (
  $2::float8 = 0 or i.created_at > now() - make_interval(secs => $2) and not ` + idempotencyDeleted + `)`

// Remembered is the result stored under an idempotency key.
type Remembered struct {
	Body json.RawMessage
	// Mismatch is set if the current request differs from the request that stored the result.
	Mismatch bool
}

// FindRemembered returns the result stored under an idempotency key. found is false if no result is
// stored yet. If maxAge is not 0, found is also false if the result is older than maxAge or any of
// its posts has been deleted. FindRemembered returns pg.ErrOrgBusy or any Postgres error.
func FindRemembered(
	ctx context.Context, d *db.DB, org tenancy.OrgID, key string, requestHash []byte,
	maxAge time.Duration,
) (r Remembered, found bool, err error) {
	var hash []byte
	err = d.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(idempotencyRead, key, maxAge.Seconds()).QueryRow(func(row pgx.Row) error { return row.Scan(&r.Body, &hash) })
	})
	if pg.IsNoRows(err) {
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	r.Mismatch = !bytes.Equal(hash, requestHash)
	return r, true, nil
}

// idempotencyTry does not wait if another transaction is using the key, because waiting would
// occupy a connection.
const idempotencyTry = `-- publishing.IdempotencyTry
select pg_try_advisory_xact_lock(hashtextextended($1 || '/' || $2, 0))`

const idempotencyInsert = `-- publishing.IdempotencyInsert
insert into idempotency (org_id, key, request_hash, body) values ($1, $2, $3, $4) on conflict do nothing`

// idempotencyReplace is like idempotencyInsert, but replaces a result that is older than $5 seconds
// or has a deleted post.
const idempotencyReplace = `-- publishing.IdempotencyReplace
insert into idempotency as i (org_id, key, request_hash, body) values ($1, $2, $3, $4)
on conflict (org_id, key) do update set request_hash = excluded.request_hash, body = excluded.body, created_at = now()
where i.created_at <= now() - make_interval(secs => $5) or ` + idempotencyDeleted

var (
	// ErrKeyBusy means that another transaction is using the key. If that transaction commits, a
	// later call to Remember returns ErrKeyTaken. If that transaction is rolled back, a later call
	// succeeds.
	ErrKeyBusy = errors.New("idempotency key is in use")
	// ErrKeyTaken means that a result is already stored under the key. FindRemembered returns it.
	ErrKeyTaken = errors.New("idempotency key already has a response")
)

// Remember locks an idempotency key until the transaction ends, and stores the result under the
// key. The result becomes visible when the transaction commits. Remember returns ErrKeyBusy if
// another transaction is using the key, and ErrKeyTaken if a result is already stored under the
// key. If maxAge is not 0, Remember replaces a stored result that FindRemembered would not return.
func Remember(
	ctx context.Context, tx *db.Tx, key string, requestHash []byte, body json.RawMessage, maxAge time.Duration,
) error {
	var free bool
	if err := tx.QueryRow(ctx, idempotencyTry, tx.Org.String(), key).Scan(&free); err != nil {
		return err
	}
	if !free {
		return ErrKeyBusy
	}
	statement, args := idempotencyInsert, []any{tx.Org, key, requestHash, body}
	if maxAge > 0 {
		statement, args = idempotencyReplace, append(args, maxAge.Seconds())
	}
	tag, err := tx.Exec(ctx, statement, args...)
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return ErrKeyTaken
	}
	return nil
}
