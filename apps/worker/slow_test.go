package worker

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"crier/platform/id"
	"crier/publishing"
	publishingservice "crier/publishing/service"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// agencies are organizations with many channels, on a database that is slow.
type agencies struct {
	*world
	worker *Worker

	mu       sync.Mutex
	most     int // a claim of more channels runs out of time; 0 = none does
	largest  int // claim that worked, in channels
	channels map[tenancy.OrgID][]publishing.ChannelID
	due      map[publishing.ChannelID]publishing.PostID
}

// newAgencies have a post due on their first channel and one on their last.
func newAgencies(orgs, channels int) *agencies {
	a := &agencies{world: &world{}, channels: map[tenancy.OrgID][]publishing.ChannelID{}, due: map[publishing.ChannelID]publishing.PostID{}}
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

// publish has a post due on the first channel of each organization and one on the last, and returns all posts.
func (a *agencies) publish(most int) (posts []publishing.PostID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.most, a.largest = most, 0
	for org, channels := range a.channels {
		for _, c := range []publishing.ChannelID{channels[0], channels[len(channels)-1]} {
			a.due[c] = id.New[publishing.PostTag]()
			posts = append(posts, a.due[c])
		}
		a.worker.Offer(org, 8)
	}
	return posts
}

func (a *agencies) Claim(
	ctx context.Context, _ publishingservice.Lease, wants []publishingservice.Want, window int, _ publishingservice.Limits,
) (publishingservice.Round, []int64, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	round := publishingstore.NewRound()
	if a.most > 0 && len(wants)*window > a.most {
		<-ctx.Done()
		return round, []int64{1}, ctx.Err()
	}
	a.largest = max(a.largest, len(wants)*window)
	round.Now = time.Now()
	for _, want := range wants {
		looked := 0
		for _, c := range a.channels[want.Org] {
			if looked == window || slices.Compare(bytesOf(c), bytesOf(want.After)) <= 0 {
				continue
			}
			if post, due := a.due[c]; due {
				round.Claimed = append(round.Claimed, publishingservice.Claimed{Org: want.Org, Post: post, Channel: c, Token: token})
				delete(a.due, c)
			}
			if looked++; looked == window {
				round.More[want.Org] = c
			}
		}
	}
	return round, nil, nil
}

func (a *agencies) Granted(org tenancy.OrgID, claimed int, next *time.Time, now time.Time) {
	a.world.Granted(org, claimed, next, now)
	if next != nil {
		a.worker.Offer(org, 8)
	}
}

func (a *agencies) Refused(org tenancy.OrgID, wait time.Duration) {
	time.AfterFunc(wait, func() { a.worker.Offer(org, 8) })
}

func TestClaim_LooksAtFewerChannelsWhenItRunsOutOfTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const orgs, channels = 8, 600
		a := newAgencies(orgs, channels)
		a.worker.Start(t.Context())
		var want []publishing.PostID
		for _, most := range []int{3 * publishingstore.ClaimWindow, 100, 0} {
			want = append(want, a.publish(most)...)
			time.Sleep(time.Hour)
			synctest.Wait()
			if got := a.seen(); !same(got.stored, want) || got.busy != 0 {
				t.Fatalf("%d of %d posts are published when a claim can look at %d channels", len(got.stored), len(want), most)
			}
		}
		if a.largest < orgs*publishingstore.ClaimWindow {
			t.Errorf("the largest claim of a database that is fast again looks at %d channels", a.largest)
		}
		stop(t, a.worker, time.Minute)
	})
}
