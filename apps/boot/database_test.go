package boot_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"crier/apps/boot"
	"crier/tests/call"
	"crier/tests/syncbuffer"
)

// dev is a running `crier dev` in this process.
type dev struct {
	home, address string
	out, errs     syncbuffer.Buffer
	code          chan int
}

func startDev(t *testing.T) *dev {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	d := &dev{home: filepath.Join(t.TempDir(), "home"), address: "http://127.0.0.1:" + port, code: make(chan int, 1)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.code <- boot.Main(ctx, []string{"dev", "--env", "CRIER_HOME=" + d.home, "--env", "PORT=" + port}, strings.NewReader(""), &d.out, &d.errs)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	d.until(t, "dev is ready", func() bool { return strings.Contains(d.out.String(), "Ctrl-C stops everything.") })
	return d
}

func (d *dev) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	tick := time.NewTicker(30 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out: %s; standard error: %s", what, d.errs.String())
		case <-tick.C:
		}
	}
}

// postmaster waits for a Postgres server that accepts connections and whose process id differs from
// old. It returns the process id.
func (d *dev) postmaster(t *testing.T, old int) (pid int) {
	t.Helper()
	d.until(t, "Postgres accepts connections", func() bool {
		raw, err := os.ReadFile(filepath.Join(d.home, "postgres", "data", "postmaster.pid"))
		lines := strings.Split(string(raw), "\n")
		if err != nil || len(lines) < 8 || strings.TrimSpace(lines[7]) != "ready" {
			return false
		}
		pid, err = strconv.Atoi(lines[0])
		return err == nil && pid != old
	})
	return pid
}

func (d *dev) posts(t *testing.T) (status int, retryAfter string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(d.home, "dev.json"))
	if err != nil {
		t.Fatal(err)
	}
	var notes struct{ APIKey string }
	if err := json.Unmarshal(raw, &notes); err != nil {
		t.Fatal(err)
	}
	a, err := call.Do(t.Context(), http.DefaultClient, http.MethodGet, d.address+"/public/v1/posts?page=0", nil, "Authorization", notes.APIKey)
	if err != nil {
		return 0, ""
	}
	return a.Status, a.Header.Get("Retry-After")
}

func TestDev_RestartsPostgresAndReportsFailure(t *testing.T) {
	t.Parallel()
	d := startDev(t)
	if status, _ := d.posts(t); status != http.StatusOK {
		t.Fatalf("at first: got %d, want 200", status)
	}
	first := d.postmaster(t, 0)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// Sessions of the killed server may still respond, so responses count only after the restart.
	second := d.postmaster(t, first)
	d.until(t, "posts are listed again", func() bool {
		status, _ := d.posts(t)
		return status == http.StatusOK
	})

	if err := os.Remove(filepath.Join(d.home, "postgres", "data", "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(second, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var code int
	ended := false
	d.until(t, "dev ends, or a request is answered with Retry-After", func() bool {
		select {
		case code = <-d.code: // between two requests
			ended = true
			return true
		default:
		}
		status, retryAfter := d.posts(t)
		return status == http.StatusServiceUnavailable && retryAfter != ""
	})
	d.until(t, "dev ends", func() bool {
		select {
		case code = <-d.code:
			return true
		default:
			return ended
		}
	})
	lines := strings.Split(strings.TrimSpace(d.errs.String()), "\n")
	if last := lines[len(lines)-1]; code != 1 || !strings.HasPrefix(last, "crier: Postgres exited unexpectedly and cannot be restarted") || !strings.Contains(last, "pg_control") {
		t.Errorf("exit %d: %s", code, d.errs.String())
	}
}
