package contract

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// gap returns how long the queue of a channel waits after its last post, 0 if it does not.
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
	err = db.QueryRow(t.Context(), "select coalesce(not_before - done_at, interval '0') from channel_queue where channel_id = $1", c.id).Scan(&gap)
	if err != nil {
		t.Fatal(err)
	}
	return gap
}

func TestPause_HeldPostsAreReleasedOneByOne(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"LATE_GAP": "1h"})
	o := r.organization(t)
	c, free := o.channel(t, "A"), o.channel(t, "A")
	ask := o.dashboard(t)
	if got := ask("PUT", "/integrations/"+c.id+"/pause", m{"paused": true}).want(t, 200).object(t); got["paused"] != true || got["held"] != 0.0 || got["inFlight"] != 0.0 || len(got["posts"].([]any)) != 0 {
		t.Fatalf("%v", got)
	}
	var ids []string
	for i := range 3 {
		ids = append(ids, o.create(t, now(c.id, part(fmt.Sprint("held ", i)))))
	}
	o.reaches(t, o.create(t, now(free.id, part("not held"))), "PUBLISHED")
	// As if they had been held for a while.
	r.clock(t, `update post set due = due - interval '10 minutes' where channel_id = $1`, c.id)
	for _, id := range ids {
		if v := o.get(t, "/posts/"+id).object(t); v["state"] != "QUEUE" {
			t.Fatalf("%v", v)
		}
	}
	held := ask("PUT", "/integrations/"+c.id+"/pause", m{"paused": true}).want(t, 200).object(t)
	if posts := held["posts"].([]any); held["held"] != 3.0 || len(posts) != 3 || posts[0].(m)["id"] != ids[0] || posts[0].(m)["content"] != "held 0" || posts[0].(m)["integration"].(m)["id"] != c.id {
		t.Fatalf("%v", held)
	}
	if got := ask("PUT", "/integrations/"+c.id+"/pause", m{"paused": false}).want(t, 200).object(t); got["paused"] != false || got["held"].(float64)+got["inFlight"].(float64) != 3 || got["missed"] != 0.0 {
		t.Fatalf("%v", got) // the first may be on its way already
	}
	for i, id := range ids {
		o.reaches(t, id, "PUBLISHED")
		if gap := r.gap(t, c); gap != time.Hour {
			t.Errorf("after post %d the channel rests for %s, want %s", i, gap, time.Hour)
		}
		o.reaches(t, o.create(t, now(free.id, part(fmt.Sprint("meanwhile ", i)))), "PUBLISHED")
		if n := len(r.published(t, c)); n != i+1 {
			t.Errorf("%d posts are out before the gap after post %d is over", n, i)
		}
		r.clock(t, `update channel_queue set not_before = now() where channel_id = $1`, c.id) // it is over
	}
	if got := r.texts(t, c); got != "held 0 | held 1 | held 2" {
		t.Error(got)
	}
}
