package store_test

import (
	"testing"
	"time"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
)

func (r *rig) within(from, to time.Time) []publishing.Post {
	r.Helper()
	out, err := poststore.Roots(r.Context(), r.Store, r.Org, publishing.ListPosts{Start: from, End: to}, publishing.CustomerID{}, 1000)
	r.OK(err)
	return out
}

func (r *rig) remove(post publishing.PostID) {
	r.Helper()
	r.OK(r.InOrg(func(tx *db.Tx) error {
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
	r.WriteOccurrences()
}

func TestAdvance_WritesNextOccurrence(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.Repeated(r.Channel(), publishing.Repeat{Days: 7}, "Europe/Berlin", 0, time.Hour)
	second := publishing.Occurrence(first, 1)
	if r.Exists(second) {
		t.Fatal("the second is written before the first has ended")
	}
	began := r.Root(first)
	r.End(first, dispatch.ResultPublished, "")
	next := r.Root(second)
	if next.State != publishing.StateQueue || next.Interval != 7 || next.Occurrence != 1 {
		t.Fatalf("the next occurrence is %+v, want number 1 in the queue, every 7 days", next)
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	r.OK(err)
	a, b := began.PublishDate.In(zone), next.PublishDate.In(zone)
	if a.AddDate(0, 0, 7).Format(time.DateTime) != b.Format(time.DateTime) {
		t.Fatalf("%v is followed by %v", a, b)
	}
	whole, err := poststore.ReadThreadData(t.Context(), r.Store, r.Org, []publishing.Post{next})
	r.OK(err)
	parts := whole.Parts[next.Group]
	followers := whole.Followers[next.Group]
	if len(parts) != 3 || parts[0].Content.Text != "part 0" || parts[2].Content.Text != "part 2" || parts[2].Delay != time.Hour ||
		len(followers) != 1 || followers[0].State != publishing.StateWaiting {
		t.Fatalf("got %+v, want three parts and one waiting follower", whole)
	}
	if parts[0].ID != id.FromUUID[publishing.PartTag](second.UUID()) {
		t.Fatal("the first part has not its post's id")
	}
	r.MakeDue(second)
	r.End(second, dispatch.ResultPublished, "")
	r.WantState(publishing.Occurrence(first, 2), publishing.StateQueue)
}

func TestAdvance_StopsSeries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	t.Run("at the end of the recurrence", func(t *testing.T) {
		until := time.Now().Add(25 * time.Hour)
		first := r.Repeated(r.Channel(), publishing.Repeat{Days: 1, Until: &until}, "UTC")
		r.End(first, dispatch.ResultPublished, "")
		r.MakeDue(publishing.Occurrence(first, 1))
		r.End(publishing.Occurrence(first, 1), dispatch.ResultPublished, "")
		if r.Exists(publishing.Occurrence(first, 2)) {
			t.Error("there is one after the end")
		}
	})
	t.Run("not after occurrences missed during a pause", func(t *testing.T) {
		c := r.Channel()
		first := r.Repeated(c, publishing.Repeat{Days: 1}, "UTC")
		r.Clock(`update channel_queue set paused = true where channel_id = $1`, c)
		for n := range 3 {
			r.Clock(`update post set due = now() - interval '25 hours' where id = $1`, publishing.Occurrence(first, n))
			r.Expire(r.Lease)
			r.WriteOccurrences()
			if !r.Exists(publishing.Occurrence(first, n+1)) {
				t.Fatalf("nothing follows number %d", n)
			}
		}
		for n := 3; n < 6; n++ {
			r.MakeDue(publishing.Occurrence(first, n))
			r.SetPause(publishing.PauseChannel, c, true, 0)
			out := r.SetPause(publishing.PauseChannel, c, false, 0)
			r.WriteOccurrences()
			if out.Missed != 1 || !r.Exists(publishing.Occurrence(first, n+1)) {
				t.Fatalf("%+v, and nothing follows number %d", out, n)
			}
		}
	})
}

func TestProjected_LeavesOutStoredAndDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.Repeated(r.Channel(), publishing.Repeat{Days: 2}, "UTC")
	at := r.Root(first).PublishDate
	r.remove(publishing.Occurrence(first, 2))
	r.remove(first) // then the step stores number 1
	for _, p := range r.within(at.Add(-time.Hour), at.Add(9*24*time.Hour)) {
		if !p.PublishDate.Equal(at.Add(time.Duration(p.Occurrence)*48*time.Hour)) || (p.Projected != nil) == r.Exists(p.ID) {
			t.Errorf("listed %+v, want it every two days, and projected unless it is stored", p)
		}
	}
	out, err := poststore.Projected(t.Context(), r.Store, r.Org, publishing.Occurrence(first, 7))
	if err != nil || len(out) != 1 || !out[0].Projected.Next.Equal(at.Add(2*24*time.Hour)) {
		t.Fatalf("got %+v (%v), want one occurrence whose next one is number 1", out, err)
	}
	for _, n := range []int{0, 1, 2, 1 << 21} {
		if out, err := poststore.Projected(t.Context(), r.Store, r.Org, publishing.Occurrence(first, n)); err != nil || len(out) != 0 {
			t.Fatalf("number %d is %+v (%v), want no such occurrence", n, out, err)
		}
	}
}
