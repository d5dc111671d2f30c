package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func embedded(t *testing.T) *Client {
	t.Helper()
	c, err := Embedded()
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
			t.Fatalf("never: %s", what)
		}
	}
}

type inbox struct {
	mu   sync.Mutex
	msgs []string
}

func (i *inbox) add(m string) { i.mu.Lock(); defer i.mu.Unlock(); i.msgs = append(i.msgs, m) }
func (i *inbox) all() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.msgs)
}

func TestOpen_RefusesOnlyAURLThatIsNotValid(t *testing.T) {
	t.Parallel()
	c := embedded(t)
	addr := c.embedded.Addr()
	for _, url := range []string{"", "http://h", "redis://u:hunter2@%zz", addr} {
		if _, err := Open(url); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", url, err)
		}
	}
	other, err := Open("redis://" + addr + "/2")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(other.Ping(t.Context()), other.Close()); err != nil {
		t.Error(err)
	}
	if other.Ping(t.Context()) == nil || other.Publish(t.Context(), "c", "m") == nil {
		t.Error("a closed client answers")
	}
}

func TestOpen_AServerThatIsAwayIsUsedWhenItComes(t *testing.T) {
	t.Parallel()
	server := embedded(t)
	addr := server.embedded.Addr()
	server.embedded.Close()
	c, err := Open("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	var got inbox
	_, healthy := c.Subscribe(t.Context(), "a", got.add)
	if c.Ping(t.Context()) == nil || healthy() {
		t.Error("a server that is away answers")
	}
	if err := server.embedded.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it answers", func() bool { return c.Ping(t.Context()) == nil })
	eventually(t, "the subscription stands", healthy)
}

func TestCalls_EndWithTheirContextWhenTheServerSaysNothing(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0") // accepts and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }() // nothing is served
	c, err := Open("redis://" + ln.Addr().String() + "?read_timeout=1h&max_retries=-1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }() // its connections never worked
	for name, call := range map[string]func(context.Context) error{
		"ping":    c.Ping,
		"publish": func(ctx context.Context) error { return c.Publish(ctx, "a", "m") },
		"take":    func(ctx context.Context) error { _, _, err := c.Take(ctx, "slow", 1, time.Hour, 1); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		if err := call(ctx); err == nil {
			t.Errorf("%s works", name)
		}
		cancel()
	}
}

func TestEmbeddedExpires(t *testing.T) {
	t.Parallel()
	c := embedded(t)
	if err := c.rdb.Set(t.Context(), "k", "v", 50*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the key expires", func() bool {
		n, err := c.rdb.Exists(t.Context(), "k").Result()
		return err == nil && n == 0
	})
}

func TestSubscribeHearsAllInOrder(t *testing.T) {
	t.Parallel()
	c := embedded(t)
	var got, other inbox
	stop, healthy := c.Subscribe(t.Context(), "a", got.add)
	_, _ = c.Subscribe(t.Context(), "b", other.add)
	if !healthy() {
		t.Fatal("not healthy after Subscribe")
	}
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprint(i))
		if err := c.Publish(t.Context(), "a", want[i]); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all messages", func() bool { return len(got.all()) == len(want) })
	if !slices.Equal(got.all(), want) || len(other.all()) != 0 {
		t.Error(got.all(), other.all())
	}
	stop()
	stop()
	if healthy() {
		t.Error("healthy after stop")
	}
	if err := c.Publish(t.Context(), "a", "late"); err != nil || len(got.all()) != 100 {
		t.Error(err, "heard after stop")
	}
}

func TestSubscribeComesBackAfterALoss(t *testing.T) {
	t.Parallel()
	c := embedded(t)
	var got inbox
	var gaps atomic.Int32
	_, healthy := c.Subscribe(t.Context(), "a", got.add, func() { gaps.Add(1) })
	for round := int32(1); round <= 3; round++ {
		c.embedded.Close()
		eventually(t, "the loss is seen", func() bool { return !healthy() })
		if gaps.Load() != round-1 {
			t.Fatal("a gap was told before the subscription stood again")
		}
		if err := c.embedded.Restart(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it is back", healthy)
		if gaps.Load() != round {
			t.Fatalf("%d gaps after %d losses", gaps.Load(), round)
		}
		msg := fmt.Sprint("after ", round)
		if err := c.Publish(t.Context(), "a", msg); err != nil {
			t.Fatal(err)
		}
		eventually(t, msg, func() bool { return slices.Contains(got.all(), msg) })
	}
}

func TestSubscribeWithoutAServerKeepsTrying(t *testing.T) {
	t.Parallel()
	c := embedded(t)
	c.embedded.Close()
	var got inbox
	stop, healthy := c.Subscribe(t.Context(), "a", got.add)
	defer stop()
	if healthy() {
		t.Fatal("healthy without a server")
	}
	if err := c.embedded.Restart(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it stands", healthy)
}

func TestTheContextBoundsOnlyTheFirstWait(t *testing.T) {
	t.Parallel()
	c := embedded(t)
	ctx, cancel := context.WithCancel(t.Context())
	var got inbox
	_, healthy := c.Subscribe(ctx, "a", got.add)
	cancel()
	if err := c.Publish(t.Context(), "a", "m"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message", func() bool { return len(got.all()) == 1 })
	if !healthy() {
		t.Error("not healthy")
	}
}

func TestSilenceIsNotHealth(t *testing.T) {
	t.Parallel()
	var s subscription
	if s.hear(); !s.isHealthy() {
		t.Error("just heard")
	}
	if s.heard.Add(-int64(3 * quiet)); s.isHealthy() {
		t.Error("silent for longer than a probe takes")
	}
}

// Not parallel: it counts the goroutines of the whole process.
func TestCloseLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	c, err := Embedded()
	if err != nil {
		t.Fatal(err)
	}
	var got inbox
	_, healthy := c.Subscribe(t.Context(), "a", got.add)
	if err := c.Close(); err != nil || healthy() {
		t.Error(err, healthy())
	}
	stop, healthy := c.Subscribe(t.Context(), "a", got.add)
	if stop(); healthy() {
		t.Error("subscribed to a closed client")
	}
	goleak.VerifyNone(t, before)
}
