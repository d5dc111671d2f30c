package worker

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// Each claim visits a window of an organization's channels. The scan may start at any channel.
func TestScans_AnswerAfterVisitingAllChannels(t *testing.T) {
	t.Parallel()
	org := id.New[tenancy.OrgTag]()
	rapid.Check(t, func(t *rapid.T) {
		channels := make([]publishing.ChannelID, rapid.IntRange(0, 20).Draw(t, "channels"))
		for i := range channels {
			channels[i] = id.New[publishing.ChannelTag]()
		}
		slices.SortFunc(channels, func(a, b publishing.ChannelID) int { return slices.Compare(bytesOf(a), bytesOf(b)) })
		window := rapid.IntRange(1, 6).Draw(t, "window")
		s := scans{}
		if len(channels) > 0 && rapid.Bool().Draw(t, "from the middle") {
			s[org] = scan{after: rapid.SampledFrom(channels).Draw(t, "start")}
		}
		now := time.Now()
		seen := map[publishing.ChannelID]bool{}
		for range 2*len(channels) + 3 {
			want := s.want(org, 3)
			round := dispatch.NewClaimResult()
			round.Now = now
			after := 0
			for _, c := range channels {
				if slices.Compare(bytesOf(c), bytesOf(want.After)) <= 0 {
					continue
				}
				seen[c] = true
				if after++; after == window {
					round.More[org] = c
					break
				}
			}
			if _, done := s.advance(want, dispatch.ClaimResult(round), 0); done {
				if len(seen) != len(channels) {
					t.Fatalf("%d of %d channels were looked at when the offer was answered", len(seen), len(channels))
				}
				if len(s) != 0 {
					t.Fatal("a scan that is over is kept")
				}
				return
			}
		}
		t.Fatal("the scan does not end")
	})
}

func bytesOf(c publishing.ChannelID) []byte {
	u := c.UUID()
	return u[:]
}
