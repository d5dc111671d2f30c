package worker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// wakeRecorder collects the organizations that are woken.
type wakeRecorder struct {
	mu    sync.Mutex
	woken []tenancy.OrgID
}

func (s *wakeRecorder) wake(org tenancy.OrgID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken = append(s.woken, org)
}

// newTestDestinations returns destinations, a recorder of their wake-ups, and the number of free
// permits.
func newTestDestinations() (s *wakeRecorder, p *destinations, free *atomic.Int64) {
	s, free = &wakeRecorder{}, new(atomic.Int64)
	return s, newDestinations(s.wake, func() int { return int(free.Load()) }, clock.System{}), free
}

func TestDestinations_WakeWaitingWhenPermitsAreFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p, free := newTestDestinations()
		first, second := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
		for range 3 {
			p.take("@hangs")
		}
		free.Store(3)
		p.enqueue("@hangs", first)
		p.enqueue("@hangs", first)
		p.enqueue("@hangs", second)
		if synctest.Wait(); len(s.woken) != 0 {
			t.Fatalf("%d are woken while the destination holds as much as is free", len(s.woken))
		}
		p.take("@healthy")
		free.Store(4)
		p.release("@healthy") // a permit of another destination counts as well
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

func (s *wakeRecorder) count() int {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.woken)
}

// A claim without a result costs as much as one with a result, so no organization is woken in vain.
func TestDestinations_WakeNoMoreThanPermitsAllow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p, free := newTestDestinations()
		for range 100 {
			p.take("@hangs")
		}
		for range 50 {
			free.Store(100)
			p.enqueue("@hangs", id.New[tenancy.OrgTag]())
		}
		for n := range 8 {
			free.Store(int64(101 + n))
			p.release("@hangs") // permits for eight more posts, from four organizations
		}
		if n := s.count(); n != 4 {
			t.Fatalf("%d are woken for eight permits, want 4", n)
		}
		free.Store(108)
		p.claimed([]dispatch.Want{{Org: s.woken[0]}})
		if n := s.count(); n != 5 {
			t.Errorf("%d are woken when one of them has claimed nothing, want 5", n)
		}
		time.Sleep(wakeUpLife) // the woken organizations do not claim
		if n := s.count(); n != 9 {
			t.Errorf("%d are woken after a second without answers, want 9", n)
		}
		p.close()
		time.Sleep(10 * wakeUpLife)
		if n := s.count(); n != 9 {
			t.Errorf("%d are woken after the end, want 9", n)
		}
	})
}

// However many lines there are, none depends on a permit of its own destination.
func TestDestinations_SearchAllLinesEverySecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p, free := newTestDestinations()
		defer p.close()
		const lines = 5 * maxDestinations
		for n := range lines {
			name := fmt.Sprintf("@host-%d", n)
			p.take(name)
			p.enqueue(name, id.New[tenancy.OrgTag]())
		}
		free.Store(100)
		p.release("@another")
		if n := s.count(); n != maxDestinations {
			t.Fatalf("%d are woken by one permit that came back, want %d", n, maxDestinations)
		}
		time.Sleep(wakeUpLife)
		if n := s.count(); n != lines {
			t.Errorf("%d are woken after a second, want %d", n, lines)
		}
	})
}

func TestDestinations_SweepSkipsOrganizationsInLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, p, free := newTestDestinations()
		defer p.close()
		org, other := id.New[tenancy.OrgTag](), id.New[tenancy.OrgTag]()
		p.take("@hangs")
		if p.join("@hangs", org) || p.isWaiting(org) {
			t.Error("it waits although nobody else does")
		}
		free.Store(1)
		p.enqueue("@hangs", org)
		if !p.join("@hangs", other) || p.join("@healthy", other) || !p.isWaiting(org) || !p.isWaiting(other) {
			t.Error("it does not wait behind another for the same destination, or for one without a line")
		}
		time.Sleep(maxQueued)
		if p.isWaiting(org) {
			t.Error("the sweep leaves it out for ever")
		}
		free.Store(2)
		p.release("@hangs")
		if s.count(); len(s.woken) == 0 || s.woken[0] != org || p.isWaiting(org) {
			t.Errorf("woken are %v", s.woken)
		}
	})
}
