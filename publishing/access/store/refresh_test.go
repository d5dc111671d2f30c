package store_test

import (
	"testing"
	"time"

	accessstore "crier/publishing/access/store"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/scheduler/dispatch"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// An account may move to another server while its access is refreshed. The claim then counts its
// posts there.
func TestSwapCredential_MovesDestination(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	channel := r.ChannelAt("first.example")
	for _, step := range []struct {
		old, fresh, destination string
		swapped                 bool
		want                    string
	}{
		{old: "another", fresh: "a", destination: "second.example", want: "@first.example"},
		{old: "sealed", fresh: "b", swapped: true, want: "@first.example"},
		{old: "b", fresh: "c", destination: "second.example", swapped: true, want: "@second.example"},
	} {
		swapped, err := accessstore.SwapCredential(t.Context(), r.Store, r.Org, channel, []byte(step.old), []byte(step.fresh), accessstore.Renewal{Destination: step.destination}, nil)
		if r.OK(err); swapped != step.swapped {
			t.Errorf("%s replaced by %s: %t", step.old, step.fresh, swapped)
		}
		r.Post(channel, -time.Second)
		claims := r.Claim(8)
		if len(claims) != 1 || claims[0].Destination != step.want {
			t.Fatalf("after %s the claim is %+v, want one to %s", step.fresh, claims, step.want)
		}
		r.Finish(claims[0], dispatch.ResultError, "refused")
	}
}

// A send that still uses the old credential may be refused after the channel was reconnected.
func TestPark_LeavesReconnectedChannel(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	c := fixture.Channel(r.Org)
	for _, step := range []struct {
		sealed string
		parked bool
	}{{sealed: "old", parked: true}, {sealed: "new", parked: false}} {
		_, _, err := channelstore.ConnectChannel(t.Context(), r.Store, c, []byte(step.sealed), nil, nil)
		r.OK(err)
		r.OK(accessstore.Park(t.Context(), r.Store, r.Org, c.ID, []byte("old"), "reason"))
		r.Post(c.ID, -time.Second)
		if claims := r.Claim(1); (len(claims) == 0) != step.parked {
			t.Errorf("with the access %q a post is claimed: %t", step.sealed, len(claims) > 0)
		}
	}
}
