package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	accessstore "crier/publishing/access/store"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// The names are the ones that the account has on its platform.
func TestConnect_ReconnectingRenewsNames(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	c := fixture.Channel(r.Org)
	first, _, err := channelstore.ConnectChannel(t.Context(), r.Store, c, []byte("old"), nil, nil)
	r.OK(err)
	c.Name, c.Profile = "Renamed", "renamed.test"
	again, _, err := channelstore.ConnectChannel(t.Context(), r.Store, c, []byte("new"), nil, nil)
	r.OK(err)
	if again.ID != first.ID || again.Name != "Renamed" || again.Profile != "renamed.test" {
		t.Errorf("got %+v, want the channel %s with the new names", again, first.ID)
	}
}

func TestConnect_NewChannelHasZoneOfOrganization(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	const move = "update organization set timezone = $2 where id = $1"
	r.Exec(move, r.Org, "Europe/Berlin")
	c := fixture.Channel(r.Org)
	got, _, err := channelstore.ConnectChannel(t.Context(), r.Store, c, []byte("sealed"), nil, nil)
	r.OK(err)
	r.Exec(move, r.Org, "Asia/Tokyo")
	again, _, err := channelstore.ConnectChannel(t.Context(), r.Store, c, []byte("sealed"), nil, nil)
	r.OK(err)
	if got.Timezone != "Europe/Berlin" || again.Timezone != "Europe/Berlin" {
		t.Errorf("connected in %s, reconnected in %s", got.Timezone, again.Timezone)
	}
}

func TestConnect_CountsConcurrentConnects(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
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
			_, _, err := channelstore.ConnectChannel(t.Context(), r.Store, fixture.Channel(r.Org), []byte("sealed"), nil, atMost(most))
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
	list, err := channelstore.Channels(t.Context(), r.Store, r.Org, publishing.CustomerID{})
	r.OK(err)
	if len(list) != most {
		t.Fatalf("%d channels after connecting %d at once, want %d", len(list), 2*most, most)
	}
	again := fixture.Channel(r.Org)
	again.AccountID = list[0].AccountID
	if got, _, err := channelstore.ConnectChannel(t.Context(), r.Store, again, []byte("sealed"), nil, atMost(1)); err != nil || got.ID != list[0].ID {
		t.Errorf("connecting an account again: channel %s, error %v, want %s", got.ID, err, list[0].ID)
	}
	r.Disconnect(list[1].ID)
	for _, want := range []error{nil, errFull} {
		if _, _, err := channelstore.ConnectChannel(t.Context(), r.Store, fixture.Channel(r.Org), []byte("sealed"), nil, atMost(most)); !errors.Is(err, want) {
			t.Errorf("a new channel after one was disconnected: got %v, want %v", err, want)
		}
	}
	publishtest.NewStoreRigOn(r.Base).Channel()
}

func TestChannels_ListsAtMostMaxChannels(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	r.Exec(`insert into channel (org_id, id, connector, name, account_id, grade)
		select $1, gen_random_uuid(), 'sandbox', 'a channel', n::text, 'C' from generate_series(1, $2) n`,
		r.Org, publishing.MaxChannels+1)
	list, err := channelstore.Channels(t.Context(), r.Store, r.Org, publishing.CustomerID{})
	r.OK(err)
	if len(list) != publishing.MaxChannels {
		t.Errorf("%d channels are listed, want %d", len(list), publishing.MaxChannels)
	}
}

// A credential of several megabytes would be loaded with every claim of its channel.
func TestCredential_IsBoundedInTheTable(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	c := fixture.Channel(r.Org)
	large := make([]byte, 32<<10+1)
	_, _, err := channelstore.ConnectChannel(t.Context(), r.Store, c, large[1:], nil, nil)
	r.OK(err)
	if _, _, err := channelstore.ConnectChannel(t.Context(), r.Store, c, large, nil, nil); !pg.IsRefused(err) {
		t.Errorf("connecting with an access of %d bytes: %v, want a refusal", len(large), err)
	}
	if _, err := accessstore.SwapCredential(t.Context(), r.Store, r.Org, c.ID, large[1:], large, accessstore.Renewal{}, nil); !pg.IsRefused(err) {
		t.Errorf("an access of %d bytes instead of one of %d: %v, want a refusal", len(large), len(large)-1, err)
	}
}

func TestDisconnect_DeletesCredentialAndPosts(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	c := r.Channel()
	sent := r.Post(c, -time.Second)
	claimed := r.Claim(1)
	later := r.Post(c, time.Hour)
	if len(claimed) != 1 || !r.Mark(claimed...)[0] {
		t.Fatalf("got the claims %+v, want one that can be marked", claimed)
	}
	if !r.Disconnect(c) || r.Disconnect(c) {
		t.Fatal("it is there before, and gone after")
	}
	r.OK(r.DB.InOrg(t.Context(), r.Org.UUID(), func(tx pgx.Tx) error {
		var access, plans int
		err := tx.QueryRow(t.Context(), `select (select count(*) from channel where credential is not null), (select count(*) from post where deleted_at is null)`).Scan(&access, &plans)
		if access != 0 || plans != 0 {
			t.Errorf("%d accesses and %d posts are left, %v and %v were there", access, plans, sent, later)
		}
		return err
	}))
	if done := r.Finish(claimed[0], dispatch.ResultPublished, ""); len(done) != 1 || done[0].State != publishing.StatePublished {
		t.Errorf("what was on its way ends as %+v", done)
	}
	if again := r.Claim(5); len(again) != 0 {
		t.Errorf("claimed after the disconnect: %+v", again)
	}
}
