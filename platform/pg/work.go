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

// retryPolicy determines how retry repeats a call that Postgres has rolled back. times is the
// maximum number of tries, and pause is the unit of the pauses between them.
type retryPolicy struct {
	times int
	pause time.Duration
}

// retryPolicyOf returns the retryPolicy of a role. Gate has few connections, which all
// organizations share, and one organization can keep its own rows locked for a long time. In the
// Gate role, a call is therefore retried often instead of holding a connection while it waits for
// locks.
func retryPolicyOf(r Role) retryPolicy {
	if r == Gate {
		return retryPolicy{times: 10, pause: 50 * time.Millisecond}
	}
	return retryPolicy{times: 3, pause: 20 * time.Millisecond}
}

// Read executes a batch of queries as one organization, in one round trip and one implicit
// transaction. It returns the first error from any query. The batch must not contain BEGIN or
// COMMIT.
//
// Read is retried like InOrg. It is also retried if a migration changed the type of a column in a
// cached plan. The batch's callbacks must therefore overwrite the results of an earlier try.
//
// An organization's calls to Read, WriteOrg and InOrg use at most half of the Tenant pool's
// connections at once. A further call waits for one of these calls to end. It fails with ErrOrgBusy
// if the wait takes too long or too many calls are waiting.
func (d *DB) Read(ctx context.Context, org uuid.UUID, queue func(b *pgx.Batch)) error {
	return d.batch(ctx, Tenant, org, queue)
}

// WriteOrg executes a batch as one organization, in one round trip and one implicit transaction.
// Postgres commits it if every statement succeeds. Use it for one statement, or for several that do
// not depend on each other's results. The batch must not contain BEGIN or COMMIT.
//
// WriteOrg is retried like Read, so the batch's callbacks must overwrite the results of an earlier
// try. If a callback returns an error, WriteOrg returns the error but does not roll back. To check
// a result before committing, use InOrg. WriteOrg's other errors are the same as Read's.
func (d *DB) WriteOrg(ctx context.Context, org uuid.UUID, queue func(b *pgx.Batch)) error {
	return d.batch(ctx, Tenant, org, queue)
}

// WriteRole is like WriteOrg but for the roles that work across organizations. Single-statement
// reads in these roles also use WriteRole. It returns fault.Internal for a role without a pool, and
// otherwise the first error from any query.
func (d *DB) WriteRole(ctx context.Context, r Role, queue func(b *pgx.Batch)) error {
	if d.pools[r] == nil {
		return noPool("pg.WriteRole", r)
	}
	return d.batch(ctx, r, uuid.Nil, queue)
}

// Plan prepares the statements on every connection of the role's pool before they are needed. It
// borrows every connection, waiting for those in use. On each, it executes each statement once with
// NULL for all parameters. With NULL parameters, the statements must change nothing. Behind a
// transaction pooler, where no plan is kept, Plan does nothing.
//
// Plan returns fault.Internal for a role without a pool, and otherwise the first error from a
// connection or a statement.
func (d *DB) Plan(ctx context.Context, r Role, statements ...string) error {
	pool := d.pools[r]
	if pool == nil {
		return noPool("pg.Plan", r)
	}
	if d.behindPooler() {
		return nil
	}
	ctx, cancel := withDeadline(ctx, r)
	defer cancel()
	d.planning.Lock() // two callers would each wait for the other's connections
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
			return d.withCause(ctx, errors.Join(err, plans.Wait()))
		}
		all = append(all, c)
		plans.Go(func() error { return plan(ctx, c.Conn(), statements) })
	}
	return d.withCause(ctx, plans.Wait())
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

// retryableCodes are the SQLSTATE codes of errors after which Postgres has rolled everything back
// and another try may succeed.
var retryableCodes = []string{codeDeadlock, codeSerialization, codeLockTimeout, codePlanChanged}

func (d *DB) batch(ctx context.Context, r Role, org uuid.UUID, queue func(b *pgx.Batch)) error {
	return d.withCause(ctx, retry(ctx, retryPolicyOf(r), retryableCodes, func() error {
		ctx, cancel := withDeadline(ctx, r)
		defer cancel()
		leave, err := d.acquireOrg(ctx, org)
		if err != nil {
			return err
		}
		defer leave()
		b := &pgx.Batch{}
		d.queueSettings(ctx, b, r, org)
		queue(b)
		return d.pools[r].SendBatch(ctx, b).Close()
	}))
}

// InOrg runs fn in a transaction for one organization and commits if fn returns nil. If Postgres
// rolls back because of a deadlock, a serialization failure or a lock timeout, InOrg runs fn again,
// up to three times in total. fn must therefore be repeatable and change nothing outside tx. It
// must not call Read, WriteOrg or InOrg, which could wait for the connection that fn is using.
//
// InOrg returns the error from fn or from the commit, or ErrOrgBusy. If IsAway returns true for an
// error from the commit, the changes may have been stored.
func (d *DB) InOrg(ctx context.Context, org uuid.UUID, fn func(tx pgx.Tx) error) error {
	return d.inTx(ctx, Tenant, org, d.begin(Tenant)+"; "+orgSettings(ctx, org), fn)
}

