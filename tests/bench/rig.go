package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/migrations"
	"crier/platform/pg/local"
	"crier/platform/secret"
)

// rig is the built service and a separate Postgres server that is as durable as in production.
type rig struct {
	opts     options
	dir      string
	server   *local.Server
	platform *platform
	keyText  string
	keyring  *secret.Keyring
	bases    int // number of databases created
}

func newRig(ctx context.Context, opts options) (r *rig, err error) {
	r = &rig{opts: opts}
	r.dir, err = os.MkdirTemp("", "crier-bench-")
	if err != nil {
		return nil, err
	}
	for _, pkg := range []string{"./apps/crier", "./tests/bench/empty"} {
		build := exec.CommandContext(ctx, "go", "build", "-o", r.path(filepath.Base(pkg)), pkg)
		if out, err := build.CombinedOutput(); err != nil {
			return r, fmt.Errorf("%s: %w: %s", pkg, err, out)
		}
	}
	r.keyText, err = secret.GenerateKey()
	if err != nil {
		return r, err
	}
	r.keyring, err = secret.NewKeyring([]string{r.keyText})
	if err != nil {
		return r, err
	}
	r.platform, err = listen(ctx, tlsOptions{})
	if err != nil {
		return r, err
	}
	r.server, err = local.Start(ctx, local.Config{
		Dir: r.path("postgres"), Log: slog.New(slog.DiscardHandler), Durable: true,
		Preload: []string{"pg_stat_statements"},
		Extra: []string{"fsync=on", "synchronous_commit=on", "max_connections=300", "shared_buffers=1GB",
			"max_wal_size=8GB", "pg_stat_statements.track=top"},
	})
	return r, err
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) close() error {
	var errs []error
	if r.platform != nil {
		errs = append(errs, r.platform.close())
	}
	if r.server != nil {
		errs = append(errs, r.server.Stop(context.Background()))
	}
	return errors.Join(append(errs, os.RemoveAll(r.dir))...)
}

// logTail returns the end of the service's log.
func (r *rig) logTail() string {
	b, err := os.ReadFile(r.path("crier.log"))
	if err != nil || len(b) == 0 {
		return "The service left no log."
	}
	return "The end of the service's log:\n" + string(b[max(0, len(b)-2000):])
}

// testDB is one migrated database.
type testDB struct {
	*rig
	name     string
	channels int // number of channels created
	// super is a superuser's connection; its statements are not counted.
	super *pgx.Conn
}

