package worker

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/publishing"
	"crier/tenancy"
)

// sleepers collects who is woken.
type sleepers struct {
	mu    sync.Mutex
	woken []tenancy.OrgID
}

func (s *sleepers) wake(org tenancy.OrgID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken = append(s.woken, org)
}

// newSleepers returns places without destinations, whom they wake, and how many permits are free.
func newSleepers() (s *sleepers, p *places, free *atomic.Int64) {
	s, free = &sleepers{}, new(atomic.Int64)
	return s, newPlaces(s.wake, func() int { return int(free.Load()) }, clock.System{}), free
}

func TestPlaces_WakesThoseWhoWaitWhenPermitsAreFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p, free := newSleepers()
		first, second := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
		for range 3 {
			p.take("@hangs")
		}
		free.Store(3)
		p.hold("@hangs", first)
		p.hold("@hangs", first)
		p.hold("@hangs", second)
		if synctest.Wait(); len(s.woken) != 0 {
			t.Fatalf("%d are woken while the destination holds as much as is free", len(s.woken))
		}
		p.take("@healthy")
		free.Store(4)
		p.release("@healthy") // another destination's permit makes room, too
		if synctest.Wait(); len(s.woken) != 1 || s.woken[0] != first {
			t.Fatalf("woken are %v, want the first in line", s.woken)
		}
		for n := range 3 {
			free.Store(int64(5 + n))
			p.release("@hangs")
		}
		if synctest.Wait(); len(s.woken) != 2 || len(p.all) != 0 || len(p.waiting) != 0 {
			t.Fatalf("woken are %v; kept are %d destinations, %d waiting", s.woken, len(p.all), len(p.waiting))
		}
	})
}

func (s *sleepers) count() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.woken)
}

// Every organization that claims in vain costs as much as one that gets something.
func TestPlaces_WakesNoMoreThanCanHavePermits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p, free := newSleepers()
		for range 100 {
			p.take("@hangs")
		}
		for range 50 {
			free.Store(100)
			p.hold("@hangs", id.New[tenancy.OrgTag]())
		}
		for n := range 8 {
			free.Store(int64(101 + n))
			p.release("@hangs") // room for eight more posts, of four organizations
		}
		if n := s.count(); n != 4 {
			t.Fatalf("%d are woken for eight permits, want 4", n)
		}
		free.Store(108)
		p.answered([]publishing.Want{{Org: s.woken[0]}})
		if n := s.count(); n != 5 {
			t.Errorf("%d are woken when one of them has claimed nothing, want 5", n)
		}
		time.Sleep(callFor) // those that were woken say nothing
		if n := s.count(); n != 9 {
			t.Errorf("%d are woken after a second without answers, want 9", n)
		}
		p.close()
		time.Sleep(10 * callFor)
		if n := s.count(); n != 9 {
			t.Errorf("%d are woken after the end, want 9", n)
		}
	})
}

// However many destinations have lines, none waits for a permit of its own to come back.
func TestPlaces_LooksThroughAllLinesEverySecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p, free := newSleepers()
		defer p.close()
		const lines = 5 * placesAtOnce
		for n := range lines {
			name := fmt.Sprintf("@host-%d", n)
			p.take(name)
			p.hold(name, id.New[tenancy.OrgTag]())
		}
		free.Store(100)
		p.release("@another")
		if n := s.count(); n != placesAtOnce {
			t.Fatalf("%d are woken by one permit that came back, want %d", n, placesAtOnce)
		}
		time.Sleep(callFor)
		if n := s.count(); n != lines {
			t.Errorf("%d are woken after a second, want %d", n, lines)
		}
	})
}

func TestPlaces_InALineItIsNotWokenBesides(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p, free := newSleepers()
		defer p.close()
		org, other := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
		p.take("@hangs")
		if p.join("@hangs", org) || p.waits(org) {
			t.Error("it waits although nobody else does")
		}
		free.Store(1)
		p.hold("@hangs", org)
		if !p.join("@hangs", other) || p.join("@healthy", other) || !p.waits(org) || !p.waits(other) {
			t.Error("it does not wait behind another for the same destination, or for one without a line")
		}
		time.Sleep(linedFor)
		if p.waits(org) {
			t.Error("the sweep leaves it out for ever")
		}
		free.Store(2)
		p.release("@hangs")
		if s.count(); len(s.woken) == 0 || s.woken[0] != org || p.waits(org) {
			t.Errorf("woken are %v", s.woken)
		}
	})
}

