package cli

import (
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/jackc/pgx/v5"

	"crier/platform/migrations"
	"crier/tests/call"
	"crier/tests/dbtest"
	"crier/tests/syncbuffer"
)

func TestServe_ReportsAllInvalidSettings(t *testing.T) {
	t.Parallel()
	empty := run(t, nil, "serve")
	bad := run(t, []string{
		"PORT=x", "API_LIMIT=0", "BASE_URL=ftp://x", "LEASE_TTL=soon", "SANDBOX_URL=::", "ENCRYPTION_KEYS=short", "TRUSTED_PROXIES=nobody", "LOG_LEVEL=loud",
		"LOG_FORMAT=xml", "STOP_TIMEOUT=-1s", "RETRY_WINDOW=-1s", "POOLER=maybe", "MAX_IMAGE_BYTES=-5",
		"MAX_VIDEO_BYTES=0", "DRAIN_TIMEOUT=-1s", "MAX_LATENESS=-1h", "PRUNE_INTERVAL=0s", "IDEMPOTENCY_KEY_RETENTION=1h", "SESSION_RETENTION=-1h", "ORG_MAX_CHANNELS=10001",
	}, "serve")
	for _, c := range []struct {
		result
		names []string
	}{
		{result: empty, names: []string{"DATABASE_URL", "ENCRYPTION_KEYS"}},
		{result: bad, names: []string{
			"PORT", "API_LIMIT", "BASE_URL", "LEASE_TTL", "SANDBOX_URL", "ENCRYPTION_KEYS", "TRUSTED_PROXIES", "LOG_LEVEL", "LOG_FORMAT",
			"STOP_TIMEOUT", "RETRY_WINDOW", "POOLER", "DATABASE_URL", "MAX_IMAGE_BYTES", "MAX_VIDEO_BYTES", "DRAIN_TIMEOUT", "MAX_LATENESS", "PRUNE_INTERVAL", "IDEMPOTENCY_KEY_RETENTION", "SESSION_RETENTION", "ORG_MAX_CHANNELS",
		}},
	} {
		if c.code != 1 || c.out != "" {
			t.Errorf("got exit %d and stdout %s, want exit 1 and no output", c.code, c.out)
		}
		lines := strings.Split(c.errors, "\n")
		for _, name := range c.names {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, name+": ") }) {
				t.Errorf("got stderr %s, want a line for %s", c.errors, name)
			}
		}
	}
}

// TestLicenses_PlainBuildNamesModules covers a build without ops/release. ops/test covers a
// release.
func TestLicenses_PlainBuildNamesModules(t *testing.T) {
	t.Parallel()
	got := run(t, nil, "licenses")
	for _, want := range []string{"ops/notice prints the texts", "\ngithub.com/jackc/pgx/v5 v5."} {
		if got.code != 0 || !strings.Contains(got.out, want) {
			t.Errorf("got exit %d and %q, want exit 0 and output that contains %q", got.code, got.out, want)
		}
	}
}

func TestServeAndDev_ReportOneInvalidSetting(t *testing.T) {
	t.Parallel()
	key := strings.TrimSpace(run(t, nil, "keygen").out)
	whole := []string{"DATABASE_URL=postgres://127.0.0.1:1/none", "ENCRYPTION_KEYS=" + key}
	for fault, sentence := range map[string]string{
		"LOG_LEVEL=loud": "LOG_LEVEL: must be debug, info, warn or error", "PORT=abc": "PORT: must be a whole number in range", "PORT=70000": "PORT: must be a whole number from 0 to 65535",
		"METRICS_LISTEN=4899": "METRICS_LISTEN: must be host:port, such as 127.0.0.1:4899", "METRICS_LISTEN=localhost:70000": "METRICS_LISTEN: must be host:port, such as 127.0.0.1:4899",
		"HEARTBEAT_INTERVAL=20s":        "HEARTBEAT_INTERVAL: must be above zero and at most half of LEASE_TTL, or the shards are lost between two heartbeats",
		"CLUSTER_ADVERTISE=127.0.0.1:1": "CLUSTER_ADVERTISE: has no effect without CLUSTER_LISTEN",
		"PLATFORM_RATES=x":              "PLATFORM_RATES: is not valid: \"x\" must look like bluesky=600/1m: a platform, a number of posts and a time span",
	} {
		for _, name := range []string{"serve", "dev"} {
			r := run(t, append([]string{fault, "CRIER_HOME=" + t.TempDir()}, whole...), name)
			if _, faults, _ := strings.Cut(strings.TrimSpace(r.errors), "\n"); r.code != 1 || faults != sentence {
				t.Errorf("%s %s: got exit %d, %s, want exit 1 and %s", fault, name, r.code, r.errors, sentence)
			}
		}
	}
}