// withDB runs do on a new database and drops the database afterwards.
func (r *rig) withDB(ctx context.Context, do func(b *testDB) error) (err error) {
	r.bases++
	b := &testDB{rig: r, name: fmt.Sprintf("bench%d", r.bases)}
	admin, err := pgx.Connect(ctx, r.server.SuperURL("postgres"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, admin.Close(context.WithoutCancel(ctx))) }()
	if _, err := admin.Exec(ctx, "create database "+b.name+" owner crier"); err != nil {
		return err
	}
	defer func() {
		_, e := admin.Exec(context.WithoutCancel(ctx), "drop database "+b.name+" with (force)")
		err = errors.Join(err, e)
	}()
	if err := migrations.Migrate(ctx, migrations.Config{URL: r.server.URL(b.name), RolePrefix: "crier"},
		slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	b.super, err = pgx.Connect(ctx, r.server.SuperURL(b.name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.super.Close(context.WithoutCancel(ctx))) }()
	if _, err := b.super.Exec(ctx, "create extension pg_stat_statements"); err != nil {
		return fmt.Errorf("statements cannot be counted (postgresql-contrib): %w", err)
	}
	return do(b)
}

// statements returns the number of statements so far of all roles except the superuser.
func (b *testDB) statements(ctx context.Context) (n int64, err error) {
	return n, b.super.QueryRow(ctx, `select coalesce(sum(calls), 0)::bigint from pg_stat_statements(false)
		where dbid = (select oid from pg_database where datname = current_database()) and userid <> (select oid from pg_roles where rolname = current_user)`).Scan(&n)
}

// settle makes a newly filled database behave as if it had been running for some time: it has
// statistics and no pages left to write.
func (b *testDB) settle(ctx context.Context) error {
	for _, sql := range []string{"vacuum analyze", "checkpoint"} {
		if _, err := b.super.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// node is one run of the service.
type node struct {
	cmd     *exec.Cmd
	address string // host:port
	private string // host:port of /debug/pprof
}

// serve starts the service on the database and waits until it is ready.
func (b *testDB) serve(ctx context.Context, settings ...string) (*node, error) {
	n := &node{}
	var ports [2]string
	for i := range ports {
		ln, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		ports[i] = ln.Addr().String()
		if err := ln.Close(); err != nil {
			return nil, err
		}
	}
	n.address, n.private = ports[0], ports[1]
	_, port, err := net.SplitHostPort(n.address)
	if err != nil {
		return nil, err
	}
	n.cmd = exec.CommandContext(ctx, b.path("crier"), "serve")
	n.cmd.Env = append(append(os.Environ(), "DATABASE_URL="+b.server.URL(b.name), "CRIER_HOME="+b.path("home"),
		"ENCRYPTION_KEYS="+b.keyText, "PORT="+port,
		"LOG_LEVEL=warn", "SANDBOX_URL=http://"+b.platform.ln.Addr().String(), "METRICS_LISTEN="+n.private),
		settings...)
	// The platform's https address is not SANDBOX_URL, so it must be allowed as any other
	// platform's.
	if b.platform.roots != "" {
		n.cmd.Env = append(n.cmd.Env, "SSL_CERT_FILE="+b.platform.roots,
			"OUTBOUND_ALLOW="+b.platform.ln.Addr().String())
	}
	log, err := os.OpenFile(b.path("crier.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the service has its own descriptor
	n.cmd.Stderr = log
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	for range 600 {
		if n.get(ctx, "http://"+n.address+"/health", io.Discard) == nil {
			return n, nil
		}
		if err := wait(ctx, 50*time.Millisecond); err != nil {
			break
		}
	}
	return nil, errors.Join(errors.New("the service did not become ready"), n.stop())
}

func (n *node) get(ctx context.Context, address string, into io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return err
	}
	c := http.Client{}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	_, e := io.Copy(into, resp.Body)
	return errors.Join(err, e, resp.Body.Close())
}

// profile writes a CPU profile of the next span into a file, in the background. done waits until
// the file is written.
func (n *node) profile(ctx context.Context, span time.Duration, path string) (done func() error) {
	end := make(chan error, 1)
	go func() {
		f, err := os.Create(path)
		if err != nil {
			end <- err
			return
		}
		address := "http://" + n.private + "/debug/pprof/profile?seconds=" + strconv.Itoa(int(span.Seconds()))
		end <- errors.Join(n.get(ctx, address, f), f.Close())
	}()
	return func() error { return <-end }
}

func (n *node) stop() error {
	if err := n.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return n.cmd.Wait()
}

// kill ends the process without a shutdown.
func (n *node) kill() error {
	err := n.cmd.Process.Kill()
	_ = n.cmd.Wait() // the error only says that it was killed
	return err
}

func wait(ctx context.Context, d time.Duration) error { return clock.Sleep(ctx, d) }

func until(ctx context.Context, at time.Time) error { return wait(ctx, at.Sub(now())) }

// untilDue waits for the due time of posts. It returns an error if less than two seconds are left
// until then, because the service was not ready in time.
func untilDue(ctx context.Context, due time.Time) error {
	if late := now().Sub(due); late > -2*time.Second {
		return fmt.Errorf("the posts were due %v before the service was ready", late)
	}
	return until(ctx, due)
}

func now() time.Time { return clock.System{}.Now() }
