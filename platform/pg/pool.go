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
	"github.com/jackc/pgx/v5/pgxpool"

	"crier/platform/fault"
	"crier/platform/limit"
)

// The pools of sharedRoles share MaxConns connections. The pool of each role in singleRoles has one
// connection, which is not counted in MaxConns.
var (
	sharedRoles = [...]Role{Tenant, Gate, Clock, Sender}
	singleRoles = [...]Role{Retention, Keys, Sessions}
)

const (
	applicationName = "crier"
	idleInTx        = "5s"
	maxConnIdle     = 5 * time.Minute
	// plannedConnLife is the minimum lifetime of connections on which Plan has planned statements;
	// see poolConfig.
	plannedConnLife = 24 * time.Hour
	// connectTimeout limits how long connecting may take, because a server that hangs accepts
	// connections but never responds.
	connectTimeout = 5 * time.Second

	// answerMargin is how much longer than the server's statement_timeout a client waits for a
	// response.
	answerMargin = 3 * time.Second
	// cancelWait is how long a client waits, after its deadline, for the server to confirm the
	// cancellation.
	cancelWait = time.Second

	// maxOrgWaiters is how many of an organization's calls may wait for connections. Any further
	// call immediately fails with ErrOrgBusy.
	maxOrgWaiters = 128
)

// statementTimeout returns how long a statement in the role may run before the server cancels it.
func statementTimeout(r Role) time.Duration {
	switch r {
	case Tenant:
		return 30 * time.Second
	case Gate, Keys, Sessions:
		return 5 * time.Second
	case Retention:
		return 3 * time.Second // a batch that takes longer must be made smaller
	default:
		return 10 * time.Second
	}
}

// lockTimeout returns how long a statement in the role waits for a lock before it fails with
// SQLSTATE 55P03.
func lockTimeout(r Role) string {
	switch r {
	case Clock, Retention:
		return "250ms"
	case Gate:
		return "100ms" // see retryPolicyOf
	}
	return "2s"
}

// DB holds the pools of one database, one per Role. It is safe for concurrent use.
type DB struct {
	cfg   Config
	pools map[Role]*pgxpool.Pool
	// orgs limits the Tenant pool's connections per organization.
	orgs     *limit.PerKey[uuid.UUID]
	planning sync.Mutex // held by Plan
	closed   atomic.Bool
}

// Open returns the pools without connecting; see Ping. It returns fault.Invalid if the
// configuration is invalid.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fault.New(fault.Invalid, "pg.Open", err.Error())
	}
	cfg = cfg.withDefaults()
	orgs := limit.NewBounded[uuid.UUID](orgConns(cfg.MaxConns), maxOrgWaiters)
	d := &DB{cfg: cfg, pools: map[Role]*pgxpool.Pool{}, orgs: orgs}
	for _, r := range slices.Concat(sharedRoles[:], singleRoles[:]) {
		pc, err := d.poolConfig(r)
		if err != nil {
			d.Close()
			return nil, err
		}
		pool, err := pgxpool.NewWithConfig(ctx, pc)
		if err != nil {
			d.Close()
			return nil, fault.Wrap(fault.Invalid, "pg.Open", "The database pool cannot be created.", err)
		}
		d.pools[r] = pool
	}
	return d, nil
}

func (d *DB) poolConfig(r Role) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(d.cfg.URL)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "pg.Open", "DATABASE_URL cannot be read.", err)
	}
	pc.MinConns, pc.MinIdleConns, pc.MaxConns = 0, 0, poolSize(r, d.cfg.MaxConns)
	pc.MaxConnIdleTime, pc.PingTimeout = maxConnIdle, connectTimeout
	if r == Clock || r == Sender {
		// Connections that are opened after a call to Plan have no planned statements. Connections
		// in these two pools are therefore long-lived, whether busy or idle, and expire one by one.
		// A connection that breaks, for example in a failover, is dropped on its next use.
		pc.MaxConnLifetime, pc.MaxConnLifetimeJitter = plannedConnLife, plannedConnLife
		pc.MaxConnIdleTime = plannedConnLife + plannedConnLife
	}
	setConnectTimeout(pc.ConnConfig)
	cancelAtDeadline(pc.ConnConfig)
	pc.PrepareConn = isReusable
	pc.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		uuidCodec{}.register(c.TypeMap())
		return nil
	}
	params := pc.ConnConfig.RuntimeParams
	params["application_name"] = applicationName
	if d.behindPooler() {
		// A transaction pooler rejects other startup parameters and loses named statements.
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		return pc, nil
	}
	params["role"] = d.cfg.roleName(r)
	maps.Copy(params, settings(r))
	return pc, nil
}

// settings returns the role's session parameters. Behind a transaction pooler, they are set in each
// transaction.
func settings(r Role) map[string]string {
	out := map[string]string{
		"lock_timeout":                        lockTimeout(r),
		"statement_timeout":                   strconv.FormatInt(statementTimeout(r).Milliseconds(), 10) + "ms",
		"idle_in_transaction_session_timeout": idleInTx,
	}
	if r == Clock || r == Sender || r == Retention {
		maps.Copy(out, plannerSettings())
	}
	if r == Retention {
		out["synchronous_commit"] = "off" // a deletion lost in a crash is repeated
	}
	return out
}

