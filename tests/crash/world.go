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
	deadline = 5 * time.Second // REQUEST_DEADLINE
	password = "correct horse battery"
	latency  = 40 // of the platform, in milliseconds
	lateGap  = 200 * time.Millisecond
	permits  = 36 // posts that all nodes together send at the same time: what hangs must be able to take them all
)

type organization struct{ name, email, key string }

// world is everything of a run: the database, the platform, the nodes and what was made in them.
type world struct {
	s          settings
	dir        string
	out        io.Writer
	binary     string
	server     *local.Server
	platform   site // that most posts go to; its calls are slow and refused at times
	aside      site // that the drills use, so that nothing but they disturbs it
	nodes      []*node
	ledger     *ledger
	client     *client
	channels   []channel
	stage      map[string][]int  // channels of the drills by their kind, as indices
	hanging    []*faultnet.Proxy // machines before the platform aside that stop to answer
	primary    *faultnet.Proxy   // before Postgres, for the nodes
	database   string            // address of the database behind it
	twice      int               // posts that two nodes had in hand
	redis      *miniredis.Miniredis
	door       *faultnet.Proxy // before Redis
	network    sync.Mutex      // of the faults that last while others go on, one at a time
	background errgroup.Group
	stops      []func() error
}

// build makes the binary with the points in it, and with a known fault when one is asked for.
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

// newWorld brings everything up but posts.
func newWorld(ctx context.Context, s settings, dir string, out io.Writer) (w *world, err error) {
	w = &world{s: s, dir: dir, out: out}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close())
		}
	}()
	if w.ledger, err = openLedger(filepath.Join(dir, "ledger.jsonl")); err != nil {
		return w, err
	}
	w.stops = append(w.stops, w.ledger.close)
	if w.binary, err = build(ctx, dir, s.Mutant); err != nil {
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

func (w *world) startPostgres(ctx context.Context) (err error) {
	quiet := slog.New(slog.DiscardHandler)
	w.server, err = local.Start(ctx, local.Config{Dir: filepath.Join(w.dir, "postgres"), Log: quiet, Durable: true, Extra: []string{"max_connections=200"}})
	if err != nil {
		return err
	}
	w.stops = append(w.stops, func() error { return w.server.Stop(context.WithoutCancel(ctx)) })
	if err := migrations.Migrate(ctx, migrations.Config{URL: w.server.URL("crier"), RolePrefix: "crier"}, quiet); err != nil {
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

func (w *world) startNodes(ctx context.Context) error {
	key, err := secret.GenerateKey()
	if err != nil {
		return err
	}
	allowed := []string{w.aside.address}
	for _, g := range w.hanging {
		allowed = append(allowed, g.Address)
	}
	environment := []string{
		"PATH=" + "/usr/bin:/bin", "DATABASE_URL=" + w.database, "ENCRYPTION_KEYS=" + key, "SANDBOX_URL=" + w.platform.url(), "OUTBOUND_ALLOW=" + strings.Join(allowed, ","), "LOG_FORMAT=json", "LOG_LEVEL=warn",
		"DATABASE_MAX_CONNS=16", "API_LIMIT=1000000", "APP_LIMIT=1000000", "LEASE=" + lease.String(), "BEAT=600ms", "SWEEP=1s", "REQUEST_DEADLINE=" + deadline.String(), "SETTLE_TIME=1s",
		"UNKNOWN_FOR=" + w.s.Window.String(), "BACKOFF_FOR=" + w.s.Window.String(), "MAX_IN_FLIGHT=" + strconv.Itoa(permits/w.s.Nodes), "LATE_GAP=" + lateGap.String(), "ACTOR_BUDGET=1s", "REDIS_URL=redis://" + w.door.Address, "PLATFORM_RATES=sandbox=2000/1s",
	}
	for i := range w.s.Nodes {
		n, err := newNode(w.binary, filepath.Join(w.dir, fmt.Sprintf("node-%d", i+1)), environment)
		if err != nil {
			return err
		}
		w.nodes = append(w.nodes, n)
		w.stops = append(w.stops, func() error {
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

// query runs fn on a fresh superuser's connection.
func (w *world) query(ctx context.Context, fn func(*pgx.Conn) error) error {
	c, err := pgx.Connect(ctx, w.server.SuperURL("crier"))
	if err != nil {
		return err
	}
	return errors.Join(fn(c), c.Close(ctx))
}

// value reads one value past the service.
func (w *world) value(ctx context.Context, into any, sql string, args ...any) error {
	return w.query(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, sql, args...).Scan(into) })
}

// lines reads rows past the service, each as a line of the ledger.
func (w *world) lines(ctx context.Context, read pgx.RowToFunc[line], sql string, args ...any) (all []line, err error) {
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

// close ends everything in the reverse order.
func (w *world) close() (err error) {
	for i := len(w.stops) - 1; i >= 0; i-- {
		err = errors.Join(err, w.stops[i]())
	}
	w.stops = nil
	return err
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(w.out, format+"\n", args...) }
