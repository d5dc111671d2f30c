package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"crier/platform/migrations"
	"crier/platform/pg/local"
	"crier/platform/secret"
	"crier/tests/faultnet"
)

const (
	lease    = 3 * time.Second
	deadline = 5 * time.Second // the service's PLATFORM_TIMEOUT
	password = "correct horse battery"
	latency  = 40 // of the platform's calls, in milliseconds
	lateGap  = 200 * time.Millisecond
	// The number of posts that all nodes together send at the same time. It is low enough that the
	// hanging posts can use up all of them.
	permits = 36
)

type organization struct{ name, email, key string }

// harness is the environment of a run: the database, the platforms, the nodes and the tenants.
type harness struct {
	s      settings
	dir    string
	out    io.Writer
	binary string
	server *local.Server
	// platform receives most posts. Its calls are slow and are sometimes refused.
	platform sandbox
	// drillPlatform receives the posts of the drills, so that nothing but drills disturbs it.
	drillPlatform sandbox
	nodes         []*node
	ledger        *ledger
	client        *client
	// hashing is held while a password is hashed.
	hashing  sync.Mutex
	channels []channel
	// drillChannels maps each kind of drill to the indexes of its channels.
	drillChannels map[string][]int
	// hangProxies are the proxies in front of drillPlatform that can stop responding.
	hangProxies []*faultnet.Proxy
	// postgresProxy is the proxy between the nodes and Postgres.
	postgresProxy *faultnet.Proxy
	// database is the URL of the database behind primary.
	database string
	// claimedTwice counts posts that two nodes claimed.
	claimedTwice int
	redis        *miniredis.Miniredis
	// redisProxy is the proxy in front of Redis.
	redisProxy *faultnet.Proxy
	// network is held by a fault that lasts while other faults are injected.
	network    sync.Mutex
	background errgroup.Group
	closers    []func() error
}

// build builds the binary with failpoints, and with the mutant unless its name is "". It returns
// the path of the binary.
func build(ctx context.Context, dir, mutant string) (string, error) {
	binary := filepath.Join(dir, "crier")
	args := []string{"build", "-tags", "crash", "-o", binary}
	if mutant != "" {
		x, err := findMutant(mutant)
		if err != nil {
			return "", err
		}
		root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
		if err != nil {
			return "", fmt.Errorf("find the module: %w", err)
		}
		overlay, err := mutate(x, dir, strings.TrimSpace(string(root)))
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	if out, err := exec.CommandContext(ctx, "go", append(args, "crier/apps/crier")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the binary: %w: %s", err, out)
	}
	return binary, nil
}

// newHarness starts everything that a run needs, but creates no tenants.
func newHarness(ctx context.Context, s settings, dir string, out io.Writer) (w *harness, err error) {
	w = &harness{s: s, dir: dir, out: out}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	w.ledger, err = openLedger(filepath.Join(dir, "ledger.jsonl"))
	if err != nil {
		return w, err
	}
	w.closers = append(w.closers, w.ledger.close)
	w.binary, err = build(ctx, dir, s.Mutant)
	if err != nil {
		return w, err
	}
	if err := w.startPostgres(ctx); err != nil {
		return w, err
	}
	if err := w.startPrimary(); err != nil {
		return w, err
	}
	if err := w.startPlatforms(ctx); err != nil {
		return w, err
	}
	if err := w.startRedis(); err != nil {
		return w, err
	}
	return w, w.startNodes(ctx)
}

func (w *harness) startPostgres(ctx context.Context) (err error) {
	quiet := slog.New(slog.DiscardHandler)
	w.server, err = local.Start(ctx, local.Config{Dir: filepath.Join(w.dir, "postgres"), Log: quiet, Durable: true,
		Extra: []string{"max_connections=200"}})
	if err != nil {
		return err
	}
	w.closers = append(w.closers, func() error { return w.server.Stop(context.WithoutCancel(ctx)) })
	if err := migrations.Migrate(ctx, migrations.Config{URL: w.server.URL("crier"), RolePrefix: "crier"},
		quiet); err != nil {
		return err
	}
	if w.s.Mutant == "" {
		return nil
	}
	x, err := findMutant(w.s.Mutant)
	if err != nil || x.sql == "" {
		return err
	}
	return w.query(ctx, func(c *pgx.Conn) error { _, err := c.Exec(ctx, x.sql); return err })
}

func (w *harness) startNodes(ctx context.Context) error {
	key, err := secret.GenerateKey()
	if err != nil {
		return err
	}
	allowed := []string{w.drillPlatform.address}
	for _, g := range w.hangProxies {
		allowed = append(allowed, g.Address)
	}
	environment := []string{
		"PATH=/usr/bin:/bin", "DATABASE_URL=" + w.database, "ENCRYPTION_KEYS=" + key, "SANDBOX_URL=" + w.platform.url(),
		"OUTBOUND_ALLOW=" + strings.Join(allowed, ","), "LOG_FORMAT=json", "LOG_LEVEL=warn",
		"DATABASE_MAX_CONNS=16", "API_LIMIT=1000000", "APP_LIMIT=1000000",
		"LEASE_TTL=" + lease.String(), "HEARTBEAT_INTERVAL=600ms", "SWEEP_INTERVAL=1s",
		"PLATFORM_TIMEOUT=" + deadline.String(), "SETTLE_DELAY=1s",
		"RECONCILE_WINDOW=" + w.s.Window.String(), "RETRY_WINDOW=" + w.s.Window.String(),
		"MAX_IN_FLIGHT=" + strconv.Itoa(permits/w.s.Nodes), "CATCH_UP_INTERVAL=" + lateGap.String(), "ACTOR_TIMEOUT=1s",
		"REDIS_URL=redis://" + w.redisProxy.Address, "PLATFORM_RATES=sandbox=2000/1s",
	}
	for i := range w.s.Nodes {
		n, err := newNode(w.binary, filepath.Join(w.dir, fmt.Sprintf("node-%d", i+1)), environment)
		if err != nil {
			return err
		}
		w.nodes = append(w.nodes, n)
		w.closers = append(w.closers, func() error {
			return errors.Join(n.kill(), n.log.Close())
		})
		if w.s.Nodes > 1 {
			if err := n.join(); err != nil {
				return err
			}
		}
		if err := n.start(ctx, 0); err != nil {
			return err
		}
	}
	w.client = newClient(w.nodes, w.ledger)
	return nil
}

// query runs fn on a new superuser connection.
func (w *harness) query(ctx context.Context, fn func(*pgx.Conn) error) error {
	c, err := pgx.Connect(ctx, w.server.SuperURL("crier"))
	if err != nil {
		return err
	}
	return errors.Join(fn(c), c.Close(ctx))
}

// value reads one value directly from the database.
func (w *harness) value(ctx context.Context, into any, sql string, args ...any) error {
	return w.query(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, sql, args...).Scan(into) })
}

// lines reads rows directly from the database, each as a line of the ledger.
func (w *harness) lines(
	ctx context.Context, read pgx.RowToFunc[line], sql string, args ...any,
) (all []line, err error) {
	err = w.query(ctx, func(c *pgx.Conn) error {
		rows, err := c.Query(ctx, sql, args...)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, read)
		return err
	})
	return all, err
}

// close stops everything in reverse order. It may be called more than once.
func (w *harness) close() (err error) {
	for i := len(w.closers) - 1; i >= 0; i-- {
		err = errors.Join(err, w.closers[i]())
	}
	w.closers = nil
	return err
}

func (w *harness) logf(format string, args ...any) { fmt.Fprintf(w.out, format+"\n", args...) }
