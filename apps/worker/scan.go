package worker

import (
	"time"

	"crier/publishing"
	"crier/tenancy"
)

// scans remember how far the channels of organizations were looked at that have more of them than one claim looks at.
// An offer of such an organization is answered when it got permits used, or when all of its channels were looked at;
// until then it takes turns with the others. It is used by the claim loop alone.
type scans map[tenancy.OrgID]scan

// scan is where the next claim goes on, of the channels of one organization.
type scan struct {
	after publishing.ChannelID
	whole bool       // it began at the first channel
	next  *time.Time // the earliest that was found since
}

// maxScans bounds the organizations whose next scan does not begin at their first channel.
const maxScans = 10_000

// want is what the next claim asks for an organization.
func (s scans) want(org tenancy.OrgID, permits int) publishing.Want {
	return publishing.Want{Org: org, Permits: permits, After: s[org].after}
}

// restart is after a claim that failed: the next offer goes on at the same channels, and then looks at all of them, since
// posts may have fallen due meanwhile where it had looked.
func (s scans) restart(org tenancy.OrgID) {
	if x, ok := s[org]; ok {
		s[org] = scan{after: x.after}
	}
}

// advance takes what a claim brought to an organization. done is false when the rest of its channels must be looked at
// before the offer is answered; next is then not known yet.
func (s scans) advance(want publishing.Want, round publishing.ClaimResult, claimed int) (next *time.Time, done bool) {
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
		return next, true // all channels in one claim, as nearly always
	}
	switch {
	case claimed > 0:
		if more && len(s) < maxScans {
			s[org] = scan{after: last}
		}
		now := round.Now
		return &now, true // what was not looked at may be due
	case more:
		s[org] = scan{after: last, whole: x.whole || want.After.IsZero(), next: next}
	case x.whole:
		return next, true
	default:
		s[org] = scan{next: next} // it began in the middle
	}
	return nil, false
}
