package fairqueue

import (
	"sync"

	"crier/tenancy"
)

// Offers is the queue between the actors of a process, which make offers, and its worker, which
// takes them in turn. It is safe for concurrent use. It is lost with the process; the next sweep
// makes the offers again.
type Offers struct {
	ready chan struct{}

	mu    sync.Mutex // protects the field below
	queue Queue
}

// NewOffers returns an empty queue. A process has one, which its actors and its worker share.
func NewOffers() *Offers { return &Offers{ready: make(chan struct{}, 1)} }

// Offer is Queue.Offer. It never blocks.
func (o *Offers) Offer(org tenancy.OrgID, permits int) {
	o.mu.Lock()
	o.queue.Offer(org, permits)
	o.mu.Unlock()
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// Ready returns a channel that receives a value after an Offer. Offers made before it is read are
// reported only once.
func (o *Offers) Ready() <-chan struct{} { return o.ready }

// Take is Queue.Take. The claim loop of the worker calls it.
func (o *Offers) Take(free, width int) []Grant {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queue.Take(free, width)
}

// Len returns the number of organizations that are waiting. An Offer may change it at any time.
func (o *Offers) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queue.Len()
}