// plannerSettings returns the planner settings for the scheduler's few large statements. These
// statements use cached generic plans, because planning a claim costs more than executing it.
//
// The plans use only indexes. Statistics collected in an idle hour make tables look empty and scans
// look cheap, which would slow down the next burst. The settings therefore rule out sequential and
// bitmap scans as well as hash and merge joins.
//
// The form of the statements ("x = any (array[y])") also makes the planner choose the index. Both
// the settings and this form are needed. Memoize is off because no key is looked up twice.
func plannerSettings() map[string]string {
	return map[string]string{
		"plan_cache_mode":   "force_generic_plan",
		"enable_seqscan":    "off",
		"enable_bitmapscan": "off",
		"enable_hashjoin":   "off",
		"enable_mergejoin":  "off",
		"enable_memoize":    "off",
		"jit":               "off",
	}
}

// setConnectTimeout sets connectTimeout unless the URL sets connect_timeout.
func setConnectTimeout(cc *pgx.ConnConfig) {
	if cc.ConnectTimeout == 0 {
		cc.ConnectTimeout = connectTimeout
	}
}

// poolSize returns the number of connections in the role's pool. Of total, Clock gets a quarter,
// Gate and Sender get an eighth each, and Tenant, which does nearly all the work, gets the rest.
// With minConns, the sizes are 4, 2, 2 and 8. If these pools had only one connection each, a slow
// sweep would delay every claim and every outcome, and a slow lookup would delay every sign-in.
func poolSize(r Role, total int32) int32 {
	switch r {
	case Retention, Keys, Sessions:
		return 1 // not part of total
	case Clock:
		return max(1, total/4)
	case Gate, Sender:
		return max(1, total/8)
	}
	return total - poolSize(Clock, total) - poolSize(Gate, total) - poolSize(Sender, total)
}

// orgConns returns how many of the Tenant pool's connections one organization may use at once. The
// limit is half the pool, so that an organization's slow statements never occupy the whole pool.
func orgConns(total int32) int { return max(1, int(poolSize(Tenant, total))/2) }

func (d *DB) behindPooler() bool { return d.cfg.Pooler == PoolerTransaction }

// Close waits until all borrowed connections are returned and then closes the pools. Later calls
// fail with an error for which IsAway returns true.
func (d *DB) Close() {
	d.closed.Store(true)
	for _, p := range d.pools {
		p.Close()
	}
}

// Ping executes a statement in every role that has a pool. It returns fault.Unavailable if a
// statement fails. If the migrations have not created a role, the message names the role.
func (d *DB) Ping(ctx context.Context) error {
	for _, r := range slices.Concat(sharedRoles[:], singleRoles[:]) {
		if err := d.InRole(ctx, r, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "-- pg.Ping\nselect 1")
			return err
		}); err != nil {
			return d.unreachable("pg.Ping", r, err)
		}
	}
	return nil
}

// Pool returns the role's pool, for work that DB's methods do not cover. It returns nil if the role
// has no pool. Behind a transaction pooler, the pool's connections do not have the role; use Read,
// InOrg, InRole, WriteOrg and WriteRole instead.
func (d *DB) Pool(r Role) *pgxpool.Pool { return d.pools[r] }

// Direct opens a connection that bypasses any pooler, for session locks and LISTEN. If r is Login,
// the connection keeps the role it logged in with. The caller must close the connection. Direct
// returns fault.Unavailable if it cannot connect, and fault.Invalid if the URL cannot be parsed.
func (d *DB) Direct(ctx context.Context, r Role) (*pgx.Conn, error) {
	cc, err := pgx.ParseConfig(d.cfg.Direct())
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "pg.Direct", "DATABASE_DIRECT_URL cannot be read.", err)
	}
	setConnectTimeout(cc)
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

// DirectPool returns a pool that bypasses any pooler and has at most conns connections in the role.
// It is for libraries that need a separate pool, for example to LISTEN. The pool opens its first
// connection on first use, and the caller must close the pool. DirectPool returns fault.Invalid if
// the URL cannot be parsed.
func (d *DB) DirectPool(ctx context.Context, r Role, conns int32) (*pgxpool.Pool, error) {
	pc, err := pgxpool.ParseConfig(d.cfg.Direct())
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "pg.DirectPool", "DATABASE_DIRECT_URL cannot be read.", err)
	}
	pc.MinConns, pc.MinIdleConns, pc.MaxConns = 0, 0, conns
	pc.MaxConnIdleTime, pc.PingTimeout = maxConnIdle, connectTimeout
	setConnectTimeout(pc.ConnConfig)
	params := pc.ConnConfig.RuntimeParams
	params["application_name"], params["role"] = applicationName, d.cfg.roleName(r)
	maps.Copy(params, settings(r))
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fault.Wrap(fault.Invalid, "pg.DirectPool", "The database pool cannot be created.", err)
	}
	return pool, nil
}

// unreachable returns fault.Unavailable. Its message distinguishes a missing role from an
// unreachable server.
func (d *DB) unreachable(op string, r Role, err error) error {
	message := "The database cannot be reached."
	if pe := (*pgconn.PgError)(nil); errors.As(err, &pe) && strings.Contains(pe.Message, `"`+d.cfg.roleName(r)+`"`) {
		message = "The database role " + d.cfg.roleName(r) + " cannot be entered: run the migrations first."
	}
	f := fault.Wrap(fault.Unavailable, op, message, err)
	f.RetryAfter = RetryAfter
	return f
}
