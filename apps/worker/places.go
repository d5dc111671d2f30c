package worker

import (
	"strings"
	"sync"
	"time"

	"crier/actors/fairqueue"
	"crier/platform/clock"
	"crier/publishing"
	"crier/tenancy"
)

// places counts the permits that the posts of each destination hold, and keeps the organizations that wait for one. A
// destination gets a permit only while it holds fewer than are free: one server that hangs takes at most half of all
// permits, and n of them leave 1/(n+1). The claim applies the rule to the counts that it gets from here.
type places struct {
	wake  func(tenancy.OrgID)
	free  func() int // permits that nobody holds
	clock clock.Clock

	mu      sync.Mutex
	over    bool // nobody is woken any more
	timer   *time.Timer
	all     map[string]*place
	waiting []string                    // destinations with organizations that wait, in the order in which they are served
	lined   map[tenancy.OrgID]time.Time // since when an organization has waited that was not woken since
	called  map[tenancy.OrgID]call      // was woken, and has not claimed yet
}

// place is one destination.
type place struct {
	held   int
	line   fairqueue.Queue
	called int // of its line; see places
}

// call is the wake-up of an organization.
type call struct {
	from *place
	at   time.Time
}

// Bounds of one wake-up: the organizations claim anew, so too many of them would only meet the rule again.
const (
	placesAtOnce = 4
	wokenAtOnce  = 32
)

// For each organization that was woken two permits are kept until it claims, but not for much longer than callFor: most
// have more than one channel, and one that finds no permit has claimed in vain.
const (
	permitsKept = 2
	callFor     = time.Second
)

// linedFor is how long an organization in a line is not woken by the sweep, which would only have it claim in vain.
const linedFor = 15 * time.Second

func newPlaces(wake func(tenancy.OrgID), free func() int, c clock.Clock) *places {
	return &places{
		wake: wake, free: free, clock: c,
		all: map[string]*place{}, lined: map[tenancy.OrgID]time.Time{}, called: map[tenancy.OrgID]call{},
	}
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
	if p.all[name] == nil {
		p.all[name] = &place{}
	}
	return p.all[name]
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
	if x == nil || x.line.Len() == 0 {
		return false
	}
	p.enter(name, x, org)
	return true
}

func (p *places) enter(name string, x *place, org tenancy.OrgID) {
	if x.line.Len() == 0 {
		p.waiting = append(p.waiting, name)
	}
	x.line.Offer(org, 1)
	if _, waits := p.lined[org]; !waits {
		p.lined[org] = p.clock.Now()
	}
	p.serve()
}

// waits returns true when an organization has stood in a line for a while that is not too long.
func (p *places) waits(org tenancy.OrgID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	since, ok := p.lined[org]
	return ok && p.clock.Now().Sub(since) < linedFor
}

// answered says that organizations have claimed: no permits are kept for them any more.
func (p *places) answered(wants []publishing.Want) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range wants {
		p.endCall(w.Org)
	}
	p.serve()
}

func (p *places) endCall(org tenancy.OrgID) {
	if c, ok := p.called[org]; ok {
		c.from.called--
		delete(p.called, org)
	}
}

// serve wakes those who wait for destinations that may have permits now, a few destinations in turn. While anybody
// waits, all destinations are looked through every second besides, and no permits are kept any more for those that were
// woken that long ago and have not claimed.
func (p *places) serve() {
	p.call(placesAtOnce)
	if p.timer == nil && len(p.waiting) > 0 && !p.over {
		p.timer = time.AfterFunc(callFor, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.timer = nil
			for org, c := range p.called {
				if p.clock.Now().Sub(c.at) >= callFor {
					p.endCall(org)
				}
			}
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
		room := (free-x.held+1)/2 - permitsKept*x.called
		n := max(0, min(wokenAtOnce, (room+1)/permitsKept))
		for _, g := range x.line.Take(n, n) {
			delete(p.lined, g.Org)
			if _, called := p.called[g.Org]; !called {
				x.called++
				p.called[g.Org] = call{x, now}
			}
			go p.wake(g.Org)
		}
		if x.line.Len() > 0 {
			p.waiting = append(p.waiting, name)
		}
		p.forget(name, x)
	}
}

func (p *places) forget(name string, x *place) {
	if x.held <= 0 && x.line.Len() == 0 {
		delete(p.all, name)
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
	org      tenancy.OrgID // the only one whose questions failed, in this row; zero: several
}

// Bounds of the questions about unknown outcomes.
const (
	lookSlots    = 256
	orgSlots     = 16              // of one organization
	firstRest    = 5 * time.Second // after the first failure; it doubles
	longestRest  = 2 * time.Minute
	lookoutsKept = 4096             // destinations that are remembered because they failed
	orgLookouts  = 64               // of these, destinations that have failed for one organization only
	lookoutFor   = 10 * longestRest // how long after its rest a destination is remembered
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
		x.fail(a.org)
		x.until = now.Add(min(l.rest, firstRest<<min(x.failures-1, 10)))
		l.forget(a.org, now)
	case asked:
		x.failures, x.until = 0, time.Time{}
	}
	if x.open == 0 && x.failures == 0 {
		delete(l.all, a.place)
	}
}

func (x *lookout) fail(org tenancy.OrgID) {
	if x.failures++; x.failures == 1 {
		x.org = org
	} else if x.org != org {
		x.org = tenancy.OrgID{}
	}
}

// forget drops what it is too late to remember, and, when a failure is one too many for its organization or for all,
// the destination whose rest ends first. An organization chooses the hosts of its channels, so it may push out only
// destinations that nobody else has failed to ask.
func (l *lookouts) forget(org tenancy.OrgID, now time.Time) {
	own, all := earliest{}, earliest{}
	for name, x := range l.all {
		switch {
		case x.failures == 0:
		case x.open == 0 && now.Sub(x.until) > lookoutFor:
			delete(l.all, name)
		default:
			all.add(name, x)
			if !org.IsZero() && x.org == org {
				own.add(name, x)
			}
		}
	}
	switch {
	case own.count > orgLookouts:
		delete(l.all, own.name)
	case all.count > lookoutsKept:
		delete(l.all, all.name)
	}
}

// earliest is, of destinations that failed, the one that is not asked now and whose rest ends first.
type earliest struct {
	count int // of all
	name  string
	until time.Time
}

func (e *earliest) add(name string, x *lookout) {
	if e.count++; x.open == 0 && (e.name == "" || x.until.Before(e.until)) {
		e.name, e.until = name, x.until
	}
}
