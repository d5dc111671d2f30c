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

// desk notes offers, as a worker pool that never grants by itself.
type desk struct {
	mu     sync.Mutex
	offers []int
}

func (d *desk) Offer(_ tenancy.OrgID, permits int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.offers = append(d.offers, permits)
}

func (d *desk) seen() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]int{}, d.offers...)
}

// open returns a client of its own host, closed when the test ends.
func open(t *testing.T, cfg org.Config, net cluster.Config, d org.Dispatcher) *org.Client {
	t.Helper()
	c, err := org.New(cfg, net, clock.System{}, slog.New(slog.DiscardHandler), d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, c) })
	return c
}

func start(t *testing.T, cfg org.Config) (*org.Client, *desk) {
	t.Helper()
	d := &desk{}
	cfg.Budget = 250 * time.Millisecond
	return open(t, cfg, cluster.Config{}, d), d
}

func stop(t *testing.T, c *org.Client) {
	t.Helper()
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestAdmitCountsAWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := start(t, org.Config{Limit: 3, InFlight: 1})
		mine, other := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
		for i := range 3 {
			if a := c.Admit(t.Context(), mine); !a.Allowed || a.Remaining != 2-i || a.Limit != 3 {
				t.Fatalf("request %d: %+v", i+1, a)
			}
		}
		if a := c.Admit(t.Context(), mine); a.Allowed || a.RetryAfter != time.Minute {
			t.Fatalf("the fourth: %+v", a)
		}
		if a := c.Admit(t.Context(), other); !a.Allowed {
			t.Fatalf("another organization: %+v", a)
		}
		time.Sleep(time.Minute)
		if a := c.Admit(t.Context(), mine); !a.Allowed || a.Remaining != 2 {
			t.Fatalf("a minute later: %+v", a)
		}
	})
}

// stuck is a worker pool that takes no offer until it is let go.
type stuck chan struct{}

func (s stuck) Offer(tenancy.OrgID, int) { <-s }

func TestTooManyWaitingRequestsOfOneOrganizationAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pool := make(stuck)
		c := open(t, org.Config{Limit: 1000, InFlight: 1, Budget: time.Minute}, cluster.Config{}, pool)
		mine, other := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
		c.Wake(t.Context(), mine, time.Now()) // its actor hangs in the offer
		answers := make(chan org.Admission, 300)
		for range cap(answers) {
			go func() { answers <- c.Admit(t.Context(), mine) }()
		}
		synctest.Wait()
		if n := len(answers); n != 44 || c.Busy() != 44 {
			t.Errorf("%d of 300 are answered while the actor hangs; busy: %d", n, c.Busy())
		}
		for range len(answers) {
			if a := <-answers; a.Allowed || a.RetryAfter != time.Second || a.Limit != 1000 {
				t.Fatalf("%+v", a)
			}
		}
		if a := c.Admit(t.Context(), other); !a.Allowed {
			t.Errorf("another organization: %+v", a)
		}
		close(pool)
		synctest.Wait()
		if n := len(answers); n != 256 {
			t.Errorf("%d are answered afterwards", n)
		}
		if a := c.Admit(t.Context(), mine); !a.Allowed || a.Remaining != 1000-257 {
			t.Errorf("the next: %+v", a)
		}
	})
}

func TestWithoutItsActorTheNodeAdmitsUpToTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		c, err := org.New(org.Config{Limit: 2, InFlight: 1}, cluster.Config{}, clock.System{}, log, &desk{})
		if err != nil {
			t.Fatal(err)
		}
		stop(t, c)
		mine := id.New[tenancy.OrgTag]()
		for i, want := range []bool{true, true, false} {
			if a := c.Admit(t.Context(), mine); a.Allowed != want || a.Limit != 2 {
				t.Fatalf("request %d: %+v", i+1, a)
			}
		}
	})
}

func TestTheTimerOffersWhenSomethingIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d := start(t, org.Config{Limit: 1, InFlight: 4})
		mine := id.New[tenancy.OrgTag]()
		c.Wake(t.Context(), mine, time.Now().Add(30*time.Second))
		c.Wake(t.Context(), mine, time.Now().Add(10*time.Second)) // the earlier one counts
		c.Wake(t.Context(), mine, time.Now().Add(time.Hour))      // left to the sweep
		time.Sleep(9 * time.Second)
		if got := d.seen(); len(got) != 0 {
			t.Fatalf("offered %v before the time", got)
		}
		time.Sleep(2 * time.Second)
		if got := d.seen(); len(got) != 1 || got[0] != 4 {
			t.Fatalf("offered %v", got)
		}
	})
}

func TestOneOfferAtATimeAndNeverMoreThanItsShareUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d := start(t, org.Config{Limit: 1, InFlight: 4})
		mine := id.New[tenancy.OrgTag]()
		for range 5 {
			c.Wake(t.Context(), mine, time.Now())
		}
		synctest.Wait()
		if got := d.seen(); len(got) != 1 {
			t.Fatalf("offered %v while one was out", got)
		}
		soon := time.Now().Add(-time.Second)
		c.Granted(mine, 3, &soon, time.Now()) // three under way, and there is more
		synctest.Wait()
		if got := d.seen(); len(got) != 2 || got[1] != 1 {
			t.Fatalf("offered %v, the second should ask for what is left", got)
		}
		c.Granted(mine, 1, &soon, time.Now())
		synctest.Wait()
		if got := d.seen(); len(got) != 2 {
			t.Fatalf("offered %v with its share under way", got)
		}
		c.Done(mine, 2, false)
		synctest.Wait()
		if got := d.seen(); len(got) != 3 || got[2] != 2 {
			t.Fatalf("offered %v after two ended", got)
		}
	})
}

func TestDone_AsksForNothingWhenItIsWokenLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d := start(t, org.Config{Limit: 1, InFlight: 4})
		mine := id.New[tenancy.OrgTag]()
		c.Wake(t.Context(), mine, time.Now())
		synctest.Wait()
		c.Granted(mine, 2, nil, time.Now()) // two under way, and no more is known
		for waits, want := range map[bool]int{true: 0, false: 1} {
			before := len(d.seen())
			c.Done(mine, 1, waits)
			synctest.Wait()
			if got := len(d.seen()) - before; got != want {
				t.Errorf("it asks %d times after a post ended that waits: %t, want %d", got, waits, want)
			}
		}
	})
}

func TestALockedHeadIsAskedForAgainSoonButNotAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d := start(t, org.Config{Limit: 1, InFlight: 4})
		mine := id.New[tenancy.OrgTag]()
		c.Wake(t.Context(), mine, time.Now())
		synctest.Wait()
		due := time.Now()
		c.Granted(mine, 0, &due, time.Now())
		time.Sleep(10 * time.Millisecond)
		if got := d.seen(); len(got) != 1 {
			t.Fatalf("offered %v at once", got)
		}
		time.Sleep(50 * time.Millisecond)
		if got := d.seen(); len(got) != 2 {
			t.Fatalf("offered %v", got)
		}
	})
}

func TestTheDatabasesClockDecidesWhatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d := start(t, org.Config{Limit: 1, InFlight: 4})
		c.SetNow(time.Now().Add(20*time.Second), time.Now()) // the database is ahead
		c.Wake(t.Context(), id.New[tenancy.OrgTag](), time.Now().Add(25*time.Second))
		time.Sleep(6 * time.Second)
		if got := d.seen(); len(got) != 1 {
			t.Fatalf("offered %v", got)
		}
	})
}

func TestAnIdleActorSleepsAndWakesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, d := start(t, org.Config{Limit: 5, InFlight: 4})
		mine := id.New[tenancy.OrgTag]()
		c.Admit(t.Context(), mine)
		time.Sleep(15 * time.Minute)
		if n := c.Awake(); n != 0 {
			t.Fatalf("%d actors are awake", n)
		}
		if a := c.Admit(t.Context(), mine); !a.Allowed || a.Remaining != 4 {
			t.Fatalf("%+v", a)
		}
		c.Wake(t.Context(), mine, time.Now())
		synctest.Wait()
		if got := d.seen(); len(got) != 1 {
			t.Fatalf("offered %v", got)
		}
	})
}
