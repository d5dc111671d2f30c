package worker

import (
	"sync"
	"time"

	"crier/tenancy"
)

// reconcileLimiter limits how many reconciliations are in progress: in total, per organization and
// per destination. Destinations share the slots in the same way as they share permits. A
// destination that keeps failing must rest for increasingly long times. A reconcileLimiter is safe
// for concurrent use.
type reconcileLimiter struct {
	slots int
	rest  time.Duration // longest rest

	mu   sync.Mutex // protects the fields below
	open int
	orgs map[tenancy.OrgID]int // reconciliations in progress
	all  map[string]*reconcileTarget
}

type reconcileKey struct {
	org         tenancy.OrgID
	destination string
}

type reconcileTarget struct {
	open     int
	failures int // in a row
	until    time.Time
	// org is the organization to which all consecutive failures belong. It is zero if they belong
	// to several organizations.
	org tenancy.OrgID
}

const (
	reconcileSlots = 256
	// orgSlots bounds an organization's reconciliations in progress.
	orgSlots = 16
	// firstRest is how long a destination rests after its first failure. The time doubles with each
	// further failure, up to longestRest.
	firstRest   = 5 * time.Second
	longestRest = 2 * time.Minute
	// maxTargets is the maximum number of failed destinations that are remembered. maxOrgTargets is
	// the maximum per organization, counting only destinations that have failed for no other
	// organization.
	maxTargets    = 4096
	maxOrgTargets = 64
	// targetLife is how long a failed destination is remembered after its rest ends.
	targetLife = 10 * longestRest
)

func newReconcileLimiter(rest time.Duration) *reconcileLimiter {
	return &reconcileLimiter{
		slots: reconcileSlots, rest: min(rest, longestRest),
		orgs: map[tenancy.OrgID]int{}, all: map[string]*reconcileTarget{},
	}
}

func (l *reconcileLimiter) resting(now time.Time) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, x := range l.all {
		if now.Before(x.until) {
			out = append(out, name)
		}
	}
	return out
}

// admit takes a slot and reports whether it got one. A destination that has failed gets only one
// slot at a time.
func (l *reconcileLimiter) admit(k reconcileKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.orgs[k.org] >= orgSlots {
		return false
	}
	x := l.all[k.destination]
	if x == nil {
		x = &reconcileTarget{}
		l.all[k.destination] = x
	}
	if x.open >= l.slots-l.open || x.failures > 0 && x.open > 0 {
		return false
	}
	x.open++
	l.open++
	l.orgs[k.org]++
	return true
}

// done releases a slot. asked means that the destination was queried, and failed means that it did
// not respond.
func (l *reconcileLimiter) done(k reconcileKey, asked, failed bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	l.orgs[k.org]--
	if l.orgs[k.org] == 0 {
		delete(l.orgs, k.org)
	}
	x := l.all[k.destination]
	x.open--
	switch {
	case asked && failed:
		x.fail(k.org)
		x.until = now.Add(min(l.rest, firstRest<<min(x.failures-1, 10)))
		l.evict(k.org, now)
	case asked:
		x.failures, x.until = 0, time.Time{}
	}
	if x.open == 0 && x.failures == 0 {
		delete(l.all, k.destination)
	}
}

func (x *reconcileTarget) fail(org tenancy.OrgID) {
	x.failures++
	if x.failures == 1 {
		x.org = org
	} else if x.org != org {
		x.org = tenancy.OrgID{}
	}
}

// evict forgets destinations that failed long ago. If too many failed destinations remain, either
// for this organization alone or in total, it also forgets the one whose rest ends first.
//
// The limit per organization is applied first. An organization chooses the hosts of its channels,
// and failures of these hosts should not evict other destinations.
func (l *reconcileLimiter) evict(org tenancy.OrgID, now time.Time) {
	own, all := earliest{}, earliest{}
	for name, x := range l.all {
		switch {
		case x.failures == 0:
		case x.open == 0 && now.Sub(x.until) > targetLife:
			delete(l.all, name)
		default:
			all.add(name, x)
			if !org.IsZero() && x.org == org {
				own.add(name, x)
			}
		}
	}
	switch {
	case own.count > maxOrgTargets:
		delete(l.all, own.name)
	case all.count > maxTargets:
		delete(l.all, all.name)
	}
}

// earliest finds, among the failed destinations without a reconciliation in progress, the one whose
// rest ends first.
type earliest struct {
	count int // number of failed destinations
	name  string
	until time.Time
}

func (e *earliest) add(name string, x *reconcileTarget) {
	if e.count++; x.open == 0 && (e.name == "" || x.until.Before(e.until)) {
		e.name, e.until = name, x.until
	}
}
