package local

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
)

func TestChoose_TakesTheNewestOrTheVersionOfTheData(t *testing.T) {
	t.Parallel()
	all := []binaries{{dir: "a", major: 14}, {dir: "b", major: 15}, {dir: "c", major: 17}, {dir: "d", major: 16}}
	for name, c := range map[string]struct {
		made int
		want string
	}{
		"no data":                    {made: 0, want: "c"},
		"data of an installed one":   {made: 15, want: "b"},
		"data of one that is absent": {made: 18, want: ""},
		"data of one too old":        {made: 14, want: ""},
	} {
		if b, ok := choose(all, c.made); b.dir != c.want || ok != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", name, b.dir, ok, c.want)
		}
	}
}

func TestHydrate_CreatesTheListedLinks(t *testing.T) {
	t.Parallel()
	list := func(t *testing.T, text string) string {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, "native", "lib"), 0o755); err != nil {
			t.Fatal(err)
		}
		for name, b := range map[string]string{"native/lib/libx.so.1.2": "x", "native/pg-symlinks.json": text} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	t.Run("relative links, even if they exist", func(t *testing.T) {
		t.Parallel()
		dir := list(t, `[{"source":"native/lib/libx.so.1.2","target":"native/lib/libx.so"}]`)
		for range 2 {
			if err := hydrate(dir); err != nil {
				t.Fatal(err)
			}
		}
		moved := filepath.Join(t.TempDir(), "moved")
		if err := os.Rename(dir, moved); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(moved, "native/lib/libx.so")); err != nil || string(b) != "x" {
			t.Fatalf("read %q with error %v, want x", b, err)
		}
	})
	t.Run("no link outside the package", func(t *testing.T) {
		t.Parallel()
		if err := hydrate(list(t, `[{"source":"native/lib/libx.so.1.2","target":"../escaped"}]`)); err == nil {
			t.Fatal("a link outside the package was created")
		}
	})
}

func TestFailureReason_SkipsMessagesToClients(t *testing.T) {
	t.Parallel()
	const (
		starting = "2026-01-01 [1] FATAL:  the database system is starting up\n"
		cause    = "2026-01-01 [2] PANIC:  could not open file \"global/pg_control\"\n"
	)
	for name, c := range map[string]struct{ log, want string }{
		"a client before the cause": {log: starting + cause, want: `could not open file "global/pg_control"`},
		"an empty log":              {log: "", want: "it exited without writing to its log."},
		"no cause":                  {log: starting + "2026-01-01 [2] LOG:  ended\n", want: "2026-01-01 [2] LOG:  ended"},
	} {
		p := place{root: t.TempDir()}
		if err := os.WriteFile(p.join("server.log"), []byte(c.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if why, _ := p.failureReason(); why != c.want {
			t.Errorf("%s: got %q, want %q", name, why, c.want)
		}
	}
}

// Stop takes processLock while it holds s.mu, so Keep must not hold processLock while it waits for
// s.mu. The test is not parallel because it looks at all goroutines of the process.
func TestKeep_WaitsForStopWithoutTheProcessLock(t *testing.T) {
	s, err := Start(t.Context(), Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	s.mu.Lock() // as Stop does first
	if err := syscall.Kill(s.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Keep(t.Context()) }()
	for !waitsForMutex("(*Server).restart") {
		runtime.Gosched()
	}
	s.stop()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	processes, err := s.place.lock(ctx, processLock, true)
	if err != nil {
		t.Errorf("Stop cannot take the lock while Keep waits: %v", err)
	} else {
		_ = processes.Close() // nothing was written
	}
	s.mu.Unlock()
	if err := <-ended; err != nil {
		t.Errorf("Keep: %v, want nil", err)
	}
}

// waitsForMutex reports whether a goroutine that runs function waits for a mutex.
func waitsForMutex(function string) bool {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "[sync.Mutex.Lock") && strings.Contains(stack, function) {
			return true
		}
	}
	return false
}
