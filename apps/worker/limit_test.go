package worker

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

func TestRates_UnmarshalText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Rates{
		"": {}, "x=100/15m": {"x": {Posts: 100, Per: 15 * time.Minute}}, " x=1/1s , y=600/1m,": {"x": {Posts: 1, Per: time.Second}, "y": {Posts: 600, Per: time.Minute}},
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

// platform is a rate bucket, limits that use it, and a recorder of the organizations that they
// wake.
type platform struct {
	*wakeRecorder
	*limits

	state  sync.Mutex // guards the fields below
	bucket func(n int) (int, time.Duration, error)
	asked  int
	free   int
}

// set changes the state under the lock.
func (p *platform) set(change func()) {
	p.state.Lock()
	defer p.state.Unlock()
	change()
}

func (p *platform) Take(_ context.Context, _ string, _ int, _ time.Duration, n int) (int, time.Duration, error) {
	p.state.Lock()
	defer p.state.Unlock()
	p.asked++
	return p.bucket(n)
}

func newPlatform(r Rate, bucket func(n int) (int, time.Duration, error)) *platform {
	p := &platform{wakeRecorder: &wakeRecorder{}, bucket: bucket, free: 1000}
	p.limits = newLimits(Rates{"x": r}, &limits{
		bucket: p, wake: p.wakeRecorder.wake, free: p.permits, share: func() float64 { return .25 },
		clock: clock.System{}, log: slog.New(slog.DiscardHandler),
	})
	return p
}

func (p *platform) permits() int {
	p.state.Lock()
	defer p.state.Unlock()
	return p.free
}

// shared returns a bucket that allows exactly the rate r.
func shared(r Rate) func(n int) (int, time.Duration, error) {
	l := rate.NewLimiter(rate.Every(r.gap()), r.Posts)
	return func(n int) (got int, wait time.Duration, err error) {
		for got < n && l.AllowN(time.Now(), 1) {
			got++
		}
		if got < n {
			wait = r.gap()
		}
		return got, wait, nil
	}
}

// claim claims as many of the due posts as the limits allow and returns their number.
func (p *platform) claim(due int) int {
	n := min(due, p.left()["x"])
	p.spend(append(slices.Repeat([]dispatch.Claimed{{Connector: "x"}}, n), dispatch.Claimed{Connector: "free"}))
	return n
}

// burst claims for the duration d, for an organization that always has more posts.
func (p *platform) burst(d time.Duration) (sum int) {
	defer synctest.Wait()
	org := id.New[tenancy.OrgTag]()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if sum += p.claim(1000); p.left()["x"] == 0 {
			p.enqueue(org, "x")
		}
	}
	return sum
}

func TestRate_WakesWaitingAsTokensArrive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tokens := 2
		p := newPlatform(Rate{Posts: 12, Per: 12 * time.Second}, func(n int) (int, time.Duration, error) {
			got, wait := min(n, tokens), time.Duration(0)
			if tokens -= got; got < n {
				wait = time.Second
			}
			return got, wait, nil
		})
		defer p.close()
		time.Sleep(time.Minute)
		if n := p.claim(10); n != 0 || p.asked != 0 {
			t.Fatalf("%d are claimed, and the bucket is asked %d times although nobody waits", n, p.asked)
		}
		p.set(func() { p.free = 0 }) // so that all organizations wait
		orgs := make([]tenancy.OrgID, 4)
		for i := range orgs {
			orgs[i] = id.New[tenancy.OrgTag]()
			p.enqueue(orgs[i], "x")
			p.enqueue(orgs[i], "x")
			p.enqueue(orgs[i], "unknown")
		}
		p.set(func() { p.free = 1000 })
		time.Sleep(100 * time.Millisecond)
		if n := p.count(); n != 2 || p.claim(10) != 2 || p.claim(10) != 0 {
			t.Fatalf("%d are woken for two tokens, want 2 and as many posts", n)
		}
		for want := 3; want <= 4; want++ {
			time.Sleep(500 * time.Millisecond)
			p.set(func() { tokens++ })
			for p.count() < want {
				time.Sleep(10 * time.Millisecond)
			}
			if n := p.count(); n != want || p.claim(10) != 1 {
				t.Fatalf("%d are woken, want one more and one post for each token", n)
			}
		}
		if !slices.Equal(p.woken, orgs) {
			t.Errorf("woken are %v, want %v", p.woken, orgs)
		}
	})
}

