package store_test

import (
	"testing"
	"time"

	publishingstore "crier/publishing/store"
	"crier/tests/fixture"
)

// An account may move to another server while its access is renewed: the claim then counts its posts there.
func TestSwapCredential_MovesDestination(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	channel := r.to("first.example")
	for _, step := range []struct {
		old, fresh, destination string
		swapped                 bool
		want                    string
	}{
		{"another", "a", "second.example", false, "@first.example"},
		{"sealed", "b", "", true, "@first.example"},
		{"b", "c", "second.example", true, "@second.example"},
	} {
		swapped, err := r.store.SwapCredential(t.Context(), r.org, channel, []byte(step.old), []byte(step.fresh), step.destination)
		if r.ok(err); swapped != step.swapped {
			t.Errorf("%s replaced by %s: %t", step.old, step.fresh, swapped)
		}
		r.post(channel, -time.Second)
		claims := r.claim(8)
		if len(claims) != 1 || claims[0].Place != step.want {
			t.Fatalf("after %s the claim is %+v, want one to %s", step.fresh, claims, step.want)
		}
		r.finish(claims[0], publishingstore.ResultError, "refused")
	}
}

// A send that still uses the old access may be refused after somebody has reconnected the channel.
func TestPark_LeavesReconnectedChannel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := fixture.Channel(r.org)
	for _, step := range []struct {
		sealed string
		parked bool
	}{{"old", true}, {"new", false}} {
		_, _, err := r.store.Connect(t.Context(), c, []byte(step.sealed))
		r.ok(err)
		r.ok(r.store.Park(t.Context(), r.org, c.ID, []byte("old")))
		r.post(c.ID, -time.Second)
		if claims := r.claim(1); (len(claims) == 0) != step.parked {
			t.Errorf("with the access %q a post is claimed: %t", step.sealed, len(claims) > 0)
		}
	}
}

func TestAChannelBeginsInItsOrganizationsZone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const move = "update organization set timezone = $2 where id = $1"
	r.tenant(move, r.org, "Europe/Berlin")
	c := fixture.Channel(r.org)
	got, _, err := r.store.Connect(t.Context(), c, []byte("sealed"))
	r.ok(err)
	r.tenant(move, r.org, "Asia/Tokyo")
	again, _, err := r.store.Connect(t.Context(), c, []byte("sealed"))
	r.ok(err)
	if got.Timezone != "Europe/Berlin" || again.Timezone != "Europe/Berlin" {
		t.Errorf("connected in %s, reconnected in %s", got.Timezone, again.Timezone)
	}
}
