package worker

import (
	"strings"
	"sync"
	"time"

	"crier/tenancy"
)

// places counts the permits that the posts of each destination hold, and keeps the organizations that wait for one. A
// destination gets a permit only while it holds fewer than are free: one server that hangs takes at most half of all
// permits, and n of them leave 1/(n+1). The claim applies the rule; places tells it the counts.
type places struct {
	wake func(tenancy.OrgID)

	mu      sync.Mutex
	all     map[string]*place
	waiting []string // destinations with organizations that wait, in the order in which they are served
}

// place is one destination.
type place struct {
	held int
	line []tenancy.OrgID
	in   map[tenancy.OrgID]bool // the line
}

// Bounds of one wake-up: the organizations claim anew, so too many of them would only meet the rule again.
const (
	placesAtOnce = 4
	wokenAtOnce  = 32
)

func newPlaces(wake func(tenancy.OrgID)) *places {
	return &places{wake: wake, all: map[string]*place{}}
}

// isPlace tells a destination from a platform in the list of what holds an organization back.
func isPlace(name string) bool { return strings.HasPrefix(name, "@") }

// busy is how many permits each destination holds.
func (p *places) busy() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make(map[string]int, len(p.all))
	for name, x := range p.all {
		if x.held > 0 {
			out[name] = x.held
		}
	}
	return out
}

// take books a permit for a destination.
func (p *places) take(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of(name).held++
}

func (p *places) of(name string) *place {
	x := p.all[name]
	if x == nil {
		x = &place{in: map[tenancy.OrgID]bool{}}
		p.all[name] = x
	}
	return x
}

// release gives a permit of a destination back; free is how many permits nobody holds then.
func (p *places) release(name string, free int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.all[name]; x != nil {
		x.held--
		p.forget(name, x)
	}
	p.serve(free)
}

// hold puts an organization into the line of a destination.
func (p *places) hold(name string, org tenancy.OrgID, free int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.of(name)
	if x.in[org] {
		return
	}
	if len(x.line) == 0 {
		p.waiting = append(p.waiting, name)
	}
	x.line, x.in[org] = append(x.line, org), true
	p.serve(free)
}

// serve wakes those who wait for destinations that may have permits now, a few destinations in turn. Were a wake-up
// lost, the sweep would make up for it.
func (p *places) serve(free int) {
	for range min(placesAtOnce, len(p.waiting)) {
		name := p.waiting[0]
		p.waiting = p.waiting[1:]
		x := p.all[name]
		for n := min(wokenAtOnce, (free-x.held+1)/2, len(x.line)); n > 0; n-- {
			org := x.line[0]
			x.line = x.line[1:]
			delete(x.in, org)
			go p.wake(org)
		}
		if len(x.line) > 0 {
			p.waiting = append(p.waiting, name)
		}
		p.forget(name, x)
	}
}

func (p *places) forget(name string, x *place) {
	if x.held <= 0 && len(x.line) == 0 {
		delete(p.all, name)
	}
}

// lookouts bounds the questions about unknown outcomes: as many at once as there are slots, a few of them for each
// organization, shared between destinations as permits are, and fewer and fewer to a destination that answers with
// errors.
type lookouts struct {
	slots int
	rest  time.Duration // the longest

	mu   sync.Mutex
	open int
	orgs map[tenancy.OrgID]int // open ones
	all  map[string]*lookout
}

// asker is whose question goes where.
type asker struct {
	org   tenancy.OrgID
	place string
}

type lookout struct {
	open     int
	failures int // in a row
	until    time.Time
}

// Bounds of the questions about unknown outcomes.
const (
	lookSlots    = 256
	orgSlots     = 16              // of one organization
	firstRest    = 5 * time.Second // after the first failure; it doubles
	longestRest  = 2 * time.Minute
	lookoutsKept = 4096 // destinations that are remembered although they are not asked now
)

func newLookouts(rest time.Duration) *lookouts {
	return &lookouts{slots: lookSlots, rest: min(rest, longestRest), orgs: map[tenancy.OrgID]int{}, all: map[string]*lookout{}}
}

// resting lists the destinations that are not asked now.
func (l *lookouts) resting(now time.Time) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, x := range l.all {
		if now.Before(x.until) {
			out = append(out, name)
		}
	}
	return out
}

// admit takes a slot for a question to a destination; false when it must wait. A destination that failed is asked one
// question at a time.
func (l *lookouts) admit(a asker) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.orgs[a.org] >= orgSlots {
		return false
	}
	x := l.all[a.place]
	if x == nil {
		x = &lookout{}
		l.all[a.place] = x
	}
	if x.open >= l.slots-l.open || x.failures > 0 && x.open > 0 {
		return false
	}
	x.open++
	l.open++
	l.orgs[a.org]++
	return true
}

// done gives slots back. failed means that the destination could not be asked; asked that it could or could not, but
// was.
func (l *lookouts) done(a asker, asked, failed bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.orgs[a.org]--; l.orgs[a.org] == 0 {
		delete(l.orgs, a.org)
	}
	x := l.all[a.place]
	x.open--
	switch {
	case asked && failed:
		x.failures++
		x.until = now.Add(min(l.rest, firstRest<<min(x.failures-1, 10)))
	case asked:
		x.failures, x.until = 0, time.Time{}
	}
	if x.open == 0 && (x.failures == 0 || len(l.all) > lookoutsKept) {
		delete(l.all, a.place)
	}
}