func TestLookouts_SharesSlotsAndBacksOff(t *testing.T) {
	t.Parallel()
	l := newLookouts(longestRest)
	l.slots = 12
	of := func(place string) asker { return asker{place: place} }
	admitted := map[string]int{}
	for range 20 {
		for _, place := range []string{"@a", "@b"} {
			if l.admit(of(place)) {
				admitted[place]++
			}
		}
	}
	if admitted["@a"] != 4 || admitted["@b"] != 4 || !l.admit(of("@c")) {
		t.Fatalf("two silent destinations take %v of 12 slots", admitted)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range 4 {
		l.done(of("@a"), true, true, now)
	}
	if resting := l.resting(now.Add(30 * time.Second)); len(resting) != 1 || resting[0] != "@a" {
		t.Fatalf("after four failures in a row rest %v", resting)
	}
	if resting := l.resting(now.Add(longestRest)); len(resting) != 0 {
		t.Fatalf("%v rest for ever", resting)
	}
	if !l.admit(of("@a")) || l.admit(of("@a")) {
		t.Fatal("a destination that failed is not asked one question at a time")
	}
	l.done(of("@a"), true, false, now)
	for range 2 {
		if !l.admit(of("@a")) {
			t.Fatal("a destination that answers again is asked one question at a time")
		}
	}
}

func TestLookouts_OneOrganizationTakesAPart(t *testing.T) {
	t.Parallel()
	l := newLookouts(longestRest)
	many, other := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
	admitted := 0
	for n := range 1000 {
		if l.admit(asker{many, fmt.Sprintf("@host-%d.example", n)}) {
			admitted++
		}
	}
	if admitted != orgSlots || !l.admit(asker{other, "@other.example"}) {
		t.Errorf("an organization with many hosts takes %d of %d slots", admitted, l.slots)
	}
	l.done(asker{many, "@host-0.example"}, true, false, time.Now())
	if !l.admit(asker{many, "@host-1000.example"}) || l.admit(asker{many, "@host-1001.example"}) {
		t.Error("a slot that is given back is not taken again, or twice")
	}
}

// failing asks a destination once, which fails, for each organization.
func failing(t *testing.T, l *lookouts, place string, now time.Time, orgs ...tenancy.OrgID) {
	t.Helper()
	for _, org := range orgs {
		a := asker{org, place}
		if !l.admit(a) {
			t.Fatalf("a question to %s must wait", place)
		}
		l.done(a, true, true, now)
	}
}

func TestLookouts_ForgetsTheOldestFailures(t *testing.T) {
	t.Parallel()
	l, now := newLookouts(longestRest), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	fill := func(day int) {
		for range lookoutsKept / orgLookouts {
			org := id.New[tenancy.OrgTag]()
			for range orgLookouts {
				failing(t, l, fmt.Sprintf("@%d-%d.example", day, len(l.all)), now, org)
			}
		}
	}
	fill(1)
	if len(l.all) != lookoutsKept {
		t.Fatalf("%d destinations are remembered, want %d", len(l.all), lookoutsKept)
	}
	now = now.Add(firstRest)
	failing(t, l, "@fails.example", now, id.New[tenancy.OrgTag]())
	if got := l.resting(now); len(got) != 1 || len(l.all) != lookoutsKept {
		t.Errorf("%v rest of %d that are remembered, want the last to fail of %d", got, len(l.all), lookoutsKept)
	}
	a := asker{id.New[tenancy.OrgTag](), "@fails.example"}
	if !l.admit(a) || l.admit(a) {
		t.Error("a destination that failed is not asked one question at a time beside many others that failed")
	}
	now = now.Add(lookoutFor + longestRest)
	failing(t, l, "@last.example", now, id.New[tenancy.OrgTag]())
	if len(l.all) != 2 || l.all["@fails.example"] == nil {
		t.Errorf("%d destinations are remembered long after they failed, want the last and the one that is asked", len(l.all))
	}
}

func TestLookouts_OneOrganizationPushesOnlyItsOwnOut(t *testing.T) {
	t.Parallel()
	l, now := newLookouts(longestRest), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	many, other := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
	failing(t, l, "@other.example", now, other)
	failing(t, l, "@shared.example", now, many, other)
	for n := range 2 * lookoutsKept {
		failing(t, l, fmt.Sprintf("@host-%d.example", n), now.Add(time.Second), many)
	}
	if got := l.resting(now); !slices.Contains(got, "@other.example") || !slices.Contains(got, "@shared.example") || len(l.all) != orgLookouts+2 {
		t.Errorf("%d destinations are remembered, want the %d of one organization and two that failed for another", len(l.all), orgLookouts)
	}
}
