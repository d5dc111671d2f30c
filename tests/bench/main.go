// Command bench measures the service beside a floor of the same run, and prints one JSON object a line.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg/local"
	"crier/platform/schema"
	"crier/platform/secret"
)

func main() {
	organizations := flag.Int("organizations", 1000, "organizations in the database")
	span := flag.Duration("span", time.Minute, "how long to watch")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := idle(ctx, *organizations, *span); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// idle measures memory, processor time and statements of `crier serve` when nothing happens, beside an empty Fiber program.
func idle(ctx context.Context, organizations int, span time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "crier-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, pkg := range []string{"./apps/crier", "./tests/bench/empty"} {
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, filepath.Base(pkg)), pkg).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", pkg, err, out)
		}
	}
	server, err := local.Start(ctx, local.Config{Dir: filepath.Join(dir, "postgres"), Log: slog.New(slog.DiscardHandler), Durable: true, Preload: []string{"pg_stat_statements"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	if err := schema.Migrate(ctx, schema.Config{URL: server.URL("crier"), RolePrefix: "crier"}, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	super, err := pgx.Connect(ctx, server.SuperURL("crier"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, super.Close(context.WithoutCancel(ctx))) }()
	if _, err := super.Exec(ctx, `create extension if not exists pg_stat_statements; insert into organization (id, name) select gen_random_uuid(), 'Organization ' || n from generate_series(1, `+strconv.Itoa(organizations)+`) n`); err != nil {
		return err
	}
	key, err := secret.GenerateKey()
	if err != nil {
		return err
	}
	crier, err := start(ctx, filepath.Join(dir, "crier"), []string{"serve"}, "DATABASE_URL="+server.URL("crier"), "CRIER_HOME="+filepath.Join(dir, "home"), "ENCRYPTION_KEYS="+key, "PORT=0", "LOG_LEVEL=warn")
	if err != nil {
		return err
	}
	defer crier.stop()
	floor, err := start(ctx, filepath.Join(dir, "empty"), []string{"127.0.0.1:0"})
	if err != nil {
		return err
	}
	defer floor.stop()
	if err := wait(ctx, 10*time.Second); err != nil {
		return err
	}
	const calls = `select coalesce(sum(calls), 0)::bigint from pg_stat_statements where dbid = (select oid from pg_database where datname = 'crier') and query !~ 'pg_stat_statements'`
	var before, after int64
	oursBefore, floorBefore := crier.usage(), floor.usage()
	if err := super.QueryRow(ctx, calls).Scan(&before); err != nil {
		return err
	}
	if err := wait(ctx, span); err != nil {
		return err
	}
	if err := super.QueryRow(ctx, calls).Scan(&after); err != nil {
		return err
	}
	ours, bare := crier.usage(), floor.usage()
	cpu := func(a, b usage) float64 { return 100 * (b.cpu - a.cpu).Seconds() / span.Seconds() }
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"bench": "idle", "organizations": organizations, "unit": "MB", "ours": ours.rss, "floor": bare.rss, "ratio": ours.rss / bare.rss,
		"cpuPercent": cpu(oursBefore, ours), "floorCpuPercent": cpu(floorBefore, bare), "statementsPerSecond": float64(after-before) / span.Seconds(), "spanSeconds": span.Seconds(),
	})
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type process struct{ cmd *exec.Cmd }

func start(ctx context.Context, path string, args []string, environment ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), environment...)
	cmd.Stderr = os.Stderr
	return &process{cmd}, cmd.Start()
}

func (p *process) stop() {
	_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended already
	_ = p.cmd.Wait()                       // its exit code says nothing here
}

// usage is what a process has used so far.
type usage struct {
	rss float64 // MB
	cpu time.Duration
}

// usage reads /proc; all zero when the process is gone.
func (p *process) usage() (u usage) {
	base := "/proc/" + strconv.Itoa(p.cmd.Process.Pid)
	stat, err := os.ReadFile(base + "/stat")
	if err != nil {
		return u
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	ticks := func(i int) time.Duration {
		n, _ := strconv.ParseInt(fields[i], 10, 64) // the kernel writes numbers
		return time.Duration(n) * 10 * time.Millisecond
	}
	u.cpu = ticks(11) + ticks(12)
	pages, _ := strconv.ParseFloat(fields[21], 64) // "
	u.rss = pages * float64(os.Getpagesize()) / (1 << 20)
	return u
}
