package worker

import (
	"strings"
	"sync"
	"time"

	"crier/actors/fairqueue"
	"crier/platform/clock"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// destinations counts the permits that the posts of each destination hold, and keeps the
// organizations that wait for a permit in lines. It is safe for concurrent use.
//
// A destination gets a permit only while it holds fewer permits than are free. So one server that
// hangs takes at most half of all permits, and n such servers leave 1/(n+1) of them. The claim
// applies this rule to the counts that it gets from here.
type destinations struct {
	wake  func(tenancy.OrgID)
	free  func() int // the number of free permits
	clock clock.Clock

	mu     sync.Mutex // protects the fields below
	closed bool       // no further organization is woken
	timer  *time.Timer
	all    map[string]*destination
	// waiting lists the destinations that have a line, in the order in which they are served.
	waiting []string
	// inLine maps each organization that is in a line and has not been woken to the time it joined.
	inLine map[tenancy.OrgID]time.Time
	// woken has the organizations that were woken and have not claimed yet.
	woken map[tenancy.OrgID]wakeUp
}

type destination struct {
	held  int // permits
	line  fairqueue.Queue
	woken int // organizations in destinations.woken that come from this line
}

type wakeUp struct {
	from *destination
	at   time.Time
}

// The bounds of one round of wake-ups. Each woken organization claims, and if there were too many,
// the rule would refuse most of their claims.
const (
	maxDestinations = 4
	maxWakeUps      = 32
)

const (
	// reservedPermits is how many permits are kept for each woken organization until it claims,
	// because most have more than one channel.
	reservedPermits = 2
	// wakeUpLife is how long permits are kept for an organization that does not claim.
	wakeUpLife = time.Second
)

// maxInLine is how long the sweep leaves an organization in a line asleep, because its claim would
// be refused.
const maxInLine = 15 * time.Second

func newDestinations(wake func(tenancy.OrgID), free func() int, c clock.Clock) *destinations {
	return &destinations{
		wake: wake, free: free, clock: c,
		all: map[string]*destination{}, inLine: map[tenancy.OrgID]time.Time{}, woken: map[tenancy.OrgID]wakeUp{},
	}
}

// isDestination reports whether a name in ClaimResult.AtLimit is a destination, such as
// "@bsky.social"; other names are platforms.
func isDestination(name string) bool { return strings.HasPrefix(name, "@") }

// busy returns the number of permits of each destination that holds any, for
// dispatch.ClaimLimits.Busy.
func (d *destinations) busy() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[string]int, len(d.all))
	for name, x := range d.all {
		if x.held > 0 {
			out[name] = x.held
		}
	}
	return out
}

func (d *destinations) take(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.of(name).held++
}

// of creates the destination if necessary. The caller holds d.mu.
func (d *destinations) of(name string) *destination {
	if d.all[name] == nil {
		d.all[name] = &destination{}
	}
	return d.all[name]
}

func (d *destinations) release(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if x := d.all[name]; x != nil {
		x.held--
		d.removeIdle(name, x)
	}
	d.serve()
}

// enqueue adds an organization to the line of a destination that had no permit for its posts.
func (d *destinations) enqueue(name string, org tenancy.OrgID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.enqueueLocked(name, d.of(name), org)
}

// join adds an organization to the line of a destination if there is one, and reports whether it
// did. The organization then need not claim before its turn: its post to this destination has
// ended, and the next post of the channel goes to the same destination.
func (d *destinations) join(name string, org tenancy.OrgID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	x := d.all[name]
	if x == nil || x.line.Len() == 0 {
		return false
	}
	d.enqueueLocked(name, x, org)
	return true
}

func (d *destinations) enqueueLocked(name string, x *destination, org tenancy.OrgID) {
	if x.line.Len() == 0 {
		d.waiting = append(d.waiting, name)
	}
	x.line.Offer(org, 1)
	if _, waits := d.inLine[org]; !waits {
		d.inLine[org] = d.clock.Now()
	}
	d.serve()
}

// isWaiting reports whether an organization has been in a line for less than maxInLine.
func (d *destinations) isWaiting(org tenancy.OrgID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	since, ok := d.inLine[org]
	return ok && d.clock.Now().Sub(since) < maxInLine
}

// claimed ends the reservations of organizations that have claimed.
func (d *destinations) claimed(wants []dispatch.Want) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range wants {
		d.endWakeUp(w.Org)
	}
	d.serve()
}

// endWakeUp does nothing for an organization that was not woken. The caller holds d.mu.
func (d *destinations) endWakeUp(org tenancy.OrgID) {
	if c, ok := d.woken[org]; ok {
		c.from.woken--
		delete(d.woken, org)
	}
}

// serve wakes organizations in the lines of destinations that may get permits now, maxDestinations
// at a time. While there are lines, it also serves all destinations every wakeUpLife and ends the
// reservations of organizations that were woken that long ago and have not claimed.
func (d *destinations) serve() {
	d.wakeSome(maxDestinations)
	if d.timer == nil && len(d.waiting) > 0 && !d.closed {
		d.timer = time.AfterFunc(wakeUpLife, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.timer = nil
			for org, c := range d.woken {
				if d.clock.Now().Sub(c.at) >= wakeUpLife {
					d.endWakeUp(org)
				}
			}
			d.wakeSome(len(d.waiting))
			d.serve()
		})
	}
}

// wakeSome wakes organizations in the lines of up to some destinations, but no more than there are
// permits for. Organizations woken earlier count.
func (d *destinations) wakeSome(some int) {
	if d.closed {
		return
	}
	free, now := d.free(), d.clock.Now()
	for range min(some, len(d.waiting)) {
		name := d.waiting[0]
		d.waiting = d.waiting[1:]
		x := d.all[name]
		room := (free-x.held+1)/2 - reservedPermits*x.woken
		n := max(0, min(maxWakeUps, (room+1)/reservedPermits))
		for _, g := range x.line.Take(n, n) {
			delete(d.inLine, g.Org)
			if _, woken := d.woken[g.Org]; !woken {
				x.woken++
				d.woken[g.Org] = wakeUp{from: x, at: now}
			}
			go d.wake(g.Org)
		}
		if x.line.Len() > 0 {
			d.waiting = append(d.waiting, name)
		}
		d.removeIdle(name, x)
	}
}

func (d *destinations) removeIdle(name string, x *destination) {
	if x.held <= 0 && x.line.Len() == 0 {
		delete(d.all, name)
	}
}

// close stops waking organizations. It does not wait for wake-ups in progress.
func (d *destinations) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
}
