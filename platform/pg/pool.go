package pg

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"crier/platform/fault"
	"crier/platform/limit"
)

// roles are those that share MaxConns, beside are those with a connection of their own beside it.
var (
	roles  = [...]Role{Tenant, Gate, Clock, Sender}
	beside = [...]Role{Retention, Keys}
)

const (
	applicationName = "crier"
	idleInTx        = "5s"
	connIdle        = 5 * time.Minute
	plannedLife     = 24 * time.Hour  // of the connections that Plan has planned on; see poolConfig
	connectLimit    = 5 * time.Second // a server that hangs takes connections and never answers

	// answerMargin is how much longer than the server's own statement_timeout a client waits for an answer.
	answerMargin = 3 * time.Second
	// cancelWait is how long a client waits, after its deadline, for the server to confirm that the statement was
	// cancelled.
	cancelWait = time.Second

	// waitingPerOrg is how many calls may wait for connections of one organization.
	waitingPerOrg = 128
)

// statementTimeout is how long one statement of the role may run before the server cancels it.
func statementTimeout(r Role) time.Duration {
	switch r {
	case Tenant:
		return 30 * time.Second
	case Gate, Keys:
		return 5 * time.Second
	case Retention:
		return 3 * time.Second // a batch that takes longer is too large, or one of its rows is the cause
	default:
		return 10 * time.Second
	}
}

// lockTimeout is how long a statement of the role waits for a lock before it fails with 55P03.
func lockTimeout(r Role) string {
	if r == Clock || r == Retention {
		return "250ms"
	}
	return "2s"
}

// DB is the pools of one database, one per Role. It is safe for concurrent use.
type DB struct {
	cfg      Config
	pools    map[Role]*pgxpool.Pool
	orgs     *limit.PerKey[uuid.UUID] // of the connections of the Tenant pool
	planning sync.Mutex
	closed   atomic.Bool
}

// Open makes the pools; no connection is made before the first use (see Ping). A configuration that cannot work is fault.Invalid.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	d := &DB{cfg: cfg, pools: map[Role]*pgxpool.Pool{}, orgs: limit.NewBounded[uuid.UUID](perOrg(cfg.MaxConns), waitingPerOrg)}
	for _, r := range slices.Concat(roles[:], beside[:]) {
		pc, err := d.poolConfig(r)
		if err != nil {
			d.Close()
			return nil, err
		}
		if d.pools[r], err = pgxpool.NewWithConfig(ctx, pc); err != nil {
			delete(d.pools, r)
			d.Close()
			return nil, fault.Wrap(fault.Invalid, "pg.Open", "The database pool cannot be made.", err)
		}
	}
	return d, nil
}

func (d *DB) poolConfig(r Role) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(d.cfg.URL)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "pg.Open", "DATABASE_URL cannot be read.", err)
	}
	pc.MinConns, pc.MinIdleConns, pc.MaxConns = 0, 0, share(r, d.cfg.MaxConns)
	pc.MaxConnIdleTime, pc.PingTimeout = connIdle, connectLimit
	if r == Clock || r == Sender {
		// Their few connections keep what Plan has planned, busy or idle, and are replaced one by one: nobody plans ahead
		// on a new one. One that broke, as when another server took over, is dropped when it is next used.
		pc.MaxConnLifetime, pc.MaxConnLifetimeJitter = plannedLife, plannedLife
		pc.MaxConnIdleTime = plannedLife + plannedLife
	}
	limitConnect(pc.ConnConfig)
	cancelAtDeadline(pc.ConnConfig)
	pc.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		uuids{}.register(c.TypeMap())
		return nil
	}
	params := pc.ConnConfig.RuntimeParams
	params["application_name"] = applicationName
	if d.pooled() {
		// Such a pooler refuses other start-up parameters, and named statements do not survive it.
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		return pc, nil
	}
	params["role"] = d.cfg.roleName(r)
	maps.Copy(params, settings(r))
	return pc, nil
}

// settings are the parameters of every session of the role, also of one that a transaction pooler lends.
func settings(r Role) map[string]string {
	out := map[string]string{
		"lock_timeout":                        lockTimeout(r),
		"statement_timeout":                   strconv.FormatInt(statementTimeout(r).Milliseconds(), 10) + "ms",
		"idle_in_transaction_session_timeout": idleInTx,
	}
	if r == Clock || r == Sender || r == Retention {
		maps.Copy(out, byIndex())
	}
	if r == Retention {
		out["synchronous_commit"] = "off" // a deletion that a crash undoes is done again
	}
	return out
}

