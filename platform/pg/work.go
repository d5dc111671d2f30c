package pg

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"crier/platform/fault"
	"crier/platform/limit"
)

const (
	attempts   = 3
	retryPause = 20 * time.Millisecond
)

// Read runs a batch as one organization in one round trip and one implicit transaction. It is repeated as InOrg is, and
// when a migration changed a column's type under a cached plan: queue's callbacks must overwrite what they fill. The
// first error of any member is returned. Nothing in the batch may be BEGIN or COMMIT. Read, WriteOrg and InOrg of one
// organization have at most half of the tenants' connections at once; the next call waits for one of them to end, and
// fails with ErrOrgBusy when that takes too long or too many wait.
func (d *DB) Read(ctx context.Context, org uuid.UUID, queue func(b *pgx.Batch)) error {
	return d.batch(ctx, Tenant, org, attempts, repeatable, queue)
}

// WriteOrg runs a batch as one organization in one round trip and one implicit transaction, which Postgres commits when every member has
// worked: the way for a write of one statement, or of several that do not look at each other's answers. It is repeated as InOrg is, so
// queue's callbacks must overwrite what they fill. A callback's error is returned but undoes nothing: what must look before it
// commits belongs into InOrg. Nothing in the batch may be BEGIN or COMMIT.
func (d *DB) WriteOrg(ctx context.Context, org uuid.UUID, queue func(b *pgx.Batch)) error {
	return d.batch(ctx, Tenant, org, attempts, repeatable, queue)
}

// WriteRole is WriteOrg for the roles that see across organizations; it serves their reads of one statement as well.
func (d *DB) WriteRole(ctx context.Context, r Role, queue func(b *pgx.Batch)) error {
	if d.pools[r] == nil {
		return noPool("pg.WriteRole", r)
	}
	return d.batch(ctx, r, uuid.Nil, attempts, repeatable, queue)
}

// Plan has every connection that the role's pool may have plan the statements before they are needed: each is carried
// out once with NULL for all parameters, which must change nothing. It waits until nobody else uses a connection. Behind
// a transaction pooler, where no plan is kept, it does nothing.
func (d *DB) Plan(ctx context.Context, r Role, statements ...string) error {
	pool := d.pools[r]
	if pool == nil {
		return noPool("pg.Plan", r)
	}
	if d.pooled() {
		return nil
	}
	ctx, cancel := withDeadline(ctx, r)
	defer cancel()
	d.planning.Lock() // two callers would each keep connections that the other waits for
	defer d.planning.Unlock()
	all := make([]*pgxpool.Conn, 0, pool.Config().MaxConns)
	defer func() {
		for _, c := range all {
			c.Release()
		}
	}()
	var plans errgroup.Group
	for range cap(all) {
		c, err := pool.Acquire(ctx)
		if err != nil {
			return d.told(ctx, errors.Join(err, plans.Wait()))
		}
		all = append(all, c)
		plans.Go(func() error { return plan(ctx, c.Conn(), statements) })
	}
	return d.told(ctx, plans.Wait())
}

func plan(ctx context.Context, c *pgx.Conn, statements []string) error {
	for _, sql := range statements {
		described, err := c.PgConn().Prepare(ctx, "", sql, nil)
		if err != nil {
			return err
		}
		if _, err := c.Exec(ctx, sql, make([]any, len(described.ParamOIDs))...); err != nil {
			return err
		}
	}
	return nil
}

// repeatable is what Postgres has rolled back whole and what may work the next time.
var repeatable = []string{codeDeadlock, codeSerialization, codeLockTimeout, codePlanChanged}

func (d *DB) batch(ctx context.Context, r Role, org uuid.UUID, times int, codes []string, queue func(b *pgx.Batch)) error {
	return d.told(ctx, repeat(ctx, times, codes, func() error {
		ctx, cancel := withDeadline(ctx, r)
		defer cancel()
		leave, err := d.enter(ctx, org)
		if err != nil {
			return err
		}
		defer leave()
		b := &pgx.Batch{}
		d.enterBatch(b, r, org)
		queue(b)
		return d.pools[r].SendBatch(ctx, b).Close()
	}))
}

