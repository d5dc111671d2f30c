package worker

import (
	"slices"

	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// spans limits how many channels the next claim may visit for an organization whose recent claims
// timed out. An organization or a row that takes too long is therefore soon claimed separately and
// in smaller windows. The other organizations are still claimed together. Only the claim loop uses
// spans.
type spans map[tenancy.OrgID]int

const (
	// maxSpan is the number of channels in the largest claim.
	maxSpan = claimWidth * dispatch.ClaimWindow
	// spanDivisor is the number of smaller claims that replace a claim that timed out.
	spanDivisor = 8
	// maxSpans is the maximum number of organizations in spans. If more organizations time out, the
	// database as a whole is slow.
	maxSpans = 10_000
)

// span is what one claim visits: some organizations, and a window of each organization's channels.
type span struct {
	wants  []dispatch.Want
	window int
}

// split divides wants into claims. Organizations that have no limit go into the first claim. The
// other claims follow, those with the largest limit first.
func (s spans) split(wants []dispatch.Want) (out []span) {
	wants = slices.Clone(wants)
	slices.SortStableFunc(wants, func(a, b dispatch.Want) int { return s.of(b.Org) - s.of(a.Org) })
	for len(wants) > 0 {
		n := 1
		for n < len(wants) && (n+1)*dispatch.ClaimWindow <= s.of(wants[n].Org) {
			n++
		}
		out = append(out, span{wants: wants[:n], window: min(s.of(wants[0].Org), dispatch.ClaimWindow)})
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

// done updates the limits after a claim. If the claim timed out, the next claims for its
// organizations visit an eighth as many channels. Each claim that finishes in time doubles its
// organizations' limits.
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
