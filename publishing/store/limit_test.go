package store_test

import (
	"slices"
	"testing"
	"time"

	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tests/fixture"
)

// on connects a channel of a platform.
func (r *rig) on(platform string) publishing.ChannelID {
	r.Helper()
	c := fixture.Channel(r.org)
	c.Connector = platform
	_, _, err := r.store.Connect(r.Context(), c, []byte("sealed"))
	r.ok(err)
	return c.ID
}

func TestWhatAPlatformsChannelsShare(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var slow []publishing.PostID
	for i := range 4 {
		slow = append(slow, r.post(r.on("slow"), time.Duration(i-10)*time.Second))
	}
	quick := r.post(r.on("quick"), -time.Second)
	later := r.post(r.on("slow"), time.Hour)
	wants := []publishingstore.Want{{Org: r.org, Permits: 3}}
	n, err := r.store.Heads(t.Context(), r.lease, wants, []string{"slow", "quick", "none"}, rules())
	if err != nil || n["slow"] != 3 || n["quick"] != 0 || len(n) != 1 { // the permits go to the earliest
		t.Fatalf("due are %v: %v", n, err)
	}
	claim := func(platforms map[string]int) (posts []publishing.PostID, round publishingstore.Round) {
		limits := publishingstore.AllFree()
		limits.Platforms = platforms
		round, err := r.claimOf(r.lease, limits, wants...)
		r.ok(err)
		for _, c := range round.Claimed {
			posts = append(posts, c.Post)
		}
		return posts, round
	}
	posts, round := claim(map[string]int{"slow": 1, "none": 5})
	if !slices.Equal(posts, slow[:1]) || round.Claimed[0].Connector != "slow" || round.Next[r.org].After(round.Now) || len(round.Held) != 0 {
		t.Fatalf("one of the slow platform: %+v", round)
	}
	posts, round = claim(map[string]int{"slow": 0})
	if !slices.Equal(posts, []publishing.PostID{quick}) || !slices.Equal(round.Held[r.org], []string{"slow"}) || round.Next[r.org].Before(round.Now.Add(time.Minute)) {
		t.Fatalf("none of the slow platform: %+v, the later post is %v", round, later)
	}
	if posts, round = claim(nil); !slices.Equal(posts, slow[1:]) && len(posts) != 3 || len(round.Held) != 0 {
		t.Fatalf("without a limit: %+v", round)
	}
}
