package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	schedulerstore "crier/publishing/scheduler/store"
)

func TestLoad_ReturnsNothingOnError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Post(r.Channel(), -time.Second)
	claimed := r.Claim(1)
	if len(claimed) != 1 {
		t.Fatalf("claimed %+v, want one post", claimed)
	}
	owner, err := pgx.Connect(t.Context(), r.Address)
	r.OK(err)
	// The statement reads posts before publications.
	_, err = owner.Exec(t.Context(), "revoke select on publication from crier_sender")
	r.OK(err)
	works, err := schedulerstore.Load(t.Context(), r.Store, []publishing.PostID{claimed[0].Post})
	if err == nil || len(works) != 0 {
		t.Fatalf("%d works are half loaded, the error is %v", len(works), err)
	}
	_, err = owner.Exec(t.Context(), "grant select on publication to crier_sender")
	r.OK(err)
	r.OK(owner.Close(t.Context()))
	works, err = schedulerstore.Load(t.Context(), r.Store, []publishing.PostID{claimed[0].Post})
	if err != nil || len(works) != 1 || len(works[0].Parts) != 1 {
		t.Fatalf("loaded %+v (%v), want one post with one part", works, err)
	}
}

// TestLoad_FillsEachFieldFromItsColumn gives every text column a different value, so that two
// fields with exchanged columns are noticed.
func TestLoad_FillsEachFieldFromItsColumn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	channel := r.Channel()
	post := r.Post(channel, -time.Second)
	r.Claim(1)
	owner, err := pgx.Connect(t.Context(), r.Address)
	r.OK(err)
	_, err = owner.Exec(t.Context(), "select set_config('app.org_id', $1, false)", r.Org.String())
	r.OK(err)
	for statement, id := range map[string]any{
		`update channel set name = 'name', profile = 'profile', picture = 'picture', account_id = 'account_id',
		   account = '{"of": "account"}', credential = 'credential' where id = $1`: channel,
		`update channel_queue set destination = 'destination' where channel_id = $1`:                       channel,
		`update post set settings = '{"of": "settings"}', attempt = 3, looks = 5, reaps = 7 where id = $1`: post,
		`update publication set handle = '{"of": "handle"}', release_id = 'release_id', release_url = 'release_url',
		   ref = '{"of": "ref"}', sent_to = 'sent_to' where post_id = $1`: post,
		`update part set content = 'content' where post_id = $1`: post,
	} {
		tag, err := owner.Exec(t.Context(), statement, id)
		r.OK(err)
		if tag.RowsAffected() != 1 {
			t.Fatalf("%s: changed %d rows, want 1", statement, tag.RowsAffected())
		}
	}
	r.OK(owner.Close(t.Context()))
	works, err := schedulerstore.Load(t.Context(), r.Store, []publishing.PostID{post})
	r.OK(err)
	w := works[0]
	x := w.Parts[0]
	for want, got := range map[string]string{
		"name": w.Channel.Name, "profile": w.Channel.Profile, "picture": w.Channel.Picture,
		"account_id": w.Channel.AccountID, `{"of": "account"}`: string(w.Channel.Account),
		"credential": string(w.Credential), "destination": w.Channel.Destination,
		`{"of": "settings"}`: string(w.Settings), `{"of": "handle"}`: string(x.Handle), "release_id": *x.ReleaseID,
		"release_url": *x.URL, `{"of": "ref"}`: string(x.Ref), "sent_to": x.SentTo, "content": x.Content.Text,
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if w.Attempt != 3 || w.ReconcileAttempts != 5 || w.Reaps != 7 {
		t.Errorf("got attempt %d, looks %d and reaps %d, want 3, 5 and 7", w.Attempt, w.ReconcileAttempts, w.Reaps)
	}
}
