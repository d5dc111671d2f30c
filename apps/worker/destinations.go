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

// destinations counts the permits held by each destination's posts, and queues organizations that
// are waiting for a permit. It is safe for concurrent use.
//
// A destination gets a permit only while it holds fewer permits than are free. A single server that
// hangs therefore ties up at most half of all permits, and n such servers leave 1/(n+1) of all
// permits free. The claim statement applies this rule to the counts that busy returns.
type destinations struct {
	wake  func(tenancy.OrgID)
	free  func() int // the number of free permits
	clock clock.Clock

	mu     sync.Mutex // protects the fields below
	closed bool       // no further organization is woken
	timer  *time.Timer
	all    map[string]*destination
	// waiting lists the destinations that have a queue, in the order in which they are served.
	waiting []string
	// queuedSince maps each organization that is queued and has not been woken to the time at which
	// it was queued.
	queuedSince map[tenancy.OrgID]time.Time
	// woken holds the organizations that have been woken and have not made a claim since.
	woken map[tenancy.OrgID]wakeUp
}

type destination struct {
	held  int // permits
	line  fairqueue.Queue
	woken int // organizations in destinations.woken that come from this queue
}

type wakeUp struct {
	from *destination
	at   time.Time
}

// Limits on one round of wake-ups. Every woken organization tries to claim posts. If too many were
// woken, most of their claims would get no permit.
const (
	maxDestinations = 4
	maxWakeUps      = 32
)

const (
	// reservedPermits is how many permits are reserved for each woken organization until it claims.
	// It is more than one because most organizations have several channels.
	reservedPermits = 2
	// wakeUpLife is how long permits stay reserved for a woken organization that makes no claim.
	wakeUpLife = time.Second
)

// maxQueued is how long an organization must be queued before the sweep wakes it. Waking it earlier
// would be pointless, because its claim would get no permit.
const maxQueued = 15 * time.Second

func newDestinations(wake func(tenancy.OrgID), free func() int, c clock.Clock) *destinations {
	return &destinations{
		wake: wake, free: free, clock: c,
		all: map[string]*destination{}, queuedSince: map[tenancy.OrgID]time.Time{}, woken: map[tenancy.OrgID]wakeUp{},
	}
}

// isDestination reports whether a name in ClaimResult.AtLimit is a destination, such as
// "@bsky.social"; other names are platforms.
func isDestination(name string) bool { return strings.HasPrefix(name, "@") }

// busy returns the number of permits that each destination holds, for dispatch.ClaimLimits.Busy. It
// omits destinations without permits.
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

// of returns the destination with the given name, creating it if necessary. The caller must hold
// d.mu.
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

// enqueue adds an organization to a destination's queue. It is called if the destination had no
// permit for the organization's posts.
func (d *destinations) enqueue(name string, org tenancy.OrgID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.enqueueLocked(name, d.of(name), org)
}

// join adds an organization to a destination's queue if the queue is not empty, and reports whether
// it did. It is called after one of the organization's posts to the destination has ended. The
// channel's next post goes to the same destination, so the organization does not need to claim
// until it is woken.
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
	if _, waits := d.queuedSince[org]; !waits {
		d.queuedSince[org] = d.clock.Now()
	}
	d.serve()
}

// isWaiting reports whether an organization has been queued for less than maxQueued.
func (d *destinations) isWaiting(org tenancy.OrgID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	since, ok := d.queuedSince[org]
	return ok && d.clock.Now().Sub(since) < maxQueued
}

// claimed ends the reservations of organizations that have made a claim, even if the claim returned
// no posts.
func (d *destinations) claimed(wants []dispatch.Want) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range wants {
		d.endWakeUp(w.Org)
	}
	d.serve()
}

// endWakeUp ends an organization's reservation, if there is one. The caller must hold d.mu.
func (d *destinations) endWakeUp(org tenancy.OrgID) {
	if c, ok := d.woken[org]; ok {
		c.from.woken--
		delete(d.woken, org)
	}
}

// serve wakes organizations queued for destinations that can get permits now. Each call serves at
// most maxDestinations destinations. While anything is queued, a timer also serves all destinations
// every wakeUpLife, and ends reservations that are at least that old.
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

// wakeSome serves at most the given number of destinations. It wakes no more organizations than
// there are permits for. Organizations that were woken earlier and have not claimed yet are
// included in this number.
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
			delete(d.queuedSince, g.Org)
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
