package local_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/pg/local"
)

// parentEnv makes this test binary the process that TestStart_ServerEndsWithItsKilledParent kills.
const parentEnv = "LOCAL_TEST_PARENT_OF"

func TestMain(m *testing.M) {
	if dir := os.Getenv(parentEnv); dir != "" {
		parent(dir)
	}
	os.Exit(m.Run())
}

// parent starts a server, writes its process id to standard output, and waits to be killed.
func parent(dir string) {
	s, err := local.Start(context.Background(), local.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Stdout.WriteString(strconv.Itoa(s.PID()) + "\n")
	select {}
}

func start(t *testing.T, cfg local.Config) *local.Server {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	s, err := local.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *local.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func query(t *testing.T, url, sql string) (string, error) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return "", err
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	var out string
	err = c.QueryRow(t.Context(), sql).Scan(&out)
	return out, err
}

func makeTable(t *testing.T, url string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	if _, err := c.Exec(t.Context(), "create table kept (n int); insert into kept values (1)"); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, url, sql, result string) {
	t.Helper()
	if got, err := query(t, url, sql); err != nil || got != result {
		t.Fatalf("%s: %q, want %q, %v", sql, got, result, err)
	}
}

// gone reports whether a process has ended.
func gone(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	return len(b) == 0 // a zombie waits for its parent
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatal("timed out; want: " + what)
		case <-tick.C:
		}
	}
}

func TestServer_KeepsDataBetweenRuns(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "deep", "down")
	s := start(t, local.Config{Dir: dir, Durable: true, Preload: []string{"no_such_library"}, Extra: []string{"work_mem=5MB"}})
	want(t, s.URL("crier"), "select current_user || rolsuper || rolcreatedb || rolcreaterole from pg_roles where rolname = current_user", "crierfalsefalsetrue")
	want(t, s.URL("crier"), "select pg_get_userbyid(datdba)::text from pg_database where datname = 'crier'", "crier")
	want(t, s.SuperURL("postgres"), "select current_setting('fsync') || current_setting('work_mem') || current_setting('unix_socket_directories')", "on5MB")
	if _, err := query(t, strings.Replace(s.URL("crier"), "crier:", "crier:x", 1), "select ''"); err == nil {
		t.Error("a wrong password is accepted")
	}
	if _, err := local.Start(t.Context(), local.Config{Dir: dir}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second run in the same folder: %v, want Conflict", err)
	}
	makeTable(t, s.URL("crier"))
	stop(t, s)
	stop(t, s)
	if _, err := query(t, s.URL("crier"), "select ''"); err == nil {
		t.Error("a stopped server answers")
	}

	again := start(t, local.Config{Dir: dir})
	want(t, again.URL("crier"), "select n::text from kept", "1")
	want(t, again.SuperURL("postgres"), "select current_setting('fsync')", "off")
}

// If the tests run as root, the server runs as another account, which cannot enter the parent
// folder.
func TestStart_WorksBelowAFolderThatTheServerCannotEnter(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "in", "it")
	s := start(t, local.Config{Dir: dir})
	makeTable(t, s.URL("crier"))
	if s.Dir() != dir {
		t.Errorf("the data is in %s, want it in %s", s.Dir(), dir)
	}
	if info, err := os.Stat(closed); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the parent has the mode %v (%v), want it unchanged", info.Mode(), err)
	}
	stop(t, s)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	second := start(t, local.Config{Dir: dir})
	want(t, second.URL("crier"), "select count(*)::text from pg_class where relname = 'kept'", "0")
}

func TestStop_EndsSessions(t *testing.T) {
	t.Parallel()
	s := start(t, local.Config{Dir: t.TempDir()})
	c, err := pgx.Connect(t.Context(), s.URL("crier"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	stop(t, s)
	if err := c.Ping(t.Context()); err == nil {
		t.Error("the session is still open")
	}
}

// The server ends when its parent is killed. The test checks the end only on Linux, where gone
// recognizes zombies. The next start works on every system.
func TestStart_ServerEndsWithItsKilledParent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), parentEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 32)
	n, err := out.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if runtime.GOOS == "linux" {
		eventually(t, "Postgres ends with its parent", func() bool { return gone(pid) })
	}
	s := start(t, local.Config{Dir: dir})
	want(t, s.URL("crier"), "select current_user::text", "crier")
}