func TestServeAndMigrate(t *testing.T) {
	t.Parallel()
	key := strings.TrimSpace(run(t, nil, "keygen").out)
	port := freePort(t)
	vars := []string{"DATABASE_URL=" + dbtest.Blank(t), "ENCRYPTION_KEYS=" + key, "CRIER_HOME=" + t.TempDir(), "PORT=" + port, "ROLE_PREFIX=crier"}
	run(t, nil, "migrate").fails(t, "DATABASE_URL")
	lines := strings.Split(strings.TrimSpace(run(t, vars, "serve").errors), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, "crier: ") || !strings.Contains(last, "crier migrate") {
		t.Fatalf("got last line %q, want an error that names crier migrate", last)
	}
	for range 2 {
		if r := run(t, vars, "migrate"); r.code != 0 || r.out != "The database is up to date.\n" {
			t.Fatalf("got %+v, want exit 0 and an up-to-date database", r)
		}
	}
	cmd := command(t, vars, "serve")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "health", func() bool {
		a, err := call.Do(t.Context(), http.DefaultClient, http.MethodGet, "http://127.0.0.1:"+port+"/health", nil)
		return err == nil && a.Status == http.StatusOK
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	r := run(t, append(slices.Clone(vars), "DATABASE_URL=postgres://nobody:wrong@127.0.0.1:1/none"), "migrate")
	r.fails(t)
	if strings.Contains(r.errors, "wrong") {
		t.Fatalf("got stderr %s, want no password in it", r.errors)
	}
}

// A process with one role starts, becomes ready and stops. The worker has no public address, and
// the edge has no worker.
func TestServe_StartsWithOneRole(t *testing.T) {
	t.Parallel()
	key := strings.TrimSpace(run(t, nil, "keygen").out)
	database := dbtest.Blank(t)
	for _, role := range []string{"worker", "edge"} {
		metrics := "127.0.0.1:" + freePort(t)
		vars := []string{
			"DATABASE_URL=" + database, "ENCRYPTION_KEYS=" + key, "CRIER_HOME=" + t.TempDir(), "ROLE_PREFIX=crier",
			"PORT=" + freePort(t), "ROLES=" + role, "CLUSTER_LISTEN=127.0.0.1:" + freePort(t),
			"METRICS_LISTEN=" + metrics,
		}
		if r := run(t, vars, "migrate"); r.code != 0 {
			t.Fatalf("migrate: got %+v, want exit 0", r)
		}
		cmd := command(t, vars, "serve")
		var stderr syncbuffer.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "a process with the role "+role, func() bool {
			return strings.Contains(stderr.String(), "crier is ready")
		})
		if a := get(t, "http://"+metrics+"/metrics", ""); a.Status != http.StatusOK {
			t.Errorf("%s: /metrics answers %d, want 200", role, a.Status)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: got %v after SIGTERM, want exit 0: %s", role, err, stderr.String())
		}
	}
}

