package pg

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
)

const (
	attempts   = 3
	retryPause = 20 * time.Millisecond
)

// Read runs a batch as one organization in one round trip and one implicit transaction. queue may be called a second
// time, with a new batch, when a migration changed a column's type under a cached plan: its callbacks must overwrite
// what they fill. The first error of any member is returned. Nothing in the batch may be BEGIN or COMMIT.
func (d *DB) Read(ctx context.Context, org uuid.UUID, queue func(b *pgx.Batch)) error {
	return repeat(ctx, 2, []string{codePlanChanged}, func() error {
		b := &pgx.Batch{}
		d.enterBatch(b, org)
		queue(b)
		return d.pools[Tenant].SendBatch(ctx, b).Close()
	})
}

// InOrg runs fn in a transaction of one organization and commits when it returns nil. The whole is repeated, up to three times, after a
// deadlock, a serialization failure or a lock timeout, all of which Postgres has rolled back: fn must be repeatable and touch nothing but tx.
func (d *DB) InOrg(ctx context.Context, org uuid.UUID, fn func(tx pgx.Tx) error) error {
	return d.inTx(ctx, Tenant, d.begin(Tenant)+"; set local app.org_id = '"+org.String()+"'", fn)
}

// InRole is InOrg for the roles that see across organizations. The tenant role sees nothing without an organization
// and is good for a ping only.
func (d *DB) InRole(ctx context.Context, r Role, fn func(tx pgx.Tx) error) error {
	if d.pools[r] == nil {
		return fault.New(fault.Internal, "pg.InRole", "There is no pool for the role "+string(r)+".")
	}
	return d.inTx(ctx, r, d.begin(r), fn)
}

func (d *DB) inTx(ctx context.Context, r Role, begin string, fn func(tx pgx.Tx) error) error {
	return repeat(ctx, attempts, []string{codeDeadlock, codeSerialization, codeLockTimeout}, func() error {
		return pgx.BeginTxFunc(ctx, d.pools[r], pgx.TxOptions{BeginQuery: begin}, fn)
	})
}

// begin opens a transaction in the role; the connection is already in it unless a pooler sits between.
func (d *DB) begin(r Role) string {
	if !d.pooled() {
		return "begin"
	}
	return strings.Join([]string{
		"begin", "set local role " + d.cfg.roleName(r), "set local lock_timeout = '" + lockTimeout(r) + "'",
		"set local idle_in_transaction_session_timeout = '" + idleInTx + "'",
	}, "; ")
}

func (d *DB) enterBatch(b *pgx.Batch, org uuid.UUID) {
	if !d.pooled() {
		b.Queue("select set_config('app.org_id', $1, true)", org.String())
		return
	}
	b.Queue("select set_config('role', $1, true), set_config('app.org_id', $2, true), set_config('lock_timeout', $3, true)",
		d.cfg.roleName(Tenant), org.String(), lockTimeout(Tenant))
}

// repeat runs do up to times times while it fails with one of the codes.
func repeat(ctx context.Context, times int, codes []string, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		if err == nil || n >= times || !hasCode(err, codes...) {
			return err
		}
		pause := time.NewTimer(time.Duration(n) * (retryPause + rand.N(retryPause)))
		select {
		case <-ctx.Done():
			pause.Stop()
			return err
		case <-pause.C:
		}
	}
}
