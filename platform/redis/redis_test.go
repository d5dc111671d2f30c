package redis

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"crier/tests/faultnet"
	"crier/tests/syncbuffer"
)

// serve starts a Redis server and returns it with a client for it.
func serve(t *testing.T) (*miniredis.Miniredis, *Client) {
	t.Helper()
	server := miniredis.RunT(t)
	return server, open(t, "redis://"+server.Addr())
}

func open(t *testing.T, address string) *Client {
	t.Helper()
	c, err := Open(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

func TestOpen_RefusesOnlyInvalidURL(t *testing.T) {
	t.Parallel()
	addr := miniredis.RunT(t).Addr()
	for _, url := range []string{"", "http://h", "redis://u:hunter2@%zz", addr, "redis://u:hunter2@localhost:99999999", "redis://localhost:0", "rediss://localhost:65536"} {
		if _, err := Open(url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want an error without the password", url, err)
		}
	}
	other, err := Open("redis://" + addr + "/2")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(other.Ping(t.Context()), other.Close()); err != nil {
		t.Error(err)
	}
	if other.Ping(t.Context()) == nil {
		t.Error("a closed client: got no error, want one")
	}
}

func TestLogTo_TakesLinesOfLibrary(t *testing.T) {
	t.Parallel()
	var log syncbuffer.Buffer
	LogTo(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	server, c := serve(t)
	server.Close()
	if c.Ping(t.Context()) == nil {
		t.Error("ping of a stopped server: got no error, want one")
	}
	eventually(t, "go-redis has logged the lost connection", func() bool {
		return strings.Contains(log.String(), `"level":"DEBUG","msg":"go-redis: `)
	})
}

func TestOpen_UnreachableServerIsUsedOnceItIsUp(t *testing.T) {
	t.Parallel()
	server, c := serve(t)
	server.Close()
	if c.Ping(t.Context()) == nil {
		t.Error("a stopped server: got an answer, want none")
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server answers", func() bool { return c.Ping(t.Context()) == nil })
}

func TestClient_CallsEndWithContextWhenServerIsSilent(t *testing.T) {
	t.Parallel()
	p, through := faultnet.Start(t, "redis:")
	p.Set(faultnet.Swallow)
	c, err := Open(through + "?read_timeout=1h&max_retries=-1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // may fail: its connections never worked
	for name, call := range map[string]func(context.Context) error{
		"ping": c.Ping,
		"attempt": func(ctx context.Context) error {
			_, err := c.Attempts("a", rules).Begin(ctx, logIn("a", "x"))
			return err
		},
		"forgive": func(ctx context.Context) error { return c.Attempts("a", rules).Forgive(ctx, logIn("a", "x")) },
		"take":    func(ctx context.Context) error { _, _, err := c.Take(ctx, "slow", 1, time.Hour, 1); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := call(ctx); err == nil {
			t.Errorf("%s: got no error, want the end of the context", name)
		}
		cancel()
	}
}