// byIndex is how the scheduler's few large statements are planned: once, since planning a claim costs more than carrying
// it out, and from the ids at hand to everything else by index. Statistics of a quiet hour say that nothing is on its way
// and that scanning is cheap; a burst then pays for it. The settings keep tables from being scanned or hashed, and the
// form of the statements ("x = any (array[y])") chooses between indexes: neither does what the other does. No key is looked
// up twice, so that remembering answers would only cost.
func byIndex() map[string]string {
	return map[string]string{
		"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_bitmapscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "enable_memoize": "off", "jit": "off",
	}
}

// limitConnect bounds connecting, unless the address does so itself.
func limitConnect(cc *pgx.ConnConfig) {
	if cc.ConnectTimeout == 0 {
		cc.ConnectTimeout = connectLimit
	}
}

// cancelAtDeadline makes a statement whose context ends cancelled at the server too: a claim that nobody waits for
// must not commit later. A server that confirms nothing within cancelWait loses the connection.
func cancelAtDeadline(cc *pgx.ConnConfig) {
	cc.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: c, DeadlineDelay: cancelWait}
	}
}

// share gives a quarter to the clock, an eighth each to the gate and the sender, and the rest to tenants, who do nearly all the work.
// With minConns that is 4, 2, 2 and 8: with a single connection, one slow sweep would hold up every claim and every
// post's end behind it, and one slow look-up every sign-in.
func share(r Role, total int32) int32 {
	switch r {
	case Retention, Keys:
		return 1 // beside the total
	case Clock:
		return max(1, total/4)
	case Gate, Sender:
		return max(1, total/8)
	}
	return total - share(Clock, total) - share(Gate, total) - share(Sender, total)
}

// perOrg is how many of the tenants' connections one organization may have at once: half of them, so that its slow
// statements, however many, leave the others the rest.
func perOrg(total int32) int { return max(1, int(share(Tenant, total))/2) }

func (d *DB) pooled() bool { return d.cfg.Pooler == PoolerTransaction }

// Close waits for borrowed connections to come back and closes all.
func (d *DB) Close() {
	d.closed.Store(true)
	for _, p := range d.pools {
		p.Close()
	}
}

// Ping enters every role once. It fails as fault.Unavailable with a sentence that says what to do.
func (d *DB) Ping(ctx context.Context) error {
	for _, r := range slices.Concat(roles[:], beside[:]) {
		if err := d.InRole(ctx, r, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "-- pg.Ping\nselect 1")
			return err
		}); err != nil {
			return d.unreachable("pg.Ping", r, err)
		}
	}
	return nil
}

// Pool is the role's pool, for what the methods of DB do not cover. Behind a transaction pooler its connections
// have not entered the role: there, use Read, InOrg, InRole, WriteOrg and WriteRole only.
func (d *DB) Pool(r Role) *pgxpool.Pool { return d.pools[r] }

// Direct makes a connection of its own, past any pooler, for locks that live as long as a session and for LISTEN.
// The caller closes it. Login enters no role.
func (d *DB) Direct(ctx context.Context, r Role) (*pgx.Conn, error) {
	cc, err := pgx.ParseConfig(d.cfg.Direct())
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "pg.Direct", "DATABASE_DIRECT_URL cannot be read.", err)
	}
	limitConnect(cc)
	cc.RuntimeParams["application_name"] = applicationName
	if r != Login {
		cc.RuntimeParams["role"] = d.cfg.roleName(r)
	}
	c, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return nil, d.unreachable("pg.Direct", r, err)
	}
	return c, nil
}

// DirectPool makes a pool of at most so many connections of a role past any pooler, for a library that needs one of its
// own, such as for LISTEN. The caller closes it. No connection is made before the first use.
func (d *DB) DirectPool(ctx context.Context, r Role, conns int32) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(d.cfg.Direct())
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "pg.DirectPool", "DATABASE_DIRECT_URL cannot be read.", err)
	}
	pc.MinConns, pc.MinIdleConns, pc.MaxConns = 0, 0, conns
	pc.MaxConnIdleTime, pc.PingTimeout = connIdle, connectLimit
	limitConnect(pc.ConnConfig)
	params := pc.ConnConfig.RuntimeParams
	params["application_name"], params["role"] = applicationName, d.cfg.roleName(r)
	maps.Copy(params, settings(r))
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "pg.DirectPool", "The database pool cannot be made.", err)
	}
	return pool, nil
}

// unreachable tells a missing role from a missing server.
func (d *DB) unreachable(op string, r Role, err error) error {
	if pe := (*pgconn.PgError)(nil); errors.As(err, &pe) && strings.Contains(pe.Message, `"`+d.cfg.roleName(r)+`"`) {
		return fault.Wrap(fault.Unavailable, op, "The database role "+d.cfg.roleName(r)+" cannot be entered: run the migrations first.", err)
	}
	return fault.Wrap(fault.Unavailable, op, "The database cannot be reached.", err)
}
