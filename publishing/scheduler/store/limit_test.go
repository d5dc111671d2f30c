package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"crier/publishing"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/scheduler/dispatch"
	"crier/tests/fixture"
)

// on connects a channel on a platform.
func (r *rig) on(platform string) publishing.ChannelID {
	r.Helper()
	c := fixture.Channel(r.Org)
	c.Connector = platform
	_, _, err := channelstore.ConnectChannel(r.Context(), r.Store, c, []byte("sealed"), nil, nil)
	r.OK(err)
	return c.ID
}

func TestClaim_RespectsThePlatformLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var slow []publishing.PostID
	for i := range 4 {
		slow = append(slow, r.Post(r.on("slow"), time.Duration(i-10)*time.Second))
	}
	quick := r.Post(r.on("quick"), -time.Second)
	later := r.Post(r.on("slow"), time.Hour)
	wants := []dispatch.Want{{Org: r.Org, Permits: 3}}
	claim := func(platforms map[string]int) (posts []publishing.PostID, round dispatch.ClaimResult) {
		limits := dispatch.NoClaimLimits()
		limits.Platforms = platforms
		round, err := r.ClaimFor(r.Lease, limits, wants...)
		r.OK(err)
		for _, c := range round.Claimed {
			posts = append(posts, c.Post)
		}
		return posts, round
	}
	posts, round := claim(map[string]int{"slow": 1, "none": 5})
	if !slices.Equal(posts, slow[:1]) || round.Claimed[0].Connector != "slow" || round.Next[r.Org].After(round.Now) || len(round.AtLimit) != 0 {
		t.Fatalf("one of the slow platform: %+v", round)
	}
	posts, round = claim(map[string]int{"slow": 0})
	if !slices.Equal(posts, []publishing.PostID{quick}) || !slices.Equal(round.AtLimit[r.Org], []string{"slow"}) || round.Next[r.Org].Before(round.Now.Add(time.Minute)) {
		t.Fatalf("none of the slow platform: %+v, the later post is %v", round, later)
	}
	posts, round = claim(nil)
	if !slices.Equal(posts, slow[1:]) && len(posts) != 3 || len(round.AtLimit) != 0 {
		t.Fatalf("without a limit: %+v", round)
	}
}

// A channel without a post keeps the gap after its last late posts. It must not take a permit from
// other channels.
func TestClaim_CountsOnlyChannelsThatHaveAPost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.ChannelAt("healthy.example"), -time.Second)
	for i := range 7 {
		c := r.ChannelAt(fmt.Sprintf("idle%d.example", i))
		r.Clock(`update channel_queue set not_before = now() - interval '1 day' where channel_id = $1`, c)
	}
	want := dispatch.Want{Org: r.Org, Permits: 8}
	limits := dispatch.ClaimLimits{Busy: map[string]int{"@healthy.example": 3}, Free: 8}
	round, err := r.ClaimFor(r.Lease, limits, want)
	if r.OK(err); len(round.Claimed) != 1 || round.Claimed[0].Post != post {
		t.Errorf("%+v is claimed, want the only post", round.Claimed)
	}
}
