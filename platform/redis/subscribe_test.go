package redis

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"go.uber.org/goleak"

	"crier/tests/faultnet"
)

// inbox collects messages.
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

func TestSubscribe_ReceivesAllInOrder(t *testing.T) {
	t.Parallel()
	_, c := serve(t)
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
	eventually(t, "all messages have arrived", func() bool { return len(got.all()) == len(want) })
	if !slices.Equal(got.all(), want) || len(other.all()) != 0 {
		t.Errorf("got %q and %q on the other channel, want %q and none", got.all(), other.all(), want)
	}
	stop()
	stop()
	if healthy() {
		t.Error("healthy after stop")
	}
	if err := c.Publish(t.Context(), "a", "late"); err != nil || len(got.all()) != 100 {
		t.Errorf("got %d messages and %v after stop, want 100", len(got.all()), err)
	}
}

func TestSubscribe_RecoversAfterLoss(t *testing.T) {
	t.Parallel()
	redis, c := serve(t)
	var got inbox
	var gaps atomic.Int32
	_, healthy := c.Subscribe(t.Context(), "a", got.add, func() { gaps.Add(1) })
	for round := int32(1); round <= 3; round++ {
		redis.Close()
		eventually(t, "the loss is detected", func() bool { return !healthy() })
		if gaps.Load() != round-1 {
			t.Fatalf("got %d gaps before the subscription was confirmed again, want %d", gaps.Load(), round-1)
		}
		if err := redis.Restart(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the subscription is healthy again", healthy)
		if gaps.Load() != round {
			t.Fatalf("got %d gaps after %d losses, want as many", gaps.Load(), round)
		}
		msg := fmt.Sprint("after ", round)
		if err := c.Publish(t.Context(), "a", msg); err != nil {
			t.Fatal(err)
		}
		eventually(t, msg, func() bool { return slices.Contains(got.all(), msg) })
	}
}

func TestSubscribe_ContextBoundsOnlyFirstAttempt(t *testing.T) {
	t.Parallel()
	_, c := serve(t)
	ctx, cancel := context.WithCancel(t.Context())
	var got inbox
	_, healthy := c.Subscribe(ctx, "a", got.add)
	cancel()
	if err := c.Publish(t.Context(), "a", "m"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message has arrived", func() bool { return len(got.all()) == 1 })
	if !healthy() {
		t.Error("not healthy")
	}
}

func TestSubscription_UnhealthyAfterSilence(t *testing.T) {
	t.Parallel()
	var s subscription
	if s.markHeard(); !s.isHealthy() {
		t.Error("not healthy right after an answer")
	}
	if s.heard.Add(-int64(5 * time.Second)); s.isHealthy() {
		t.Error("healthy after 5 s of silence")
	}
}

func TestSubscribe_StopAndCloseWaitForRunningFunction(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(c *Client, stop func()){
		"stop":  func(_ *Client, stop func()) { stop() },
		"Close": func(c *Client, _ func()) { _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redis := miniredis.RunT(t)
			c, err := Open("redis://" + redis.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }() // a second call returns an error
			running, ended := make(chan struct{}), atomic.Bool{}
			stop, _ := c.Subscribe(t.Context(), "a", func(string) {
				close(running)
				time.Sleep(50 * time.Millisecond) // end is called in this time
				ended.Store(true)
			})
			if err := c.Publish(t.Context(), "a", "m"); err != nil {
				t.Fatal(err)
			}
			<-running
			if end(c, stop); !ended.Load() {
				t.Errorf("%s returned while the function was running, want it to wait", name)
			}
		})
	}
}

// serveThrough returns a client that reaches its server through a proxy.
func serveThrough(t *testing.T) (*faultnet.Proxy, *Client) {
	t.Helper()
	p, address := faultnet.Start(t, "redis://"+miniredis.RunT(t).Addr())
	return p, open(t, address)
}

func TestSubscribe_SilentServerIsLostUntilReconnected(t *testing.T) {
	t.Parallel()
	p, c := serveThrough(t)
	var got inbox
	var gaps atomic.Int32
	_, healthy := c.Subscribe(t.Context(), "a", got.add, func() { gaps.Add(1) })
	if !healthy() {
		t.Fatal("not healthy after Subscribe")
	}
	p.Set(faultnet.Swallow)
	eventually(t, "the silence is detected", func() bool { return !healthy() })
	if n := gaps.Load(); n != 0 {
		t.Fatalf("got %d gaps while the server is silent, want 0", n)
	}
	p.Set(faultnet.Pass)
	eventually(t, "the subscription is healthy again", healthy)
	if n := gaps.Load(); n != 1 {
		t.Errorf("got %d gaps after one silence, want 1", n)
	}
	if err := c.Publish(t.Context(), "a", "m"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message has arrived", func() bool { return len(got.all()) == 1 })
}

func TestSubscribe_UnhealthyWithoutConfirmation(t *testing.T) {
	t.Parallel()
	p, c := serveThrough(t)
	p.Set(faultnet.Swallow)
	var got inbox
	var gaps atomic.Int32
	_, healthy := c.Subscribe(t.Context(), "a", got.add, func() { gaps.Add(1) })
	if healthy() {
		t.Error("healthy without a confirmation")
	}
	p.Set(faultnet.Pass)
	eventually(t, "the subscription is healthy", healthy)
	if n := gaps.Load(); n != 1 { // messages published since Subscribe may be lost
		t.Errorf("got %d gaps, want 1", n)
	}
}

func TestSubscribe_RefusedIsUnhealthyAndRetried(t *testing.T) {
	t.Parallel()
	redis, c := serve(t)
	allowed := make(chan *server.Peer, 1)
	var refused atomic.Int32
	var refuse atomic.Bool
	redis.Server().SetPreHook(func(p *server.Peer, command string, _ ...string) bool {
		switch {
		case command != "SUBSCRIBE":
			return false
		case refuse.Load():
			refused.Add(1)
			p.WriteError("NOPERM No permissions to access a channel")
			return true
		}
		allowed <- p
		return false
	})
	var got inbox
	var gaps atomic.Int32
	_, healthy := c.Subscribe(t.Context(), "a", got.add, func() { gaps.Add(1) })
	refuse.Store(true)
	(<-allowed).Close()
	eventually(t, "the loss is detected", func() bool { return !healthy() })
	eventually(t, "the subscription is retried", func() bool {
		if healthy() {
			t.Fatal("healthy although the server refuses")
		}
		return refused.Load() > 1
	})
	refuse.Store(false)
	eventually(t, "the subscription is healthy", healthy)
	if n := gaps.Load(); n != 1 {
		t.Errorf("got %d gaps, want 1", n)
	}
}

func TestSubscribe_ReceivesMessageSentInPieces(t *testing.T) {
	t.Parallel()
	redis, c := serve(t)
	subscriber := make(chan *server.Peer, 1)
	redis.Server().SetPreHook(func(p *server.Peer, command string, _ ...string) bool {
		switch command {
		case "SUBSCRIBE":
			subscriber <- p
		case "PING": // sent while the subscriber waits for the rest
			p.WriteRaw("$1\r\na\r\n$5\r\nwhole\r\n")
		}
		return false
	})
	var got inbox
	_, healthy := c.Subscribe(t.Context(), "a", got.add)
	p := <-subscriber
	p.WriteRaw(">3\r\n$7\r\nmessage\r\n")
	p.Flush()
	eventually(t, "the message has arrived or the connection is lost", func() bool { return len(got.all()) > 0 || !healthy() })
	if want := []string{"whole"}; !slices.Equal(got.all(), want) {
		t.Errorf("got %q, healthy %t, want %q", got.all(), healthy(), want)
	}
}

// Not parallel: it counts the goroutines of the whole process.
func TestClose_LeavesNoGoroutine(t *testing.T) {
	redis := miniredis.RunT(t)
	before := goleak.IgnoreCurrent()
	c, err := Open("redis://" + redis.Addr())
	if err != nil {
		t.Fatal(err)
	}
	var got inbox
	_, healthy := c.Subscribe(t.Context(), "a", got.add)
	if err := c.Close(); err != nil || healthy() {
		t.Errorf("got %v and healthy %t after Close, want no error and false", err, healthy())
	}
	stop, healthy := c.Subscribe(t.Context(), "a", got.add)
	if stop(); healthy() {
		t.Error("got a healthy subscription of a closed client")
	}
	goleak.VerifyNone(t, before)
}
