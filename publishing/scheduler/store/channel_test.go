package store_test

import (
	"errors"
	"testing"
	"time"

	"crier/platform/pg"
	"crier/publishing"
	accessstore "crier/publishing/access/store"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
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
		{old: "another", fresh: "a", destination: "second.example", want: "@first.example"},
		{old: "sealed", fresh: "b", swapped: true, want: "@first.example"},
		{old: "b", fresh: "c", destination: "second.example", swapped: true, want: "@second.example"},
	} {
		swapped, err := accessstore.SwapCredential(t.Context(), r.store, r.org, channel, []byte(step.old), []byte(step.fresh), accessstore.Renewal{Destination: step.destination}, nil)
		if r.ok(err); swapped != step.swapped {
			t.Errorf("%s replaced by %s: %t", step.old, step.fresh, swapped)
		}
		r.post(channel, -time.Second)
		claims := r.claim(8)
		if len(claims) != 1 || claims[0].Destination != step.want {
			t.Fatalf("after %s the claim is %+v, want one to %s", step.fresh, claims, step.want)
		}
		r.finish(claims[0], publishing.ResultError, "refused")
	}
}

// The names are those that the account has on its platform.
func TestConnect_AgainRenewsNames(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := fixture.Channel(r.org)
	first, _, err := channelstore.ConnectChannel(t.Context(), r.store, c, []byte("old"), nil, nil)
	r.ok(err)
	c.Name, c.Profile = "Renamed", "renamed.test"
	again, _, err := channelstore.ConnectChannel(t.Context(), r.store, c, []byte("new"), nil, nil)
	r.ok(err)
	if again.ID != first.ID || again.Name != "Renamed" || again.Profile != "renamed.test" {
		t.Errorf("got %+v, want the channel %s with the new names", again, first.ID)
	}
}

// A send that still uses the old credential may be refused after the channel was connected again.
func TestPark_LeavesReconnectedChannel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := fixture.Channel(r.org)
	for _, step := range []struct {
		sealed string
		parked bool
	}{{sealed: "old", parked: true}, {sealed: "new", parked: false}} {
		_, _, err := channelstore.ConnectChannel(t.Context(), r.store, c, []byte(step.sealed), nil, nil)
		r.ok(err)
		r.ok(accessstore.Park(t.Context(), r.store, r.org, c.ID, []byte("old"), "reason"))
		r.post(c.ID, -time.Second)
		if claims := r.claim(1); (len(claims) == 0) != step.parked {
			t.Errorf("with the access %q a post is claimed: %t", step.sealed, len(claims) > 0)
		}
	}
}

func TestConnect_NewChannelHasZoneOfOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const move = "update organization set timezone = $2 where id = $1"
	r.tenant(move, r.org, "Europe/Berlin")
	c := fixture.Channel(r.org)
	got, _, err := channelstore.ConnectChannel(t.Context(), r.store, c, []byte("sealed"), nil, nil)
	r.ok(err)
	r.tenant(move, r.org, "Asia/Tokyo")
	again, _, err := channelstore.ConnectChannel(t.Context(), r.store, c, []byte("sealed"), nil, nil)
	r.ok(err)
	if got.Timezone != "Europe/Berlin" || again.Timezone != "Europe/Berlin" {
		t.Errorf("connected in %s, reconnected in %s", got.Timezone, again.Timezone)
	}
}

func TestConnect_ChecksEachNewChannelByTheNumberBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const most = 3
	errFull := errors.New("full")
	atMost := func(n int) func(*db.Tx, int) error {
		return func(_ *db.Tx, present int) error {
			if present >= n {
				return errFull
			}
			return nil
		}
	}
	ended := make(chan error)
	for range 2 * most {
		go func() {
			_, _, err := channelstore.ConnectChannel(t.Context(), r.store, fixture.Channel(r.org), []byte("sealed"), nil, atMost(most))
			ended <- err
		}()
	}
	for range most {
		for range 2 {
			if err := <-ended; err != nil && !errors.Is(err, errFull) {
				t.Error(err)
			}
		}
	}
	list, err := channelstore.Channels(t.Context(), r.store, r.org, publishing.CustomerID{})
	r.ok(err)
	if len(list) != most {
		t.Fatalf("%d channels after connecting %d at once, want %d", len(list), 2*most, most)
	}
	again := fixture.Channel(r.org)
	again.AccountID = list[0].AccountID
	if got, _, err := channelstore.ConnectChannel(t.Context(), r.store, again, []byte("sealed"), nil, atMost(1)); err != nil || got.ID != list[0].ID {
		t.Errorf("connecting an account again: channel %s, error %v, want %s", got.ID, err, list[0].ID)
	}
	r.ok(r.inOrg(func(tx *db.Tx) error {
		_, err := channelstore.Disconnect(t.Context(), tx, list[1].ID, poststore.EndOfChannel)
		return err
	}))
	for _, want := range []error{nil, errFull} {
		if _, _, err := channelstore.ConnectChannel(t.Context(), r.store, fixture.Channel(r.org), []byte("sealed"), nil, atMost(most)); !errors.Is(err, want) {
			t.Errorf("a new channel after one was disconnected: got %v, want %v", err, want)
		}
	}
	newRigOn(t, r.db).channel()
}

func TestChannels_ListsAtMostMaxChannels(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.tenant(`insert into channel (org_id, id, connector, name, account_id, grade)
		select $1, gen_random_uuid(), 'sandbox', 'a channel', n::text, 'C' from generate_series(1, $2) n`,
		r.org, publishing.MaxChannels+1)
	list, err := channelstore.Channels(t.Context(), r.store, r.org, publishing.CustomerID{})
	r.ok(err)
	if len(list) != publishing.MaxChannels {
		t.Errorf("%d channels are listed, want %d", len(list), publishing.MaxChannels)
	}
}

// A credential of megabytes would be loaded with every claim of its channel.
func TestCredential_IsBoundedInTheTable(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := fixture.Channel(r.org)
	large := make([]byte, 32<<10+1)
	_, _, err := channelstore.ConnectChannel(t.Context(), r.store, c, large[1:], nil, nil)
	r.ok(err)
	if _, _, err := channelstore.ConnectChannel(t.Context(), r.store, c, large, nil, nil); !pg.IsRefused(err) {
		t.Errorf("connecting with an access of %d bytes: %v, want a refusal", len(large), err)
	}
	if _, err := accessstore.SwapCredential(t.Context(), r.store, r.org, c.ID, large[1:], large, accessstore.Renewal{}, nil); !pg.IsRefused(err) {
		t.Errorf("an access of %d bytes instead of one of %d: %v, want a refusal", len(large), len(large)-1, err)
	}
}
