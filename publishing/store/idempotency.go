package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

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

// Why a key cannot be taken.
var (
	ErrKeyBusy  = errors.New("idempotency key is being worked on")
	ErrKeyTaken = errors.New("idempotency key has an answer")
)

// Remember takes a key in this transaction. ErrKeyBusy means that another transaction is working on it, ErrKeyTaken
// that its answer is stored already.
func (t *Tx) Remember(ctx context.Context, key string, requestHash []byte, body json.RawMessage) error {
	var free bool
	if err := t.tx.QueryRow(ctx, idempotencyTry, t.org.String(), key).Scan(&free); err != nil {
		return err
	}
	if !free {
		return ErrKeyBusy
	}
	tag, err := t.tx.Exec(ctx, idempotencyInsert, t.org, key, requestHash, body)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrKeyTaken
	}
	return err
}
