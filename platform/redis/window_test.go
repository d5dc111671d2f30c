package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"crier/platform/clock"
	"crier/tests/faultnet"
)

var windowStart = time.Unix(1_000_000, 0).UTC()

// serveWindows starts a server whose clock is stopped at windowStart. It returns the server and a
// counter whose clock is a day ahead.
func serveWindows(t *testing.T) (*miniredis.Miniredis, *Windows) {
	t.Helper()
	server, c := serve(t)
	server.SetTime(windowStart)
	w := c.Windows("edge", time.Minute)
	w.clock = clock.Func(func() time.Time { return windowStart.Add(24 * time.Hour) })
	return server, w
}

// checkTake takes from the key "k" of the bucket "b" in windows of a minute. The window must end
// after the duration remaining.
func checkTake(t *testing.T, w *Windows, limit, left int, remaining time.Duration) {
	t.Helper()
	got, ends, err := w.Take(t.Context(), "b", "k", limit, time.Minute)
	want := w.clock.Now().Add(remaining)
	if err != nil || got != left || !ends.Equal(want) {
		t.Fatalf("got %d left until %s, %v; want %d until %s", got, ends, err, left, want)
	}
}

func TestWindows_RefusedRequestsDoNotCount(t *testing.T) {
	t.Parallel()
	_, w := serveWindows(t)
	checkTake(t, w, 2, 1, time.Minute)
	checkTake(t, w, 2, 0, time.Minute)
	for range 3 {
		checkTake(t, w, 2, -1, time.Minute)
	}
	checkTake(t, w, 3, 0, time.Minute)
	checkTake(t, w, 1, -1, time.Minute) // the limit was lowered below the count
}

func TestWindows_LimitBelowOneRefusesAndStoresNothing(t *testing.T) {
	t.Parallel()
	server, w := serveWindows(t)
	for _, limit := range []int{0, -5} {
		checkTake(t, w, limit, -1, time.Minute)
	}
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("got keys %q, want none", keys)
	}
}

func TestWindows_BeginWithFirstCountedRequest(t *testing.T) {
	t.Parallel()
	server, w := serveWindows(t)
	checkTake(t, w, 2, 1, time.Minute)
	server.SetTime(windowStart.Add(20 * time.Second))
	checkTake(t, w, 2, 0, 40*time.Second)
	server.SetTime(windowStart.Add(time.Minute - time.Millisecond))
	checkTake(t, w, 2, -1, time.Millisecond)
	server.SetTime(windowStart.Add(time.Minute))
	checkTake(t, w, 2, 1, time.Minute)
}

func TestWindows_KeysExpireWithTheirWindow(t *testing.T) {
	t.Parallel()
	server, w := serveWindows(t)
	checkTake(t, w, 2, 1, time.Minute)
	server.SetTime(windowStart.Add(20 * time.Second))
	server.FastForward(20 * time.Second)
	checkTake(t, w, 2, 0, 40*time.Second) // a later request does not prolong the key
	server.FastForward(40*time.Second - time.Millisecond)
	if keys := server.Keys(); len(keys) != 1 {
		t.Errorf("a millisecond before the end: got keys %q, want one", keys)
	}
	server.FastForward(time.Millisecond)
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("at the end: got keys %q, want none", keys)
	}
}

func TestWindows_ConcurrentCallersOfTwoClientsGetExactlyTheLimit(t *testing.T) {
	t.Parallel()
	server, c := serve(t)
	server.SetTime(windowStart)
	both := []*Windows{c.Windows("edge", time.Minute), open(t, "redis://"+server.Addr()).Windows("edge", time.Minute)}
	const callers, limit = 50, 30
	var (
		work sync.WaitGroup
		mu   sync.Mutex
		seen = map[int]int{}
	)
	for i := range callers {
		work.Go(func() {
			left, _, err := both[i%2].Take(t.Context(), "b", "k", limit, time.Minute)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[left]++
		})
	}
	work.Wait()
	if seen[-1] != callers-limit {
		t.Errorf("got %d refusals, want %d", seen[-1], callers-limit)
	}
	for left := range limit {
		if seen[left] != 1 {
			t.Errorf("got %d callers with %d left, want one", seen[left], left)
		}
	}
}

