package store_test

import (
	"log/slog"
	"testing"
	"time"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	publishingdb "crier/publishing/db"
	"crier/publishing/post"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler"
	"crier/tests/fixture"
)

// repeated creates a repeated post with some parts, overdue by a second, and returns it.
func (r *rig) repeated(channel publishing.ChannelID, rule publishing.Repeat, zone string, delays ...time.Duration) publishing.PostID {
	r.Helper()
	due := time.Now().Add(-time.Second).UTC().Truncate(time.Second)
	posts := fixture.Post(r.org, channel, due, delays...)
	template := fixture.Post(r.org, channel, due, delays...)
	template[0].State = publishing.StateDraft
	r.ok(r.inOrg(func(tx *publishingdb.Tx) error {
		if err := poststore.Insert(r.Context(), tx, written(posts)); err != nil {
			return err
		}
		return poststore.Repeat(r.Context(), tx, posts[0].ID, rule, zone, written(template))
	}))
	return posts[0].ID
}

// publisher is a process that does the step of all series of the rig.
func (r *rig) sender() *scheduler.Sender {
	return scheduler.New(scheduler.Config{}, scheduler.Deps{DB: &publishingdb.DB{DB: r.db, Node: "test"}, Log: slog.New(slog.DiscardHandler),
		Series: post.Series{DB: &publishingdb.DB{DB: r.db, Node: "test"}}})
}

// step writes the next occurrences and returns their number.
func (r *rig) step() int {
	r.Helper()
	written, more, err := r.sender().WriteOccurrences(r.Context(), r.lease)
	r.ok(err)
	if more {
		r.Error("more is to be done")
	}
	return written
}

// end claims and ends the due post of a channel, and then does the step.
func (r *rig) end(post publishing.PostID, result publishing.Result, code string) {
	r.Helper()
	r.endOnly(post, result, code)
	r.step()
}

// endOnly ends an occurrence as a process that is killed before the step.
func (r *rig) endOnly(post publishing.PostID, result publishing.Result, code string) {
	r.Helper()
	for _, c := range r.claim(10) {
		if c.Post == post {
			r.finish(c, result, code)
			return
		}
	}
	r.Fatalf("%s is not claimed", post)
}

// fast makes an occurrence due now.
func (r *rig) fast(post publishing.PostID) {
	r.Helper()
	r.clock(`update post set due = now() - interval '1 second' where id = $1`, post)
}

func (r *rig) within(from, to time.Time) []publishing.Post {
	r.Helper()
	out, err := poststore.Roots(r.Context(), r.store, r.org, publishing.ListPosts{Start: from, End: to}, publishing.CustomerID{}, 1000)
	r.ok(err)
	return out
}

func (r *rig) exists(post publishing.PostID) bool {
	r.Helper()
	roots, err := poststore.Root(r.Context(), r.store, r.org, post)
	r.ok(err)
	return len(roots) == 1
}

func (r *rig) remove(post publishing.PostID) {
	r.Helper()
	r.ok(r.inOrg(func(tx *publishingdb.Tx) error {
		group, err := poststore.GroupOf(r.Context(), tx, post)
		if pg.IsNoRows(err) {
			group, _, err = poststore.Materialize(r.Context(), tx, post.UUID(), false)
		}
		if err != nil {
			return err
		}
		posts, err := poststore.LockGroup(r.Context(), tx, group)
		if err != nil {
			return err
		}
		return poststore.Delete(r.Context(), tx, posts)
	}))
	r.step()
}

