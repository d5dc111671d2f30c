package lifecycle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// record creates parts that record their starts and stops.
type record struct {
	mu     sync.Mutex
	events []string
}

func (r *record) add(event string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, event)
}

func (r *record) part(name string, startErr, stopErr error) Part {
	return Part{
		Name:  name,
		Start: func(context.Context) error { r.add("+" + name); return startErr },
		Stop:  func(context.Context) error { r.add("-" + name); return stopErr },
	}
}

var errBroken = errors.New("broken")

func TestStop_StopsStartedPartsInReverse(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 6).Draw(rt, "parts")
		failAt := rapid.IntRange(0, 8).Draw(rt, "fails at")
		badStops := rapid.IntRange(0, 63).Draw(rt, "bad stops")
		var r record
		var parts []Part
		var want []string
		wantErrs := 0
		for i := range n {
			var startErr, stopErr error
			if i == failAt {
				startErr = errBroken
			}
			if badStops>>i&1 == 1 {
				stopErr = errBroken
			}
			name := string(rune('a' + i))
			parts = append(parts, r.part(name, startErr, stopErr))
			if i <= failAt {
				want = append(want, "+"+name)
			}
		}
		for i := min(n, failAt) - 1; i >= 0; i-- {
			want = append(want, "-"+string(rune('a'+i)))
			wantErrs += badStops >> i & 1
		}
		g := New(nil)
		if err := g.Start(t.Context(), parts...); (err != nil) != (failAt < n) {
			rt.Fatal(err)
		}
		err := g.Stop(t.Context())
		if again := g.Stop(t.Context()); again != err {
			rt.Fatalf("second Stop: got %v, want %v", again, err)
		}
		got := 0
		if err != nil {
			got = strings.Count(err.Error(), "broken")
		}
		if !slices.Equal(r.events, want) || got != wantErrs {
			rt.Fatalf("got %v and %d errors, want %v and %d", r.events, got, want, wantErrs)
		}
	})
}

func TestWait_ReturnsTheFirstFailure(t *testing.T) {
	t.Parallel()
	g := New(nil)
	var r record
	late := r.part("late", nil, nil)
	late.Start = func(context.Context) error { go g.Fail(errBroken); return nil }
	if err := g.Start(t.Context(), late, Part{Name: "empty"}); err != nil {
		t.Fatal(err)
	}
	err := g.Wait(t.Context())
	g.Fail(errors.New("too late"))
	if again := g.Wait(t.Context()); err != errBroken || again != errBroken {
		t.Errorf("got %v, then %v, want %v", err, again, errBroken)
	}
}

func TestWait_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := New(nil).Wait(ctx); err != nil {
		t.Error(err)
	}
}

func TestStart_StartsNothingAfterContextEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var r record
	if err := New(nil).Start(ctx, r.part("a", nil, nil)); !errors.Is(err, context.Canceled) || len(r.events) != 0 {
		t.Errorf("got %v and %v, want context.Canceled and nothing started", err, r.events)
	}
}

func TestStop_ContinuesPastHangingPart(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	var r record
	hanging := Part{Name: "hanging", Timeout: time.Millisecond, Stop: func(context.Context) error { <-release; return nil }}
	slow := Part{Name: "slow", Timeout: time.Millisecond, Stop: func(ctx context.Context) error { <-ctx.Done(); return errBroken }}
	g := New(nil)
	if err := g.Start(t.Context(), r.part("a", nil, nil), hanging, slow); err != nil {
		t.Fatal(err)
	}
	err := g.Stop(t.Context())
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "stop hanging: ") {
		t.Errorf("got %v, want the errors of both parts", err)
	}
	if want := []string{"+a", "-a"}; !slices.Equal(r.events, want) {
		t.Errorf("got %v, want %v", r.events, want)
	}
	if err := g.Start(t.Context(), r.part("b", nil, nil)); err == nil {
		t.Error("Start after Stop: got no error, want one")
	}
}

func TestStop_StopsEveryPartWithinContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r record
		slow := func(name string) Part {
			return Part{Name: name, Timeout: time.Hour, Stop: func(ctx context.Context) error { <-ctx.Done(); return nil }}
		}
		g := New(nil)
		if err := g.Start(t.Context(), r.part("a", nil, nil), slow("x"), slow("y"), slow("z")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		if err := g.Stop(ctx); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 10*time.Second+2*grace || !slices.Contains(r.events, "-a") {
			t.Fatalf("got %v after %v, want every part stopped within 11 s", r.events, took)
		}
	})
}

func TestStop_ConcurrentCallsStopOnce(t *testing.T) {
	t.Parallel()
	g := New(nil)
	var r record
	if err := g.Start(t.Context(), r.part("a", nil, errBroken)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := g.Stop(t.Context()); !errors.Is(err, errBroken) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if want := []string{"+a", "-a"}; !slices.Equal(r.events, want) {
		t.Errorf("got %v, want %v", r.events, want)
	}
}