// InRole is like InOrg but for the roles that work across organizations. In the Gate role, fn runs
// up to ten times. In the Tenant role, fn sees no rows, because no organization is set. InRole
// returns fault.Internal for a role without a pool, and otherwise the error from fn or from the
// commit.
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
	codes := []string{codeDeadlock, codeSerialization, codeLockTimeout}
	return d.withCause(ctx, retry(ctx, retryPolicyOf(r), codes, func() error {
		ctx, cancel := withDeadline(ctx, r)
		defer cancel()
		leave, err := d.acquireOrg(ctx, org)
		if err != nil {
			return err
		}
		defer leave()
		return pgx.BeginTxFunc(ctx, d.pools[r], pgx.TxOptions{BeginQuery: begin}, fn)
	}))
}

type orgWait struct{}

// WithOrgWait returns a context that limits how long Read, WriteOrg and InOrg wait for the
// organization's other calls. After that time, these methods fail with ErrOrgBusy. The duration of
// the statements themselves is not limited.
func WithOrgWait(ctx context.Context, most time.Duration) context.Context {
	return context.WithValue(ctx, orgWait{}, most)
}

// acquireOrg waits until the organization may use one more connection, and returns a function to
// call after using the connection. For uuid.Nil, it returns immediately. It fails with ErrOrgBusy
// if the wait takes too long or too many calls are already waiting.
func (d *DB) acquireOrg(ctx context.Context, org uuid.UUID) (leave func(), err error) {
	if org == uuid.Nil {
		return func() {}, nil
	}
	if err := ctx.Err(); err != nil { // ended before the wait, so the organization is not busy
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

// withDeadline limits how long one try of a call in the role may take, even if the caller has no
// deadline. A server that stops responding therefore cannot block the caller forever.
func withDeadline(ctx context.Context, r Role) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, statementTimeout(r)+answerMargin)
}

// withCause adds the cause to err if err does not contain it. After Close, the cause is errClosed.
// If the caller canceled the statement and the server reports only the cancellation, the cause is
// context.Canceled.
func (d *DB) withCause(ctx context.Context, err error) error {
	switch {
	case err != nil && d.closed.Load():
		return errors.Join(err, errClosed)
	case err != nil && errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, context.Canceled):
		return errors.Join(err, context.Canceled)
	}
	return err
}

// begin returns the statements that open a transaction in the role. Without a pooler, the
// connection is already in the role.
func (d *DB) begin(r Role) string {
	if !d.behindPooler() {
		return "begin"
	}
	parts := []string{"begin", "set local role " + d.cfg.roleName(r)}
	for name, value := range settings(r) {
		parts = append(parts, "set local "+name+" = '"+value+"'")
	}
	return strings.Join(parts, "; ")
}

// queueSettings queues statements that apply the role, the organization and ctx's narrowing to this
// transaction only. Without a pooler, the connection is already in the role. uuid.Nil means no
// organization.
func (d *DB) queueSettings(ctx context.Context, b *pgx.Batch, r Role, org uuid.UUID) {
	if d.behindPooler() {
		b.Queue("select set_config('role', $1, true)", d.cfg.roleName(r))
		for name, value := range settings(r) {
			b.Queue("select set_config($1, $2, true)", name, value)
		}
	}
	if org != uuid.Nil {
		queueOrg(ctx, b, org)
	}
}

// retry calls do up to most.times times, until do succeeds or fails with a code that is not in
// codes. The pause after try n is n to 2n times most.pause. If ctx ends during a pause, retry
// returns the last error from do.
func retry(ctx context.Context, most retryPolicy, codes []string, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		if err == nil || n >= most.times || !hasCode(err, codes...) {
			return err
		}
		pause := time.NewTimer(time.Duration(n) * (most.pause + rand.N(most.pause)))
		select {
		case <-ctx.Done():
			pause.Stop()
			return err
		case <-pause.C:
		}
	}
}

// EnterOrg switches the rest of a transaction to the Tenant role in one organization, with ctx's
// narrowing. If ctx has none, the transaction keeps any narrowing it already has. The transaction
// must come from InRole, or must have used EnterOrg or EnterRole before. EnterOrg returns any error
// from Postgres.
func (d *DB) EnterOrg(ctx context.Context, tx pgx.Tx, org uuid.UUID) error {
	_, err := tx.Exec(ctx, "set local role "+d.cfg.roleName(Tenant)+"; "+orgSettings(ctx, org))
	return err
}

// EnterRole switches the rest of a transaction to another role, without an organization. It returns
// any error from Postgres.
func (d *DB) EnterRole(ctx context.Context, tx pgx.Tx, r Role) error {
	_, err := tx.Exec(ctx, "set local role "+d.cfg.roleName(r)+"; set local app.org_id = ''")
	return err
}

// AsGate runs fn in the Gate role, inside a transaction that is in the Tenant role. If fn returns
// nil, the transaction returns to the Tenant role in its organization. AsGate returns any error
// from fn or Postgres. After an error, the transaction must end.
func (d *DB) AsGate(ctx context.Context, tx pgx.Tx, org uuid.UUID, fn func(q Querier) error) error {
	if err := d.EnterRole(ctx, tx, Gate); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	return d.EnterOrg(ctx, tx, org)
}