func TestAdvance_WritesNextOccurrence(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.repeated(r.channel(), publishing.Repeat{Days: 7}, "Europe/Berlin", 0, time.Hour)
	second := publishing.Occurrence(first, 1)
	if r.exists(second) {
		t.Fatal("the second is written before the first has ended")
	}
	began := r.root(first)
	r.end(first, publishing.ResultPublished, "")
	next := r.root(second)
	if next.State != publishing.StateQueue || next.Interval != 7 || next.Occurrence != 1 {
		t.Fatalf("the next occurrence is %+v, want number 1 in the queue, every 7 days", next)
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	r.ok(err)
	a, b := began.PublishDate.In(zone), next.PublishDate.In(zone)
	if a.AddDate(0, 0, 7).Format(time.DateTime) != b.Format(time.DateTime) {
		t.Fatalf("%v is followed by %v", a, b)
	}
	whole, err := poststore.ReadThreadData(t.Context(), r.store, r.org, []publishing.Post{next})
	r.ok(err)
	parts := whole.Parts[next.Group]
	followers := whole.Followers[next.Group]
	if len(parts) != 3 || parts[0].Content.Text != "part 0" || parts[2].Content.Text != "part 2" || parts[2].Delay != time.Hour ||
		len(followers) != 1 || followers[0].State != publishing.StateWaiting {
		t.Fatalf("got %+v, want three parts and one waiting follower", whole)
	}
	if parts[0].ID != id.FromUUID[publishing.PartTag](second.UUID()) {
		t.Fatal("the first part has not its post's id")
	}
	r.fast(second)
	r.end(second, publishing.ResultPublished, "")
	r.expect(publishing.Occurrence(first, 2), publishing.StateQueue)
}

func TestAdvance_StopsSeries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	t.Run("at the end of the recurrence", func(t *testing.T) {
		until := time.Now().Add(25 * time.Hour)
		first := r.repeated(r.channel(), publishing.Repeat{Days: 1, Until: &until}, "UTC")
		r.end(first, publishing.ResultPublished, "")
		r.fast(publishing.Occurrence(first, 1))
		r.end(publishing.Occurrence(first, 1), publishing.ResultPublished, "")
		if r.exists(publishing.Occurrence(first, 2)) {
			t.Error("there is one after the end")
		}
	})
	t.Run("not after occurrences missed during a pause", func(t *testing.T) {
		c := r.channel()
		first := r.repeated(c, publishing.Repeat{Days: 1}, "UTC")
		r.clock(`update channel_queue set paused = true where channel_id = $1`, c)
		for n := range 3 {
			r.clock(`update post set due = now() - interval '25 hours' where id = $1`, publishing.Occurrence(first, n))
			r.expire(r.lease)
			r.step()
			if !r.exists(publishing.Occurrence(first, n+1)) {
				t.Fatalf("nothing follows number %d", n)
			}
		}
		for n := 3; n < 6; n++ {
			r.fast(publishing.Occurrence(first, n))
			r.pause(publishing.PauseChannel, c, true, 0)
			out := r.pause(publishing.PauseChannel, c, false, 0)
			r.step()
			if out.Missed != 1 || !r.exists(publishing.Occurrence(first, n+1)) {
				t.Fatalf("%+v, and nothing follows number %d", out, n)
			}
		}
	})
}

func TestProjected_LeavesOutStoredAndDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.repeated(r.channel(), publishing.Repeat{Days: 2}, "UTC")
	at := r.root(first).PublishDate
	r.remove(publishing.Occurrence(first, 2))
	r.remove(first) // the step then stores number 1
	for _, p := range r.within(at.Add(-time.Hour), at.Add(9*24*time.Hour)) {
		if !p.PublishDate.Equal(at.Add(time.Duration(p.Occurrence)*48*time.Hour)) || (p.Projected != nil) == r.exists(p.ID) {
			t.Errorf("listed %+v, want it every two days, and projected unless it is stored", p)
		}
	}
	out, err := poststore.Projected(t.Context(), r.store, r.org, publishing.Occurrence(first, 7))
	if err != nil || len(out) != 1 || !out[0].Projected.Next.Equal(at.Add(2*24*time.Hour)) {
		t.Fatalf("got %+v (%v), want one occurrence whose next one is number 1", out, err)
	}
	for _, n := range []int{0, 1, 2, 1 << 21} {
		if out, err := poststore.Projected(t.Context(), r.store, r.org, publishing.Occurrence(first, n)); err != nil || len(out) != 0 {
			t.Fatalf("number %d is %+v (%v), want no such occurrence", n, out, err)
		}
	}
}
