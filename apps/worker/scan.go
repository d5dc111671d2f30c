package worker

import (
	"time"

	"crier/publishing"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// scans tracks which channels were visited for organizations with more channels than one claim
// visits. Such an organization's offer is answered once a permit was used or all channels were
// visited. Until then, the organization takes turns with the others. Only the claim loop uses
// scans.
type scans map[tenancy.OrgID]scan

type scan struct {
	after publishing.ChannelID
	whole bool       // the scan began at the first channel
	next  *time.Time // earliest due time found since the scan began
}

// maxScans bounds how many organizations can start their next scan beyond their first channel.
const maxScans = 10_000

// want returns a Want that continues an organization's scan where the last claim ended.
func (s scans) want(org tenancy.OrgID, permits int) dispatch.Want {
	return dispatch.Want{Org: org, Permits: permits, After: s[org].after}
}

// restart begins a new scan after a failed claim. The next claim continues at the same channel, and
// the scan then visits all channels, because posts may have become due on channels visited earlier.
func (s scans) restart(org tenancy.OrgID) {
	if x, ok := s[org]; ok {
		s[org] = scan{after: x.after}
	}
}

// advance adds a claim's result to an organization's scan. done is false if other channels must be
// visited before the offer is answered; until then, next is unknown.
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
