package worker

import (
	"strings"
	"sync"
	"time"

	"crier/platform/clock"
	publishingservice "crier/publishing/service"
	"crier/tenancy"
)

// places counts the permits that the posts of each destination hold, and keeps the organizations that wait for one. A
// destination gets a permit only while it holds fewer than are free: one server that hangs takes at most half of all
// permits, and n of them leave 1/(n+1). The claim applies the rule; places tells it the counts.
type places struct {
	wake  func(tenancy.OrgID)
	free  func() int // permits that nobody holds
	clock clock.Clock

	mu      sync.Mutex
	over    bool // nobody is woken any more
	timer   *time.Timer
	all     map[string]*place
	waiting []string                 // destinations with organizations that wait, in the order in which they are served
	lined   map[tenancy.OrgID]lined  // those that stand in lines
	called  map[tenancy.OrgID]*place // woken from the line of a destination, and not yet claimed
}

// lined is in how many lines an organization stands, and since when in one.
type lined struct {
	lines int
	since time.Time
}

// place is one destination.
type place struct {
	held   int
	line   []tenancy.OrgID
	in     map[tenancy.OrgID]bool      // the line
	called map[tenancy.OrgID]time.Time // see places; when it was woken
	looked time.Time                   // when the called were last looked through
}

// Bounds of one wake-up: the organizations claim anew, so too many of them would only meet the rule again.
const (
	placesAtOnce = 4
	wokenAtOnce  = 32
)

// For each organization that was woken two permits are kept, as long as it does not claim, but no longer than callFor:
// most have more than one channel, and one that finds no permit has claimed in vain.
const (
	permitsKept = 2
	callFor     = time.Second
)

// linedFor is how long an organization in a line is not woken by the sweep, which would only have it claim in vain.
const linedFor = 15 * time.Second

func newPlaces(wake func(tenancy.OrgID), free func() int, c clock.Clock) *places {
	return &places{wake: wake, free: free, clock: c, all: map[string]*place{}, lined: map[tenancy.OrgID]lined{}, called: map[tenancy.OrgID]*place{}}
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
		x = &place{in: map[tenancy.OrgID]bool{}, called: map[tenancy.OrgID]time.Time{}}
		p.all[name] = x
	}
	return x
}

// release gives a permit of a destination back.
func (p *places) release(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.all[name]; x != nil {
		x.held--
		p.forget(name, x)
	}
	p.serve()
}

// hold puts an organization into the line of a destination.
func (p *places) hold(name string, org tenancy.OrgID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enter(name, p.of(name), org)
}

// join puts an organization into the line of a destination if there is one. Then it need not claim before it is its
// turn: a post of it to this destination has ended, and what follows on the channel goes to the same one.
func (p *places) join(name string, org tenancy.OrgID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.all[name]
	if x == nil || len(x.line) == 0 {
		return false
	}
	p.enter(name, x, org)
	return true
}

func (p *places) enter(name string, x *place, org tenancy.OrgID) {
	if x.in[org] {
		return
	}
	if len(x.line) == 0 {
		p.waiting = append(p.waiting, name)
	}
	x.line, x.in[org] = append(x.line, org), true
	l := p.lined[org]
	if l.lines++; l.lines == 1 {
		l.since = p.clock.Now()
	}
	p.lined[org] = l
	p.serve()
}

// waits returns true when an organization has stood in a line for a while that is not too long.
func (p *places) waits(org tenancy.OrgID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.lined[org]
	return ok && p.clock.Now().Sub(l.since) < linedFor
}

// next takes the first organization out of a line.
func (p *places) next(x *place) tenancy.OrgID {
	org := x.line[0]
	x.line = x.line[1:]
	delete(x.in, org)
	l := p.lined[org]
	if l.lines--; l.lines == 0 {
		delete(p.lined, org)
	} else {
		p.lined[org] = l
	}
	return org
}

// answered says that organizations have claimed: no permits are kept for them any more.
func (p *places) answered(wants []publishingservice.Want) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range wants {
		if x := p.called[w.Org]; x != nil {
			delete(x.called, w.Org)
			delete(p.called, w.Org)
		}
	}
	p.serve()
}

// serve wakes those who wait for destinations that may have permits now, a few destinations in turn. While anybody
// waits, all destinations are looked through every second besides: those that were woken and do not claim keep others
// waiting for no longer than callFor.
func (p *places) serve() {
	p.call(placesAtOnce)
	if p.timer == nil && len(p.waiting) > 0 && !p.over {
		p.timer = time.AfterFunc(callFor, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.timer = nil
			p.call(len(p.waiting))
			p.serve()
		})
	}
}

// call wakes organizations of some of the destinations, but no more than there are permits for, with those that were
// woken before.
func (p *places) call(some int) {
	if p.over {
		return
	}
	free, now := p.free(), p.clock.Now()
	for range min(some, len(p.waiting)) {
		name := p.waiting[0]
		p.waiting = p.waiting[1:]
		x := p.all[name]
		p.forgetCalls(x, now)
		room := (free-x.held+1)/2 - permitsKept*len(x.called)
		for n := min(wokenAtOnce, (room+1)/permitsKept, len(x.line)); n > 0; n-- {
			org := p.next(x)
			if p.called[org] == nil {
				x.called[org], p.called[org] = now, x
			}
			go p.wake(org)
		}
		if len(x.line) > 0 {
			p.waiting = append(p.waiting, name)
		}
		p.forget(name, x)
	}
}

// close ends the waiting: nothing more is claimed.
func (p *places) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over = true; p.timer != nil {
		p.timer.Stop()
	}
}

func (p *places) forget(name string, x *place) {
	if x.held <= 0 && len(x.line) == 0 {
		for org := range x.called {
			delete(p.called, org)
		}
		delete(p.all, name)
	}
}

// forgetCalls keeps no permits any more for those that were woken long ago.
func (p *places) forgetCalls(x *place, now time.Time) {
	if now.Sub(x.looked) < callFor/4 {
		return
	}
	x.looked = now
	for org, at := range x.called {
		if now.Sub(at) >= callFor {
			delete(x.called, org)
			delete(p.called, org)
		}
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
