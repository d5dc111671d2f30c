package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/publishing"
	"crier/tests/dbtest"
)

func TestLoad_ReturnsNothingOnError(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	r := newRigOn(t, dbtest.OpenURL(t, address))
	r.post(r.channel(), -time.Second)
	claimed := r.claim(1)
	if len(claimed) != 1 {
		t.Fatalf("claimed %+v, want one post", claimed)
	}
	owner, err := pgx.Connect(t.Context(), address)
	r.ok(err)
	_, err = owner.Exec(t.Context(), "revoke select on publication from crier_sender") // the statement reads posts before it
	r.ok(err)
	works, err := r.store.Load(t.Context(), []publishing.PostID{claimed[0].Post})
	if err == nil || len(works) != 0 {
		t.Fatalf("%d works are half loaded, the error is %v", len(works), err)
	}
	_, err = owner.Exec(t.Context(), "grant select on publication to crier_sender")
	r.ok(err)
	r.ok(owner.Close(t.Context()))
	works, err = r.store.Load(t.Context(), []publishing.PostID{claimed[0].Post})
	if err != nil || len(works) != 1 || len(works[0].Parts) != 1 {
		t.Fatalf("loaded %+v (%v), want one post with one part", works, err)
	}
}
