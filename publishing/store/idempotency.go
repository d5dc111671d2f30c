package store

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
)

const idempotencyRead = `-- publishing.IdempotencyRead
select body, request_hash from idempotency where key = $1`

// Remembered is the first answer to an idempotency key.
type Remembered struct {
	Body     json.RawMessage
	Mismatch bool // the request that is asking differs from the first
}

// Remembered finds the first answer to a key; false when there is none yet.
func (s *Store) Remembered(ctx context.Context, org tenancy.OrgID, key string, requestHash []byte) (r Remembered, found bool, err error) {
	var hash []byte
	err = s.db.Read(ctx, org.UUID(), func(b *pgx.Batch) {
		b.Queue(idempotencyRead, key).QueryRow(func(row pgx.Row) error { return row.Scan(&r.Body, &hash) })
	})
	if pg.IsNoRows(err) {
		return r, false, nil
	}
	r.Mismatch = !bytes.Equal(hash, requestHash)
	return r, err == nil, err
}

// A key that somebody is working on is locked, not waited for: no connection is held meanwhile.
const idempotencyTry = `-- publishing.IdempotencyTry
select pg_try_advisory_xact_lock(hashtextextended($1 || '/' || $2, 0))`

const idempotencyInsert = `-- publishing.IdempotencyInsert
insert into idempotency (org_id, key, request_hash, body) values ($1, $2, $3, $4) on conflict do nothing`

// Remember takes a key in this transaction. busy means that another transaction is working on it, taken that its answer
// is stored already; otherwise the key is ours.
func (t *Tx) Remember(
	ctx context.Context, key string, requestHash []byte, body json.RawMessage,
) (busy, taken bool, err error) {
	var free bool
	if err := t.tx.QueryRow(ctx, idempotencyTry, t.org.String(), key).Scan(&free); err != nil || !free {
		return !free && err == nil, false, err
	}
	tag, err := t.tx.Exec(ctx, idempotencyInsert, t.org, key, requestHash, body)
	return false, err == nil && tag.RowsAffected() == 0, err
}