// InOrg runs fn in a transaction of one organization and commits when it returns nil. The whole is repeated, up to three times, after a
// deadlock, a serialization failure or a lock timeout, all of which Postgres has rolled back: fn must be repeatable and touch nothing but tx.
// It must not call Read, WriteOrg or InOrg, which would wait for what it has.
func (d *DB) InOrg(ctx context.Context, org uuid.UUID, fn func(tx pgx.Tx) error) error {
	return d.inTx(ctx, Tenant, org, d.begin(Tenant)+"; set local app.org_id = '"+org.String()+"'", fn)
}

// InRole is InOrg for the roles that see across organizations. The tenant role sees nothing without an organization
// and is good for a ping only.
func (d *DB) InRole(ctx context.Context, r Role, fn func(tx pgx.Tx) error) error {
	if d.pools[r] == nil {
		return noPool("pg.InRole", r)
	}
	return d.inTx(ctx, r, uuid.Nil, d.begin(r), fn)
}

func noPool(op string, r Role) error {
	return fault.New(fault.Internal, op, "There is no pool for the role "+string(r)+".")
}

func (d *DB) inTx(ctx context.Context, r Role, org uuid.UUID, begin string, fn func(tx pgx.Tx) error) error {
	return d.told(ctx, repeat(ctx, attempts, []string{codeDeadlock, codeSerialization, codeLockTimeout}, func() error {
		ctx, cancel := withDeadline(ctx, r)
		defer cancel()
		leave, err := d.enter(ctx, org)
		if err != nil {
			return err
		}
		defer leave()
		return pgx.BeginTxFunc(ctx, d.pools[r], pgx.TxOptions{BeginQuery: begin}, fn)
	}))
}

type orgWait struct{}

// WithOrgWait returns a context with which Read, WriteOrg and InOrg wait at most so long for the organization's other
// calls; then they fail with ErrOrgBusy. It does not limit how long their statements take.
func WithOrgWait(ctx context.Context, most time.Duration) context.Context {
	return context.WithValue(ctx, orgWait{}, most)
}

// enter waits until the organization (uuid.Nil = none) may have one more connection; leave gives that up. It fails with
// ErrOrgBusy when the organization has all it may have until the wait is over, or when too many wait already.
func (d *DB) enter(ctx context.Context, org uuid.UUID) (leave func(), err error) {
	if org == uuid.Nil {
		return func() {}, nil
	}
	if err := ctx.Err(); err != nil { // over before the wait: not because of the organization
		return nil, err
	}
	waiting := ctx
	if most, ok := ctx.Value(orgWait{}).(time.Duration); ok {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	leave, err = d.orgs.Enter(waiting, org)
	if errors.Is(err, limit.ErrFull) || errors.Is(err, context.DeadlineExceeded) {
		return nil, ErrOrgBusy
	}
	return leave, err
}

// withDeadline bounds one round trip of the role, so that a server that no longer answers holds nobody: not even a
// caller without a deadline.
func withDeadline(ctx context.Context, r Role) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, statementTimeout(r)+answerMargin)
}

// told adds to an error what it does not say itself: that the pools are closed, or that the caller cancelled the
// statement, which is then cancelled at the server.
func (d *DB) told(ctx context.Context, err error) error {
	switch {
	case err != nil && d.closed.Load():
		return errors.Join(err, errClosed)
	case err != nil && errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, context.Canceled):
		return errors.Join(err, context.Canceled)
	}
	return err
}

// begin opens a transaction in the role; the connection is already in it unless a pooler sits between.
func (d *DB) begin(r Role) string {
	if !d.pooled() {
		return "begin"
	}
	parts := []string{"begin", "set local role " + d.cfg.roleName(r)}
	for name, value := range settings(r) {
		parts = append(parts, "set local "+name+" = '"+value+"'")
	}
	return strings.Join(parts, "; ")
}

// enterBatch begins the batch with what makes it the role's and the organization's (uuid.Nil = none), for this transaction only.
// The connection is in the role already unless a pooler sits between, so a role alone costs nothing there.
func (d *DB) enterBatch(b *pgx.Batch, r Role, org uuid.UUID) {
	if d.pooled() {
		b.Queue("select set_config('role', $1, true)", d.cfg.roleName(r))
		for name, value := range settings(r) {
			b.Queue("select set_config($1, $2, true)", name, value)
		}
	}
	if org != uuid.Nil {
		b.Queue("select set_config('app.org_id', $1, true)", org.String())
	}
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
