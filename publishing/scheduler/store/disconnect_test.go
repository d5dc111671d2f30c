package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
)

func (r *rig) disconnect(c publishing.ChannelID) (found bool) {
	r.Helper()
	r.ok(r.inOrg(func(tx *db.Tx) (err error) {
		found, err = channelstore.Disconnect(r.Context(), tx, c, poststore.EndOfChannel)
		return err
	}))
	return found
}

func TestDisconnect_DeletesCredentialAndPosts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.channel()
	sent := r.post(c, -time.Second)
	claimed := r.claim(1)
	later := r.post(c, time.Hour)
	if len(claimed) != 1 || !r.mark(claimed...)[0] {
		t.Fatalf("got the claims %+v, want one that can be marked", claimed)
	}
	if !r.disconnect(c) || r.disconnect(c) {
		t.Fatal("it is there before, and gone after")
	}
	r.ok(r.db.InOrg(t.Context(), r.org.UUID(), func(tx pgx.Tx) error {
		var access, plans int
		err := tx.QueryRow(t.Context(), `select (select count(*) from channel where credential is not null), (select count(*) from post where deleted_at is null)`).Scan(&access, &plans)
		if access != 0 || plans != 0 {
			t.Errorf("%d accesses and %d posts are left, %v and %v were there", access, plans, sent, later)
		}
		return err
	}))
	if done := r.finish(claimed[0], publishing.ResultPublished, ""); len(done) != 1 || done[0].State != publishing.StatePublished {
		t.Errorf("what was on its way ends as %+v", done)
	}
	if again := r.claim(5); len(again) != 0 {
		t.Errorf("claimed after the disconnect: %+v", again)
	}
}