// The posts of a waiting organization may be paused, edited or deleted before its turn.
func TestRate_UnusedTokenGoesToNextInLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := Rate{Posts: 60, Per: time.Hour}
		p := newPlatform(r, shared(r))
		defer p.close()
		for range r.Posts {
			if _, _, err := p.bucket(1); err != nil {
				t.Fatal(err)
			}
		}
		for range 5 {
			p.enqueue(id.New[tenancy.OrgTag](), "x")
		}
		last := id.New[tenancy.OrgTag]()
		p.enqueue(last, "x")
		began := time.Now()
		for p.count() < 6 {
			time.Sleep(100 * time.Millisecond)
		}
		if waited := time.Since(began); waited > r.gap()+tokenLife {
			t.Errorf("the last of six is woken after %v, want it to have the token that five did not use", waited)
		}
	})
}

// Tokens that were taken but not used must not be used together with the tokens of a later period.
func TestRate_HoldsAfterUnusedTokens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := Rate{Posts: 40, Per: 40 * time.Second}
		bucket := shared(r)
		var all []*platform
		for range 3 {
			p := newPlatform(r, bucket)
			defer p.close()
			for range 40 {
				p.enqueue(id.New[tenancy.OrgTag](), "x") // this organization does not claim
			}
			all = append(all, p)
		}
		time.Sleep(time.Hour)
		sum := 0
		for _, p := range all {
			sum += p.burst(10 * time.Second)
		}
		// The sum is lower if a process did not use a token.
		if want := r.Posts + 30; sum < want-10 || sum > want {
			t.Errorf("%d posts are sent within 30 s of a rate of 40 in 40 s, want %d", sum, want)
		}
	})
}

func TestRate_LeavesTokensToOtherProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := Rate{Posts: 40, Per: time.Hour}
		most := 0
		bucket := shared(r)
		p := newPlatform(r, func(n int) (int, time.Duration, error) {
			most = max(most, n)
			return bucket(n)
		})
		defer p.close()
		p.set(func() { p.free = 0 })
		for range 100 {
			p.enqueue(id.New[tenancy.OrgTag](), "x")
		}
		time.Sleep(time.Second)
		if synctest.Wait(); p.asked != 0 {
			t.Error("a process without permits takes tokens")
		}
		p.set(func() { p.free = 1000 })
		time.Sleep(time.Second)
		if synctest.Wait(); p.claim(1000) != 10 || most != 10 {
			t.Errorf("it asks for %d of 40 tokens at once, want a quarter", most)
		}
	})
}

func TestRate_OneOrganizationMayUseAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := Rate{Posts: 600, Per: time.Minute}
		p := newPlatform(r, shared(r))
		defer p.close()
		if n := p.burst(time.Minute); n < 1100 || n > 1200 {
			t.Errorf("%d posts in a minute, want those of a full bucket and of a minute", n)
		}
	})
}

func TestRate_WithoutBucketProcessUsesItsShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(Rate{Posts: 40, Per: 4 * time.Second}, nil)
		p.limits.bucket = nil
		defer p.close()
		if n := p.burst(2 * time.Second); n < 13 || n > 15 {
			t.Errorf("a process with a quarter of the shards sends %d posts in 2 s of 40 in 4 s, want 10 at once and 5", n)
		}
	})
}

func TestRate_BucketErrorLeavesShareOfProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(Rate{Posts: 40, Per: 4 * time.Second}, func(int) (int, time.Duration, error) { return 0, 0, errors.New("away") })
		defer p.close()
		if n := p.burst(2 * time.Second); n < 13 || n > 15 || p.asked > 3 {
			t.Errorf("a process with a quarter of the shards sends %d posts, want 15; it asks %d times while nobody answers", n, p.asked)
		}
		p.set(func() { p.bucket = func(n int) (int, time.Duration, error) { return n, 0, nil } })
		if n := p.burst(3 * time.Second); n < 100 {
			t.Errorf("%d once the bucket is back", n)
		}
	})
}

func TestRate_AsksTheBucketAgainWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPlatform(Rate{Posts: 40, Per: 4 * time.Second}, func(int) (int, time.Duration, error) { return 0, time.Hour, nil })
		defer p.close()
		p.enqueue(id.New[tenancy.OrgTag](), "x")
		synctest.Wait()
		p.set(func() { p.bucket = func(n int) (int, time.Duration, error) { return n, 0, nil } })
		time.Sleep(maxPause)
		if synctest.Wait(); p.count() != 1 {
			t.Errorf("%d are woken a second after a bucket that answered an hour has tokens again, want 1", p.count())
		}
	})
}
