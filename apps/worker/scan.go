package worker

import (
	"time"

	"crier/publishing"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// scans tracks which channels have been visited in organizations that have more channels than one
// claim visits. The worker responds to such an organization's offer once a post has been claimed or
// all channels have been visited. Until then, the organization takes turns with the others. Only
// the claim loop uses scans.
type scans map[tenancy.OrgID]scan

type scan struct {
	after publishing.ChannelID
	whole bool       // the scan began at the first channel
	next  *time.Time // earliest due time found since the scan began
}

// maxScans is the maximum number of organizations whose next scan may begin partway through their
// channels.
const maxScans = 10_000

// want returns a Want that continues an organization's scan where the last claim ended.
func (s scans) want(org tenancy.OrgID, permits int) dispatch.Want {
	return dispatch.Want{Org: org, Permits: permits, After: s[org].after}
}

// restart begins a new scan after a failed claim. The new scan begins at the channel where the
// failed claim began. It visits all channels, even those visited earlier, because posts may have
// become due on them.
func (s scans) restart(org tenancy.OrgID) {
	if x, ok := s[org]; ok {
		s[org] = scan{after: x.after}
	}
}

// advance adds a claim's result to an organization's scan. If done is true, the worker can respond
// to the offer, and next is when the next post is due. If done is false, more channels must be
// visited first, and next is unknown.
func (s scans) advance(want dispatch.Want, round dispatch.ClaimResult, claimed int) (next *time.Time, done bool) {
	org, x := want.Org, s[want.Org]
	delete(s, org)
	if at, ok := round.Next[org]; ok {
		next = &at
	}
	if next == nil || x.next != nil && x.next.Before(*next) {
		next = x.next
	}
	last, more := round.More[org]
	if !more && want.After.IsZero() {
		return next, true // all channels were visited in one claim, as usual
	}
	switch {
	case claimed > 0:
		if more && len(s) < maxScans {
			s[org] = scan{after: last}
		}
		now := round.Now
		return &now, true // a channel that was not visited may have a due post
	case more:
		s[org] = scan{after: last, whole: x.whole || want.After.IsZero(), next: next}
	case x.whole:
		return next, true
	default:
		s[org] = scan{next: next} // the scan began in the middle
	}
	return nil, false
}