func TestCommands_RefuseDatabaseOfAnotherBaseline(t *testing.T) {
	t.Parallel()
	key := strings.TrimSpace(run(t, nil, "keygen").out)
	for name, baseline := range map[string]string{
		"of other statements":              "select",
		"of numbered migrations before it": "alter table goose_db_version drop column baseline",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := dbtest.Blank(t)
			old := fstest.MapFS{"0001_tenancy.sql": {Data: []byte("create table organization (id uuid primary key)")}}
			if err := migrations.Migrate(t.Context(), migrations.Config{URL: url, Files: old}, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			c, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Exec(t.Context(), baseline); err != nil {
				t.Fatal(err)
			}
			if err := c.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			vars := []string{"DATABASE_URL=" + url, "ENCRYPTION_KEYS=" + key, "CRIER_HOME=" + t.TempDir(), "PORT=" + freePort(t), "LOG_LEVEL=error"}
			for _, command := range []string{"migrate", "serve", "dev"} {
				run(t, vars, command).fails(t, "another baseline", "use a new, empty database", "CRIER_HOME")
			}
		})
	}
}

func TestCommands_WithoutDatabase(t *testing.T) {
	t.Parallel()
	t.Run("routes lists the routes of the OpenAPI document", func(t *testing.T) {
		t.Parallel()
		var doc struct{ Paths map[string]map[string]any }
		if err := json.Unmarshal([]byte(run(t, nil, "openapi").out), &doc); err != nil {
			t.Fatal(err)
		}
		var described []string
		for path, methods := range doc.Paths {
			for method := range methods {
				if method != "parameters" {
					described = append(described, strings.ToUpper(method)+" "+path)
				}
			}
		}
		listed := strings.Split(strings.TrimSpace(run(t, nil, "routes").out), "\n")
		slices.Sort(described)
		slices.Sort(listed)
		if !slices.Equal(listed, described) {
			t.Fatalf("listed %v, described %v", listed, described)
		}
		missing := strings.Split(strings.TrimSpace(run(t, nil, "routes", "--missing").out), "\n")
		for _, m := range missing {
			if slices.Contains(listed, m) {
				t.Errorf("%s is listed as working and as missing", m)
			}
		}
	})
	t.Run("every command has help", func(t *testing.T) {
		t.Parallel()
		whole := run(t, nil, "--help")
		for _, name := range []string{"dev", "serve", "migrate", "sandbox", "routes", "keygen", "openapi"} {
			if !strings.Contains(whole.out, name) {
				t.Errorf("got help %s, want %s in it", whole.out, name)
			}
			if r := run(t, nil, name, "--help"); r.code != 0 || !strings.Contains(r.out, "Usage: crier "+name) || r.errors != "" {
				t.Errorf("%s --help: got %+v, want its usage and exit code 0", name, r)
			}
		}
		if r := run(t, nil, "serve", "--help"); !strings.Contains(r.out, "DATABASE_URL") || !strings.Contains(r.out, "ENCRYPTION_KEYS") {
			t.Errorf("got help %s, want the variables in it", r.out)
		}
		if whole.code != 0 || whole.errors != "" {
			t.Errorf("got %+v, want exit 0 and no errors", whole)
		}
	})
	t.Run("unknown commands and flags are errors", func(t *testing.T) {
		t.Parallel()
		for _, args := range [][]string{{"fly"}, {"routes", "--nothing"}, {"routes", "-e", "NOPAIR"}, {}} {
			if r := run(t, nil, args...); r.code != 1 || !strings.Contains(r.errors, "crier: ") {
				t.Errorf("%v: got %+v, want exit 1 and an error", args, r)
			}
		}
	})
	t.Run("keygen prints a new key of 32 bytes", func(t *testing.T) {
		t.Parallel()
		a, b := run(t, nil, "keygen").out, run(t, nil, "keygen").out
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(a))
		if err != nil || len(raw) != 32 || a == b {
			t.Fatalf("got %q, %q, %v, want two different keys of 32 bytes", a, b, err)
		}
	})
}
