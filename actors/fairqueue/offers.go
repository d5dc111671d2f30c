package fairqueue

import (
	"sync"

	"crier/tenancy"
)

// Offers is a queue of offers. A process's actors add the offers, and its worker takes them in
// turn. It is safe for concurrent use. Offers are kept only in memory: if the process ends, they
// are lost, and the actors make new ones after the next sweep.
type Offers struct {
	ready chan struct{}

	mu    sync.Mutex // protects the field below
	queue Queue
}

// NewOffers returns an empty queue. A process has one queue, which its actors and its worker share.
func NewOffers() *Offers { return &Offers{ready: make(chan struct{}, 1)} }

// Offer calls Queue.Offer. It never blocks.
func (o *Offers) Offer(org tenancy.OrgID, permits int) {
	o.mu.Lock()
	o.queue.Offer(org, permits)
	o.mu.Unlock()
	select {
	case o.ready <- struct{}{}:
	default:
	}
}

// Ready returns a channel that receives a value after an Offer. All offers made since the last
// receive are reported with a single value.
func (o *Offers) Ready() <-chan struct{} { return o.ready }

// Take gives out permits as Queue.Take does. The worker's claim loop calls it.
func (o *Offers) Take(free, width int) []Grant {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queue.Take(free, width)
}

// Len returns the number of organizations that are waiting. The number can change at any time.
func (o *Offers) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queue.Len()
}
