// Package fairqueue shares permits fairly among organizations. Organizations that have work take
// turns, regardless of how much work each has.
package fairqueue

import "crier/tenancy"

// Queue is a queue that contains each organization at most once. The zero Queue is empty. It is not
// safe for concurrent use.
type Queue struct {
	queue  []tenancy.OrgID
	wanted map[tenancy.OrgID]int
}

// Offer adds an organization to the end of the queue. permits is how many permits it wants. If the
// organization is already in the queue, it keeps its place, and the larger of the two numbers of
// permits applies. Offer does nothing if permits is not positive.
func (q *Queue) Offer(org tenancy.OrgID, permits int) {
	if permits <= 0 {
		return
	}
	if q.wanted == nil {
		q.wanted = map[tenancy.OrgID]int{}
	}
	if _, waiting := q.wanted[org]; !waiting {
		q.queue = append(q.queue, org)
	}
	q.wanted[org] = max(q.wanted[org], permits)
}

// Grant is the number of permits given to one organization.
type Grant struct {
	Org tenancy.OrgID
	// Permits is at least 1.
	Permits int
}

// Take gives at most free permits to at most width organizations at the front of the queue, and
// removes these organizations from the queue. Each of these organizations in turn is given one
// permit at a time, until all have as many as they want or no permit is left.
func (q *Queue) Take(free, width int) []Grant {
	n := min(free, width, len(q.queue))
	grants := make([]Grant, n)
	for i, org := range q.queue[:n] {
		grants[i] = Grant{Org: org, Permits: 1}
	}
	for left := free - n; left > 0; {
		before := left
		for i := range grants {
			if left > 0 && grants[i].Permits < q.wanted[grants[i].Org] {
				grants[i].Permits++
				left--
			}
		}
		if left == before {
			break
		}
	}
	for _, g := range grants {
		delete(q.wanted, g.Org)
	}
	q.queue = q.queue[n:]
	return grants
}

// Len returns the number of organizations in the queue, not the number of permits they want.
func (q *Queue) Len() int { return len(q.queue) }
