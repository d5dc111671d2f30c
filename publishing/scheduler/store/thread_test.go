package store_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/tests/fixture"
)

func TestEvents_HavePartsThatCouldNotFollow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.post(r.channel(), -time.Second, time.Hour, time.Hour)
	r.finish(r.claim(1)[0], publishing.ResultError, publishing.CodeRejected)
	events, err := poststore.Events(t.Context(), r.store, r.org, r.groupOf(post))
	r.ok(err)
	var failed []string
	for _, e := range events {
		if e.Kind == publishing.EventFailed {
			failed = append(failed, *e.Reason)
		}
	}
	slices.Sort(failed)
	if want := []string{"predecessor_failed", "predecessor_failed", publishing.CodeRejected}; !slices.Equal(failed, want) {
		t.Errorf("%q, want %q", failed, want)
	}
}

func TestHeld_ReturnsTextAndTimeOfFollower(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.channel()
	r.post(c, -time.Second, time.Hour)
	r.finish(r.claim(1)[0], publishing.ResultPublished, "")
	held := r.pause(publishing.PauseChannel, c, true, time.Hour)
	if len(held.Posts) != 1 || held.Texts[held.Posts[0].ID] != "part 1" || time.Until(held.Posts[0].PublishDate) < 50*time.Minute {
		t.Errorf("held is %+v, want the follower with its own text and time", held)
	}
}

// The scheduler finds posts by their ids alone, so no organization may use the id of a post of another one.
func TestInsert_RefusesIDOfAnotherOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.post(r.channel(), time.Hour)
	other := newRigOn(t, r.db)
	mine := fixture.Post(other.org, other.channel(), time.Now().Add(time.Hour))
	mine[0].ID = post
	mine[0].Parts[0].ID = id.New[publishing.PartTag]()
	err := other.inOrg(func(tx *db.Tx) error { return poststore.Insert(t.Context(), tx, written(mine)) })
	if pe := (*pgconn.PgError)(nil); !errors.As(err, &pe) || pe.Code != "23505" {
		t.Errorf("taken twice: %v", err)
	}
}
