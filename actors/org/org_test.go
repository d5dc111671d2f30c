package org_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"crier/actors/cluster"
	"crier/actors/org"
	"crier/platform/clock"
	"crier/platform/id"
	"crier/tenancy"
)

// offerRecorder is an OfferQueue that records offers and does not respond to them.
type offerRecorder struct {
	mu     sync.Mutex
	offers []int
}

func (d *offerRecorder) Offer(_ tenancy.OrgID, permits int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.offers = append(d.offers, permits)
}

func (d *offerRecorder) seen() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]int{}, d.offers...)
}

// placement returns the owner of a shard; see org.Deps.
type placement = func(shard int16) (address string, here bool)

// open returns a client with a separate host that owns every shard. The client is closed when the
// test ends.
func open(t *testing.T, cfg org.Config, net cluster.Config, offers org.OfferQueue) *org.Client {
	t.Helper()
	return openPlaced(t, cfg, net, offers, nil)
}

// openPlaced does the same as open, with a function that returns the owner of a shard.
func openPlaced(
	t *testing.T, cfg org.Config, net cluster.Config, offers org.OfferQueue, place placement,
) *org.Client {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	c, err := org.New(cfg, net, org.Deps{Offers: offers, Place: place, Clock: clock.System{}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, c) })
	return c
}

func start(t *testing.T, cfg org.Config) (*org.Client, *offerRecorder) {
	t.Helper()
	d := &offerRecorder{}
	cfg.Timeout = 250 * time.Millisecond
	return open(t, cfg, cluster.Config{}, d), d
}

func stop(t *testing.T, c *org.Client) {
	t.Helper()
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestAdmit_LimitsRequestsPerMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, org.Config{Limit: 3, MaxInFlight: 1})
		mine, other := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
		for i := range 3 {
			if a := c.Admit(t.Context(), mine); !a.Allowed || a.Remaining != 2-i || a.Limit != 3 {
				t.Fatalf("request %d: got %+v", i+1, a)
			}
		}
		if a := c.Admit(t.Context(), mine); a.Allowed || a.RetryAfter != time.Minute {
			t.Fatalf("the fourth request: got %+v, want a refusal for a minute", a)
		}
		if a := c.Admit(t.Context(), other); !a.Allowed {
			t.Fatalf("another organization: got %+v, want an admission", a)
		}
		time.Sleep(time.Minute)
		if a := c.Admit(t.Context(), mine); !a.Allowed || a.Remaining != 2 {
			t.Fatalf("a minute later: got %+v, want an admission with 2 left", a)
		}
	})
}

// blockedPool is an OfferQueue whose Offer blocks until the channel is closed.
type blockedPool chan struct{}

func (s blockedPool) Offer(tenancy.OrgID, int) { <-s }

func TestAdmit_TooManyWaitingAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := make(blockedPool)
		c := open(t, org.Config{Limit: 1000, MaxInFlight: 1, Timeout: time.Minute}, cluster.Config{}, pool)
		mine, other := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
		c.Wake(t.Context(), mine, time.Now()) // its actor hangs in the offer
		answers := make(chan org.Admission, 300)
		for range cap(answers) {
			go func() { answers <- c.Admit(t.Context(), mine) }()
		}
		synctest.Wait()
		if n := len(answers); n != 44 || c.Busy() != 44 {
			t.Errorf("got %d answers and Busy %d while the actor hangs, want 44 and 44", n, c.Busy())
		}
		for range len(answers) {
			if a := <-answers; a.Allowed || a.RetryAfter != time.Second || a.Limit != 1000 {
				t.Fatalf("got %+v, want a refusal for a second with limit 1000", a)
			}
		}
		if a := c.Admit(t.Context(), other); !a.Allowed {
			t.Errorf("another organization: got %+v, want an admission", a)
		}
		close(pool)
		synctest.Wait()
		if n := len(answers); n != 256 {
			t.Errorf("got %d answers after the actor goes on, want 256", n)
		}
		if a := c.Admit(t.Context(), mine); !a.Allowed || a.Remaining != 1000-257 {
			t.Errorf("the next request: got %+v, want an admission with 743 left", a)
		}
	})
}

func TestAdmit_ClosedHostAdmitsUpToLocalLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		deps := org.Deps{Offers: &offerRecorder{}, Clock: clock.System{}, Log: log}
		c, err := org.New(org.Config{Limit: 2, MaxInFlight: 1}, cluster.Config{}, deps)
		if err != nil {
			t.Fatal(err)
		}
		stop(t, c)
		mine := id.New[tenancy.OrgTag]()
		for i, want := range []bool{true, true, false} {
			if a := c.Admit(t.Context(), mine); a.Allowed != want || a.Limit != 2 {
				t.Fatalf("request %d: got %+v, want allowed %t and limit 2", i+1, a, want)
			}
		}
	})
}

