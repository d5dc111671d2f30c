package worker

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// slowBackend has organizations with many channels, on a slow database.
type slowBackend struct {
	*backend
	worker *Worker

	mu       sync.Mutex
	most     int                    // a claim of more channels runs out of time; 0 = no limit
	slow     map[tenancy.OrgID]int  // the same limit for one organization
	largest  int                    // number of channels in the largest claim that finished in time
	together map[tenancy.OrgID]bool // organizations that ran out of time because of another one
	channels map[tenancy.OrgID][]publishing.ChannelID
	due      map[publishing.ChannelID]publishing.PostID
}

// newSlowBackend returns a backend with orgs organizations of that many channels each.
func newSlowBackend(orgs, channels int) *slowBackend {
	a := &slowBackend{backend: &backend{}, channels: map[tenancy.OrgID][]publishing.ChannelID{}, due: map[publishing.ChannelID]publishing.PostID{}}
	a.worker = a.build()
	a.worker.deps.Claimer, a.worker.deps.Actors = a, a
	for range orgs {
		var all []publishing.ChannelID
		for range channels {
			all = append(all, id.New[publishing.ChannelTag]())
		}
		slices.SortFunc(all, func(x, y publishing.ChannelID) int { return slices.Compare(bytesOf(x), bytesOf(y)) })
		a.channels[id.New[tenancy.OrgTag]()] = all
	}
	return a
}

// publish makes a post due on the first and on the last channel of each organization. It returns
// these posts.
func (a *slowBackend) publish(most int) (posts []publishing.PostID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.most, a.largest, a.together = most, 0, map[tenancy.OrgID]bool{}
	for org, channels := range a.channels {
		for _, c := range []publishing.ChannelID{channels[0], channels[len(channels)-1]} {
			a.due[c] = id.New[publishing.PostTag]()
			posts = append(posts, a.due[c])
		}
		a.worker.deps.Offers.Offer(org, 8)
	}
	return posts
}

func (a *slowBackend) Claim(
	ctx context.Context, _ dispatch.Lease, wants []dispatch.Want, window int, _ dispatch.ClaimLimits,
) (dispatch.ClaimResult, []int64, error) {
	round := dispatch.NewClaimResult()
	if a.tooMuch(wants, window) {
		<-ctx.Done()
		return round, []int64{1}, ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.largest = max(a.largest, len(wants)*window)
	round.Now = time.Now()
	for _, want := range wants {
		looked := 0
		for _, c := range a.channels[want.Org] {
			if looked == window || slices.Compare(bytesOf(c), bytesOf(want.After)) <= 0 {
				continue
			}
			if post, due := a.due[c]; due {
				round.Claimed = append(round.Claimed, dispatch.Claimed{Org: want.Org, Post: post, Channel: c, Token: token})
				delete(a.due, c)
			}
			if looked++; looked == window {
				round.More[want.Org] = c
			}
		}
	}
	return round, nil, nil
}

func (a *slowBackend) tooMuch(wants []dispatch.Want, window int) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	isSlow := func(want dispatch.Want) bool {
		most, slow := a.slow[want.Org]
		return slow && window > most
	}
	if !slices.ContainsFunc(wants, isSlow) {
		return a.most > 0 && len(wants)*window > a.most
	}
	for _, want := range wants {
		if len(wants) > 1 {
			a.together[want.Org] = true
		}
	}
	return true
}

func (a *slowBackend) Granted(org tenancy.OrgID, claimed int, next *time.Time, now time.Time) {
	a.backend.Granted(org, claimed, next, now)
	if next != nil {
		a.worker.deps.Offers.Offer(org, 8)
	}
}

func (a *slowBackend) Refused(org tenancy.OrgID, wait time.Duration) {
	time.AfterFunc(wait, func() { a.worker.deps.Offers.Offer(org, 8) })
}

func TestClaim_VisitsFewerChannelsAfterRunningOutOfTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const orgs, channels = 8, 600
		a := newSlowBackend(orgs, channels)
		a.worker.Start(t.Context())
		var want []publishing.PostID
		for _, most := range []int{3 * dispatch.ClaimWindow, 100, 0, 0, 0} {
			want = append(want, a.publish(most)...)
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := a.snapshot(); !same(got.stored, want) || got.inFlight != 0 {
				t.Fatalf("%d of %d posts are published when a claim can look at %d channels", len(got.stored), len(want), most)
			}
		}
		if a.largest < orgs*dispatch.ClaimWindow {
			t.Errorf("the largest claim of a database that is fast again looks at %d channels", a.largest)
		}
		stop(t, a.worker, time.Minute)
	})
}

func TestClaim_SlowOrganizationIsClaimedAlone(t *testing.T) {
	t.Parallel()
	for name, most := range map[string]int{"in small windows": 16, "and never comes in time": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newSlowBackend(8, 40)
				slow := slices.Collect(maps.Keys(a.channels))[0]
				a.slow = map[tenancy.OrgID]int{slow: most}
				a.worker.Start(t.Context())
				var want []publishing.PostID
				for round := range 20 {
					want = append(want, a.publish(0)...)
					time.Sleep(time.Minute)
					synctest.Wait()
					if round > 0 && len(a.together) > 0 {
						t.Fatalf("%d organizations ran out of time together once it was known which of them is slow", len(a.together))
					}
					left := a.left()
					if most > 0 && left[slow] > 0 || len(left) > 1 || len(left) == 1 && left[slow] == 0 {
						t.Fatalf("after round %d posts are left of %d organizations, %d of the slow one", round, len(left), left[slow])
					}
				}
				if got := a.snapshot(); most > 0 && !same(got.stored, want) {
					t.Errorf("%d of %d posts are published", len(got.stored), len(want))
				}
				stop(t, a.worker, time.Minute)
			})
		})
	}
}

// left returns the number of due posts per organization.
func (a *slowBackend) left() map[tenancy.OrgID]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[tenancy.OrgID]int{}
	for org, channels := range a.channels {
		for _, c := range channels {
			if _, due := a.due[c]; due {
				out[org]++
			}
		}
	}
	return out
}

// If a post becomes due while the claims of its organization fail, the next scan finds it, before
// the next sweep.
func TestClaim_FindsPostsThatBecameDueWhileClaimsFailed(t *testing.T) {
	t.Parallel()
	org, channel := id.New[tenancy.OrgTag](), id.New[publishing.ChannelTag]()
	s := scans{}
	first := dispatch.ClaimResult{Now: time.Now(), More: map[tenancy.OrgID]publishing.ChannelID{org: channel}}
	if _, done := s.advance(s.want(org, 1), first, 0); done {
		t.Fatal("the offer is answered before all channels were looked at")
	}
	s.restart(org)
	if want := s.want(org, 1); want.After != channel {
		t.Fatal("the scan begins anew after a claim that failed: it may never come to its end")
	}
	rest := dispatch.ClaimResult{Now: time.Now()}
	if _, done := s.advance(s.want(org, 1), rest, 0); done {
		t.Fatal("the offer is answered although posts may have fallen due on the channels that were looked at first")
	}
	if _, done := s.advance(s.want(org, 1), rest, 0); !done {
		t.Fatal("the offer is not answered when all channels were looked at")
	}
}
