// Package fairqueue decides whose turn it is: organizations that have something to publish go one after the other, however much each of them has.
package fairqueue

import "crier/tenancy"

// Turns is a queue in which every organization stands at most once. The zero Turns is empty. It is not safe for concurrent use.
type Turns struct {
	queue []tenancy.OrgID
	asks  map[tenancy.OrgID]int
}

// Offer puts an organization at the end of the queue, or raises what it asks for where it stands.
func (t *Turns) Offer(org tenancy.OrgID, permits int) {
	if permits <= 0 {
		return
	}
	if t.asks == nil {
		t.asks = map[tenancy.OrgID]int{}
	}
	if _, waiting := t.asks[org]; !waiting {
		t.queue = append(t.queue, org)
	}
	t.asks[org] = max(t.asks[org], permits)
}

// Grant is what one organization may have now.
type Grant struct {
	Org     tenancy.OrgID
	Permits int
}

// Take gives out at most free permits to at most width organizations: one each in the order of the queue, then more in the same order up to what each asked for.
// Those that got any leave the queue.
func (t *Turns) Take(free, width int) []Grant {
	n := min(free, width, len(t.queue))
	grants := make([]Grant, n)
	for i, org := range t.queue[:n] {
		grants[i] = Grant{org, 1}
	}
	for left := free - n; left > 0; {
		before := left
		for i := range grants {
			if left > 0 && grants[i].Permits < t.asks[grants[i].Org] {
				grants[i].Permits++
				left--
			}
		}
		if left == before {
			break
		}
	}
	for _, g := range grants {
		delete(t.asks, g.Org)
	}
	t.queue = t.queue[n:]
	return grants
}

// Len is how many organizations wait.
func (t *Turns) Len() int { return len(t.queue) }
