package contract

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// gap returns how long a channel's queue waits after its last post, or 0 if it does not wait.
func (r *rig) gap(t *testing.T, c channel) (gap time.Duration) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), r.database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(t.Context()))
	if _, err := db.Exec(t.Context(), "set role crier_clock"); err != nil {
		t.Fatal(err)
	}
	const query = "select coalesce(not_before - done_at, interval '0') from channel_queue where channel_id = $1"
	if err := db.QueryRow(t.Context(), query, c.id).Scan(&gap); err != nil {
		t.Fatal(err)
	}
	return gap
}

func TestPause_HeldPostsAreReleasedOneByOne(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"CATCH_UP_INTERVAL": "1h"})
	o := r.organization(t)
	c, free := o.channel(t, "A"), o.channel(t, "A")
	pause := o.pauses(t, "/integrations/"+c.id+"/pause")
	if got := pause(true); !got.Paused || got.Held != 0 || got.InFlight != 0 || len(got.Posts) != 0 {
		t.Fatalf("the pause of an empty queue answered %+v, want no posts", got)
	}
	var ids []string
	for i := range 3 {
		ids = append(ids, o.create(t, now(c.id, part(fmt.Sprint("held ", i)))))
	}
	o.reaches(t, o.create(t, now(free.id, part("not held"))), "PUBLISHED")
	// Make the posts look as if they had been held for a while.
	r.clock(t, `update post set due = due - interval '10 minutes' where channel_id = $1`, c.id)
	for _, id := range ids {
		o.wantState(t, id, "QUEUE")
	}
	held := pause(true)
	if held.Held != 3 || len(held.Posts) != 3 {
		t.Fatalf("the pause answered %+v, want 3 posts held and listed", held)
	}
	if p := held.Posts[0]; p.ID != ids[0] || p.Content != "held 0" || p.Integration.ID != c.id {
		t.Fatalf("the first held post is %+v, want %s, held 0, on %s", p, ids[0], c.id)
	}
	// The first post may already be in progress.
	if got := pause(false); got.Paused || got.Held+got.InFlight != 3 || got.Missed != 0 {
		t.Fatalf("the resume answered %+v, want 3 posts held or in flight and none missed", got)
	}
	for i, id := range ids {
		o.reaches(t, id, "PUBLISHED")
		if gap := r.gap(t, c); gap != time.Hour {
			t.Errorf("after post %d the channel waits for %s, want %s", i, gap, time.Hour)
		}
		o.reaches(t, o.create(t, now(free.id, part(fmt.Sprint("meanwhile ", i)))), "PUBLISHED")
		if n := len(r.published(t, c)); n != i+1 {
			t.Errorf("%d posts are published before the gap after post %d is over, want %d", n, i, i+1)
		}
		r.clock(t, `update channel_queue set not_before = now() where channel_id = $1`, c.id) // end it
	}
	r.wantTexts(t, c, "held 0 | held 1 | held 2")
}