func TestWake_OffersWhenDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d := start(t, org.Config{Limit: 1, MaxInFlight: 4})
		mine := id.New[tenancy.OrgTag]()
		c.Wake(t.Context(), mine, time.Now().Add(30*time.Second))
		c.Wake(t.Context(), mine, time.Now().Add(10*time.Second)) // the earlier time counts
		c.Wake(t.Context(), mine, time.Now().Add(time.Hour))      // left to the sweep
		time.Sleep(9 * time.Second)
		if got := d.seen(); len(got) != 0 {
			t.Fatalf("got offers %v before the earliest time, want none", got)
		}
		time.Sleep(2 * time.Second)
		if got := d.seen(); len(got) != 1 || got[0] != 4 {
			t.Fatalf("got offers %v, want [4]", got)
		}
	})
}

func TestGranted_OneOfferAtATimeWithinInFlightLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d := start(t, org.Config{Limit: 1, MaxInFlight: 4})
		mine := id.New[tenancy.OrgTag]()
		for range 5 {
			c.Wake(t.Context(), mine, time.Now())
		}
		synctest.Wait()
		if got := d.seen(); len(got) != 1 {
			t.Fatalf("got offers %v while one is unanswered, want one", got)
		}
		soon := time.Now().Add(-time.Second)
		c.Granted(mine, 3, &soon, time.Now()) // three are in flight, and another is due
		synctest.Wait()
		if got := d.seen(); len(got) != 2 || got[1] != 1 {
			t.Fatalf("got offers %v, want a second one of 1", got)
		}
		c.Granted(mine, 1, &soon, time.Now())
		synctest.Wait()
		if got := d.seen(); len(got) != 2 {
			t.Fatalf("got offers %v with the limit in flight, want two", got)
		}
		c.Done(mine, 2, false)
		synctest.Wait()
		if got := d.seen(); len(got) != 3 || got[2] != 2 {
			t.Fatalf("got offers %v after two posts ended, want a third one of 2", got)
		}
	})
}

func TestDone_OffersNothingWhenWokenLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d := start(t, org.Config{Limit: 1, MaxInFlight: 4})
		mine := id.New[tenancy.OrgTag]()
		c.Wake(t.Context(), mine, time.Now())
		synctest.Wait()
		c.Granted(mine, 2, nil, time.Now()) // two are in flight, and no other is known
		for waits, want := range map[bool]int{true: 0, false: 1} {
			before := len(d.seen())
			c.Done(mine, 1, waits)
			synctest.Wait()
			if got := len(d.seen()) - before; got != want {
				t.Errorf("got %d offers after Done with waits %t, want %d", got, waits, want)
			}
		}
	})
}

func TestGranted_LockedPostIsOfferedAgainAfterDelay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d := start(t, org.Config{Limit: 1, MaxInFlight: 4})
		mine := id.New[tenancy.OrgTag]()
		c.Wake(t.Context(), mine, time.Now())
		synctest.Wait()
		due := time.Now()
		c.Granted(mine, 0, &due, time.Now())
		time.Sleep(10 * time.Millisecond)
		if got := d.seen(); len(got) != 1 {
			t.Fatalf("got offers %v after 10 ms, want one", got)
		}
		time.Sleep(50 * time.Millisecond)
		if got := d.seen(); len(got) != 2 {
			t.Fatalf("got offers %v after 60 ms, want two", got)
		}
	})
}

func TestSetNow_DatabaseClockDecidesWhatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d := start(t, org.Config{Limit: 1, MaxInFlight: 4})
		c.SetNow(time.Now().Add(20*time.Second), time.Now()) // the database clock is ahead
		c.Wake(t.Context(), id.New[tenancy.OrgTag](), time.Now().Add(25*time.Second))
		time.Sleep(6 * time.Second)
		if got := d.seen(); len(got) != 1 {
			t.Fatalf("got offers %v, want one", got)
		}
	})
}

func TestActor_IdleStopsAndStartsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d := start(t, org.Config{Limit: 5, MaxInFlight: 4})
		mine := id.New[tenancy.OrgTag]()
		c.Admit(t.Context(), mine)
		time.Sleep(15 * time.Minute)
		if n := c.ActorCount(); n != 0 {
			t.Fatalf("got %d actors after 15 idle minutes, want 0", n)
		}
		if a := c.Admit(t.Context(), mine); !a.Allowed || a.Remaining != 4 {
			t.Fatalf("got %+v, want an admission with 4 left", a)
		}
		c.Wake(t.Context(), mine, time.Now())
		synctest.Wait()
		if got := d.seen(); len(got) != 1 {
			t.Fatalf("got offers %v, want one", got)
		}
	})
}