func TestStop_EndsAServerWhoseFolderWasRemoved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "removed")
	s := start(t, local.Config{Dir: dir})
	pid := s.PID()
	// Renaming is atomic, unlike removing a folder while the server writes to it.
	if err := os.Rename(dir, filepath.Join(t.TempDir(), "away")); err != nil {
		t.Fatal(err)
	}
	stop(t, s)
	if runtime.GOOS == "linux" {
		eventually(t, "Postgres ends", func() bool { return gone(pid) })
	}
}

func TestStart_AfterAnEarlierRun(t *testing.T) {
	t.Parallel()
	t.Run("stops a running server first", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		old := start(t, local.Config{Dir: dir, Detached: true})
		makeTable(t, old.URL("crier"))
		pid := old.PID()
		s := start(t, local.Config{Dir: dir})
		if !gone(pid) {
			t.Error("the old server is still running")
		}
		want(t, s.URL("crier"), "select n::text from kept", "1")
	})
	t.Run("recovers after SIGKILL", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		old := start(t, local.Config{Dir: dir})
		makeTable(t, old.URL("crier"))
		kill(t, old)
		stop(t, old)
		s := start(t, local.Config{Dir: dir})
		want(t, s.URL("crier"), "select n::text from kept", "1")
	})
	t.Run("ignores a process id that now belongs to another program", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		old := start(t, local.Config{Dir: dir})
		stop(t, old)
		// The parent of the test is running and is not Postgres.
		stale := strconv.Itoa(os.Getppid()) + "\n" + old.Dir() + "/data\n1\n5432\n\n127.0.0.1\n1 1\nready\n"
		if err := os.WriteFile(filepath.Join(old.Dir(), "data", "postmaster.pid"), []byte(stale), 0o600); err != nil {
			t.Fatal(err)
		}
		s := start(t, local.Config{Dir: dir})
		want(t, s.URL("crier"), "select ''", "")
	})
	t.Run("repeats an interrupted first start", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "data", "base"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := start(t, local.Config{Dir: dir})
		want(t, s.URL("crier"), "select ''", "")
	})
}

func TestStart_DetachedServerIsShared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := start(t, local.Config{Dir: dir, Detached: true})
	b := start(t, local.Config{Dir: dir, Detached: true})
	if a.Joined() || !b.Joined() || a.PID() != b.PID() || a.URL("crier") != b.URL("crier") {
		t.Errorf("there are two servers, %d and %d, want one that the second run joins", a.PID(), b.PID())
	}
	pid := a.PID()
	if err := local.Stop(t.Context(), local.Config{Dir: dir, Detached: true}); err != nil {
		t.Fatal(err)
	}
	if !gone(pid) {
		t.Error("the stopped server is still running")
	}
}

func TestStart_FailureHasItsReason(t *testing.T) {
	t.Parallel()
	t.Run("broken data", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		s := start(t, local.Config{Dir: dir})
		stop(t, s)
		if err := os.Remove(filepath.Join(s.Dir(), "data", "global", "pg_control")); err != nil {
			t.Fatal(err)
		}
		refused(t, local.Config{Dir: dir}, "pg_control")
	})
	t.Run("data of a version that is not installed", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		s := start(t, local.Config{Dir: dir})
		stop(t, s)
		if err := os.WriteFile(filepath.Join(s.Dir(), "data", "PG_VERSION"), []byte("3\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, local.Config{Dir: dir}, "Postgres 3")
	})
	t.Run("an unknown setting", func(t *testing.T) {
		t.Parallel()
		refused(t, local.Config{Dir: t.TempDir(), Extra: []string{"no_such_setting=1"}}, "no_such_setting")
	})
	t.Run("a taken port", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		refused(t, local.Config{Dir: t.TempDir(), Extra: []string{"port=" + port}}, "TCP/IP")
	})
	t.Run("a file where the folder should be", func(t *testing.T) {
		t.Parallel()
		name := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, local.Config{Dir: name}, name)
	})
}

func refused(t *testing.T, cfg local.Config, word string) {
	t.Helper()
	cfg.Log = slog.New(slog.DiscardHandler)
	s, err := local.Start(t.Context(), cfg)
	if err == nil {
		stop(t, s)
		t.Fatal("the server starts, want an error")
	}
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != fault.Unavailable || !strings.Contains(f.Message, word) {
		t.Fatalf("got %v, want Unavailable with %q in its message", err, word)
	}
}
