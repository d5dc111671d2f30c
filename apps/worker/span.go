package worker

import (
	"slices"

	"crier/publishing"
	"crier/tenancy"
)

// spans are how many channels a claim may look at that includes an organization, of those whose last claim did not
// come in time. So one organization, or one row, that takes too long is soon claimed by itself, and then in smaller
// windows, while the others go on together. It is used by the claim loop alone.
type spans map[tenancy.OrgID]int

const (
	maxSpan     = claimWidth * publishing.ClaimWindow // channels of the largest claim
	spanDivisor = 8                                   // a claim that failed is done by so many
	maxSpans    = 10_000                              // organizations; when more run out of time, it is the database that is slow
)

// span is what one claim looks at: organizations, and a window of channels of each.
type span struct {
	wants  []publishing.Want
	window int
}

// split makes claims of what is wanted. Organizations without a limit come first, all in one claim, then the others
// from the widest to the narrowest.
func (s spans) split(wants []publishing.Want) (out []span) {
	wants = slices.Clone(wants)
	slices.SortStableFunc(wants, func(a, b publishing.Want) int { return s.of(b.Org) - s.of(a.Org) })
	for len(wants) > 0 {
		n := 1
		for n < len(wants) && (n+1)*publishing.ClaimWindow <= s.of(wants[n].Org) {
			n++
		}
		out = append(out, span{wants[:n], min(s.of(wants[0].Org), publishing.ClaimWindow)})
		wants = wants[n:]
	}
	return out
}

func (s spans) of(org tenancy.OrgID) int {
	if most, ok := s[org]; ok {
		return most
	}
	return maxSpan
}

// done takes how a claim ended. After one that did not come in time the next ones look at an eighth of its channels;
// each that does lets the next look at twice as many.
func (s spans) done(x span, inTime bool) {
	for _, want := range x.wants {
		switch most, limited := s[want.Org]; {
		case !inTime && (limited || len(s) < maxSpans):
			s[want.Org] = max(1, len(x.wants)*x.window/spanDivisor)
		case limited && 2*most < maxSpan:
			s[want.Org] = 2 * most
		default:
			delete(s, want.Org)
		}
	}
}
