package worker

import (
	"time"

	"crier/publishing"
	publishingservice "crier/publishing/service"
	"crier/tenancy"
)

// scans remember how far the channels of organizations were looked at that have more of them than one claim looks at.
// An offer of such an organization is answered when it got permits used, or when all of its channels were looked at;
// until then it takes turns with the others. It is used by the claim loop alone.
type scans struct {
	start map[tenancy.OrgID]publishing.ChannelID // where the next scan begins
	open  map[tenancy.OrgID]*scan
}

// scan is one offer being answered in several claims.
type scan struct {
	from, at publishing.ChannelID // it began after from, and goes on after at
	wrapped  bool                 // it went on from the first channel
	permits  int
	next     *time.Time // the earliest that was found so far
}

// scansKept bounds the organizations whose next scan does not begin at their first channel.
const scansKept = 10_000

func newScans() scans {
	return scans{start: map[tenancy.OrgID]publishing.ChannelID{}, open: map[tenancy.OrgID]*scan{}}
}

// want is what the next claim asks for an organization.
func (s scans) want(org tenancy.OrgID, permits int) publishingservice.Want {
	after := s.start[org]
	if x := s.open[org]; x != nil {
		after = x.at
	}
	return publishingservice.Want{Org: org, Permits: permits, After: after}
}

// step takes what a claim brought to an organization. done is false when the rest of its channels must be looked at
// before the offer is answered; next is then not known yet.
func (s scans) step(want publishingservice.Want, round publishingservice.Round, claimed int) (next *time.Time, done bool) {
	org := want.Org
	if at, ok := round.Next[org]; ok {
		next = &at
	}
	x := s.open[org]
	last, more := round.More[org]
	if x == nil && !more && want.After.IsZero() {
		return next, true // all channels in one claim, as nearly always
	}
	if x == nil {
		x = &scan{from: want.After, permits: want.Permits}
	}
	if next == nil || x.next != nil && x.next.Before(*next) {
		next = x.next
	}
	switch {
	case claimed > 0:
		s.end(org, last)
		now := round.Now
		return &now, true // what was not looked at may be due
	case more && !(x.wrapped && last.String() >= x.from.String()):
		x.at = last
	case more, x.wrapped, x.from.IsZero():
		s.end(org, publishing.ChannelID{})
		return next, true
	default:
		x.at, x.wrapped = publishing.ChannelID{}, true
	}
	x.next, s.open[org] = next, x
	return nil, false
}

// end closes a scan; the next one begins after a channel.
func (s scans) end(org tenancy.OrgID, after publishing.ChannelID) {
	delete(s.open, org)
	delete(s.start, org)
	if !after.IsZero() && len(s.start) < scansKept {
		s.start[org] = after
	}
}
