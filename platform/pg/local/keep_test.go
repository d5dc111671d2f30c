package local_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/pg/local"
)

// keep calls Keep in a goroutine. The channel receives its result.
func keep(ctx context.Context, s *local.Server) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- s.Keep(ctx) }()
	return ended
}

func kill(t *testing.T, s *local.Server) (pid int) {
	t.Helper()
	pid = s.PID()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestKeep_RestartsAKilledServer(t *testing.T) {
	t.Parallel()
	s := start(t, local.Config{Dir: t.TempDir(), Durable: true})
	makeTable(t, s.URL("crier"))
	url, ended := s.URL("crier"), keep(t.Context(), s)
	for range 3 {
		// A busy session keeps the shared memory of the killed server for a moment longer.
		c, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		busy := make(chan error, 1)
		go func() { _, err := c.Exec(t.Context(), "select count(*) from generate_series(1, 3000000)"); busy <- err }()
		pid := kill(t, s)
		eventually(t, "the server answers again", func() bool {
			got, err := query(t, url, "select n::text from kept")
			return s.PID() != pid && err == nil && got == "1"
		})
		<-busy // it may have ended before the kill
		_ = c.Close(t.Context())
	}
	if _, err := local.Start(t.Context(), local.Config{Dir: s.Dir()}); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second run in the same folder: %v, want Conflict", err)
	}
	pid := s.PID()
	stop(t, s)
	if err := <-ended; err != nil {
		t.Errorf("Keep after Stop: %v, want nil", err)
	}
	if !gone(pid) {
		t.Error("the stopped server is still running")
	}
}

func TestKeep_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := start(t, local.Config{Dir: t.TempDir()})
	ctx, cancel := context.WithCancel(t.Context())
	ended := keep(ctx, s)
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	want(t, s.URL("crier"), "select ''", "")
}

// Callers run Keep in a goroutine, which may start after Stop has returned. On one thread, Keep
// runs ahead of any goroutine that could tell it about the stop. The test is not parallel because
// it changes the number of threads of the process.
func TestKeep_StartsNoServerAfterStop(t *testing.T) {
	s := start(t, local.Config{Dir: t.TempDir()})
	stop(t, s)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if err := <-keep(t.Context(), s); err != nil {
		t.Errorf("Keep after Stop: %v, want nil", err)
	}
	if pid := s.PID(); pid != 0 && !gone(pid) {
		_ = syscall.Kill(pid, syscall.SIGINT) // otherwise it would outlive the test
		t.Error("Keep started the stopped server again")
	}
}

// Calling Stop at any moment of a restart ends Keep and leaves no Postgres running.
func TestKeep_EndsWithStopDuringRestart(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		s := start(t, local.Config{Dir: t.TempDir()})
		ended := keep(t.Context(), s)
		kill(t, s)
		// Stop comes before, during and after the restart.
		time.Sleep(time.Duration(i) * 40 * time.Millisecond)
		stop(t, s)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if pid := s.PID(); pid != 0 && !gone(pid) {
			t.Fatal("the stopped server is still running")
		}
	}
}

func TestKeep_GivesUp(t *testing.T) {
	t.Parallel()
	t.Run("when the data is broken", func(t *testing.T) {
		t.Parallel()
		s := start(t, local.Config{Dir: t.TempDir()})
		if err := os.Remove(filepath.Join(s.Dir(), "data", "global", "pg_control")); err != nil {
			t.Fatal(err)
		}
		ended := keep(t.Context(), s)
		kill(t, s)
		givenUp(t, <-ended, "pg_control")
		stop(t, s)
		if _, err := local.Start(t.Context(), local.Config{Dir: s.Dir(), Log: slog.New(slog.DiscardHandler)}); fault.Is(err, fault.Conflict) {
			t.Error("the folder is still locked")
		}
	})
	t.Run("when the server ends repeatedly", func(t *testing.T) {
		t.Parallel()
		s := start(t, local.Config{Dir: t.TempDir()})
		ended := keep(t.Context(), s)
		for deaths := 0; ; deaths++ {
			pid := kill(t, s)
			var over bool
			eventually(t, "the server answers again, or Keep returns", func() bool {
				select {
				case err := <-ended:
					givenUp(t, err, "keeps exiting")
					over = true
				default:
				}
				_, err := query(t, s.URL("crier"), "select ''")
				return over || s.PID() != pid && err == nil
			})
			if over && deaths > 0 {
				return
			}
		}
	})
}

func givenUp(t *testing.T, err error, word string) {
	t.Helper()
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), word) {
		t.Errorf("got %v, want Unavailable with %q in its message", err, word)
	}
}
