package worker

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"crier/platform/clock"
	"crier/platform/id"
	publishingservice "crier/publishing/service"
	"crier/tenancy"
)

func TestRates(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rates{
		"": {}, "x=100/15m": {"x": {100, 15 * time.Minute}}, " x=1/1s , y=600/1m,": {"x": {1, time.Second}, "y": {600, time.Minute}},
	} {
		var got Rates
		if err := got.UnmarshalText([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"x", "x=1", "x=/1s", "x=0/1s", "x=-1/1s", "x=1/0s", "x=1/s", "=1/1s", "x=1/1us", "x=10000000/1s", "x=1/1s;y=1/1s"} {
		var got Rates
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}

// platform is a queue of due posts behind limits, as claims see it.
type platform struct {
	mu     sync.Mutex
	due    int
	woken  []tenancy.OrgID
	bucket func(n int) (int, time.Duration, error)
	asked  int
}

func (p *platform) Take(_ context.Context, _ string, _ int, _ time.Duration, n int) (int, time.Duration, error) {
	p.asked++
	return p.bucket(n)
}

func (p *platform) limits(rates Rates, caps map[string]int) *limits {
	return newLimits(rates, caps, &limits{bucket: p, clock: clock.System{}, log: slog.New(slog.DiscardHandler),
		heads: func(context.Context, publishingservice.Lease, []publishingservice.Want, []string) (map[string]int, error) {
			return map[string]int{"x": p.due}, nil
		},
		wake: func(org tenancy.OrgID) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.woken = append(p.woken, org)
		},
	})
}

func (p *platform) awake() int {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.woken)
}

// claim takes what is allowed, and tells how many that were.
func (p *platform) claim(t *testing.T, l *limits) int {
	t.Helper()
	open, err := l.open(t.Context(), publishingservice.Lease{Shards: make([]int16, tenancy.Shards/4)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := min(p.due, open["x"])
	p.due -= n
	var claimed []publishingservice.Claimed
	for range n {
		claimed = append(claimed, publishingservice.Claimed{Connector: "x"})
	}
	l.taken(append(claimed, publishingservice.Claimed{Connector: "free"}))
	return n
}

func someone() tenancy.OrgID { return id.FromUUID[tenancy.OrgTag](uuid.New()) }

func TestACapOfPostsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &platform{due: 5}
		l := p.limits(nil, map[string]int{"x": 2, "none": 0})
		defer l.close()
		if a, b := p.claim(t, l), p.claim(t, l); a != 2 || b != 0 {
			t.Fatalf("claimed %d, then %d", a, b)
		}
		first, second := someone(), someone()
		l.hold(first, []string{"x", "unknown"})
		l.hold(second, []string{"x"})
		l.hold(first, []string{"x"})
		time.Sleep(time.Minute)
		if n := p.awake(); n != 0 {
			t.Fatalf("%d are woken although nothing is free", n)
		}
		l.done("x")
		l.done("free")
		if p.awake() != 1 || p.woken[0] != first {
			t.Fatalf("woken: %v, the first is %v", p.woken, first)
		}
		if n := p.claim(t, l); n != 1 {
			t.Fatalf("%d for one that ended", n)
		}
		l.done("x")
		l.done("x")
		if p.awake() != 2 || p.woken[1] != second {
			t.Fatalf("woken: %v, the second is %v", p.woken, second)
		}
		l.hold(first, []string{"x"}) // there is room again
		if p.awake() != 3 {
			t.Fatal("one who comes when there is room is not woken")
		}
	})
}

func TestARateOverAllProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		left := 3
		p := &platform{due: 10}
		p.bucket = func(n int) (int, time.Duration, error) {
			got := min(n, left)
			left -= got
			return got, time.Second, nil
		}
		l := p.limits(Rates{"x": {3, 3 * time.Second}}, nil)
		defer l.close()
		if a, b := p.claim(t, l), p.claim(t, l); a != 3 || b != 0 {
			t.Fatalf("claimed %d, then %d", a, b)
		}
		for range 3 {
			l.hold(someone(), []string{"x"})
		}
		if n := p.awake(); n != 0 {
			t.Fatalf("%d are woken at once", n)
		}
		for want := 1; want <= 3; want++ {
			time.Sleep(1050 * time.Millisecond)
			left++
			if n := p.awake(); n != want {
				t.Fatalf("%d are woken after %d s", n, want)
			}
			if n := p.claim(t, l); n != 1 {
				t.Fatalf("claimed %d in second %d", n, want)
			}
		}
		p.due, left = 0, 5
		if asked := p.asked; p.claim(t, l) != 0 || p.asked != asked {
			t.Error("the bucket is asked although nothing is due")
		}
	})
}

func TestRate_WithoutABucketIsThePartOfThisProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &platform{due: 1000}
		l := p.limits(Rates{"x": {40, 4 * time.Second}}, nil)
		l.bucket = nil
		defer l.close()
		if n := p.claim(t, l); n != 10 {
			t.Fatalf("a process with a quarter of the shards claims %d of 40 at once, want 10", n)
		}
		if n := p.claim(t, l); n != 0 {
			t.Fatalf("%d more are claimed at the same time, want 0", n)
		}
		time.Sleep(time.Second)
		if n := p.claim(t, l); n < 2 || n > 3 {
			t.Errorf("%d are claimed after a second, want a quarter of 10", n)
		}
	})
}

func TestARateWithoutItsBucket(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &platform{due: 1000}
		p.bucket = func(int) (int, time.Duration, error) { return 0, 0, errors.New("away") }
		l := p.limits(Rates{"x": {40, 4 * time.Second}}, nil)
		defer l.close()
		if n := p.claim(t, l); n != 10 {
			t.Fatalf("a process with a quarter of the shards claims %d of 40 at once", n)
		}
		asked, sum := p.asked, 0
		for range 99 {
			time.Sleep(10 * time.Millisecond)
			sum += p.claim(t, l)
		}
		if sum < 2 || sum > 3 || p.asked != asked {
			t.Errorf("%d in a second of 10 for four processes; asked %d times while it is away", sum, p.asked-asked)
		}
		p.bucket = func(n int) (int, time.Duration, error) { return n, 0, nil }
		time.Sleep(time.Second)
		if n := p.claim(t, l); n < 100 {
			t.Errorf("%d once the bucket is back", n)
		}
	})
}