func TestWindows_CountSeparately(t *testing.T) {
	t.Parallel()
	server, c := serve(t)
	server.SetTime(windowStart)
	for _, x := range []struct {
		what, name, bucket, key string
		window                  time.Duration
	}{
		{what: "the first", name: "edge", bucket: "b", key: "k", window: time.Minute},
		{what: "another key", name: "edge", bucket: "b", key: "l", window: time.Minute},
		{what: "another bucket", name: "edge", bucket: "c", key: "k", window: time.Minute},
		{what: "another length", name: "edge", bucket: "b", key: "k", window: time.Second},
		{what: "another name", name: "other", bucket: "b", key: "k", window: time.Minute},
	} {
		w := c.Windows(x.name, time.Minute)
		for _, want := range []int{0, -1} {
			if left, _, err := w.Take(t.Context(), x.bucket, x.key, 1, x.window); err != nil || left != want {
				t.Errorf("%s: got %d left, %v, want %d", x.what, left, err, want)
			}
		}
	}
}

func TestWindows_EndTooFarAheadIsError(t *testing.T) {
	t.Parallel()
	server, w := serveWindows(t)
	server.SetTime(windowStart.Add(time.Hour))
	checkTake(t, w, 3, 2, time.Minute)
	server.SetTime(windowStart)
	left, ends, err := w.Take(t.Context(), "b", "k", 3, time.Minute)
	if left != 0 || !ends.IsZero() || !strings.Contains(fmt.Sprint(err), "crier:window:edge:b:60000:k") {
		t.Errorf("the clock was set back: got %d left until %s, %v; want an error that names the key", left, ends, err)
	}
	server.SetTime(windowStart.Add(time.Hour))
	checkTake(t, w, 3, 1, time.Minute) // the failed call was not counted
}

func TestWindows_ReplaceForeignKeys(t *testing.T) {
	t.Parallel()
	const key = "crier:window:edge:b:60000:k"
	for name, spoil := range map[string]func(*miniredis.Miniredis) error{
		"another text": func(s *miniredis.Miniredis) error { return s.Set(key, "x") },
		"a list":       func(s *miniredis.Miniredis) error { _, err := s.Lpush(key, "x"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, w := serveWindows(t)
			if err := spoil(server); err != nil {
				t.Fatal(err)
			}
			checkTake(t, w, 2, 1, time.Minute)
			checkTake(t, w, 2, 0, time.Minute)
		})
	}
}

func TestWindows_LengthBelowAMillisecondIsAnError(t *testing.T) {
	t.Parallel()
	_, w := serveWindows(t)
	for _, window := range []time.Duration{0, -time.Minute, time.Millisecond - 1} {
		if _, _, err := w.Take(t.Context(), "b", "k", 1, window); err == nil {
			t.Errorf("%s: got no error, want one", window)
		}
	}
}

func TestWindows_AreOneRoundTrip(t *testing.T) {
	t.Parallel()
	_, c := serve(t)
	w := c.Windows("edge", time.Minute)
	take := func(want int) {
		t.Helper()
		if left, _, err := w.Take(t.Context(), "b", "k", 2, time.Minute); err != nil || left != want {
			t.Fatalf("got %d left, %v, want %d", left, err, want)
		}
	}
	take(1) // loads the script into the server
	var sent counter
	c.rdb.AddHook(&sent)
	take(0)
	take(-1)
	if n := sent.Load(); n != 2 {
		t.Errorf("got %d commands for two calls, want 2", n)
	}
}

func TestWindows_EndWhenServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server, _ := serve(t)
	proxy, address := faultnet.Start(t, "redis://"+server.Addr())
	c := open(t, address+"?read_timeout=1h")    // so that only the timeout of the call is short
	if err := c.Ping(t.Context()); err != nil { // so that an open connection becomes silent too
		t.Fatal(err)
	}
	proxy.Set(faultnet.Swallow)
	w := c.Windows("edge", 50*time.Millisecond)
	patient, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	left, ends, err := w.Take(patient, "b", "k", 1, time.Minute)
	if !errors.Is(err, context.DeadlineExceeded) || patient.Err() != nil {
		t.Errorf("got %d left until %s, %v; want the timeout of the call", left, ends, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := c.Windows("edge", time.Hour).Take(over, "b", "k", 1, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: got %v, want context.Canceled", err)
	}
}

func TestWindows_FailWhenTheServerIsStopped(t *testing.T) {
	t.Parallel()
	server, w := serveWindows(t)
	server.Close()
	if left, ends, err := w.Take(t.Context(), "b", "k", 1, time.Minute); err == nil {
		t.Errorf("got %d left until %s, want an error", left, ends)
	}
}
