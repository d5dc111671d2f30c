package post_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// postsAMonth is a quota of a number of posts a month. The months begin today.
type postsAMonth int

func (n postsAMonth) Limits(context.Context, pg.Querier, tenancy.OrgID) (tenancy.Limits, error) {
	limits := tenancy.NoLimits()
	limits.Plan, limits.Posts, limits.Since = "TEST", int(n), time.Now()
	return limits, nil
}

// A post whose date has passed goes out at once, so it counts in the current month, whatever its
// date is.
func TestCreate_PastDateCountsInTheCurrentMonth(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	r.Register(publishtest.Lenient{})
	r.Deps.Quota = postsAMonth(1)
	who := r.Organization()
	channel := r.Connect(who.Org).String()
	posts := r.Deps.Posts(publishtest.Limits)
	create := func(kind publishing.CreateType, date time.Time) (publishing.CreateResult, error) {
		return posts.Create(t.Context(), who, publishing.CreatePosts{
			Type: kind, Date: date,
			Entries: []publishing.CreateEntry{{Channel: channel, Parts: []publishing.CreatePart{{Content: "a post"}}}},
		})
	}
	past := func(year int) time.Time { return time.Date(year, time.May, 1, 12, 0, 0, 0, time.UTC) }
	_, err := create(publishing.CreateSchedule, past(2000))
	r.OK(err)
	for name, date := range map[string]time.Time{
		"a date in 2001": past(2001), "a date in 2002": past(2002), "tomorrow": time.Now().Add(24 * time.Hour),
	} {
		if _, err := create(publishing.CreateSchedule, date); !fault.Is(err, fault.Quota) {
			t.Errorf("%s at the limit: got %v, want a Quota fault", name, err)
		}
	}
	draft, err := create(publishing.CreateDraft, past(2003))
	r.OK(err)
	schedule := publishing.ChangeStatus{To: publishing.CreateSchedule}
	_, err = posts.ChangeStatus(t.Context(), who, draft.Created[0].Post.String(), schedule)
	if !fault.Is(err, fault.Quota) {
		t.Errorf("a draft with a date in 2003 at the limit: got %v, want a Quota fault", err)
	}
}

func TestCreate_OverTheQuotaStoresNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Deps.Quota = postsAMonth(2)
	r.posts = r.process()
	one := entry(r.channel, "a text", "a part of it")
	r.created(command(publishing.CreateSchedule, one))
	for name, c := range map[string]struct {
		cmd     publishing.CreatePosts
		refused bool
	}{
		"two posts, of which one fits": {cmd: command(publishing.CreateSchedule, one, one), refused: true},
		"two drafts":                   {cmd: command(publishing.CreateDraft, one, one)},
	} {
		_, err := r.create(c.cmd)
		var f *fault.Error
		refused := errors.As(err, &f) && f.Kind == fault.Quota && f.Limit != nil &&
			*f.Limit == (fault.Limit{Name: "posts", Current: 1, Allowed: 2})
		if refused != c.refused || !refused && err != nil {
			t.Errorf("%s: got %v, want a Quota fault with 1 of 2 posts: %t", name, err, c.refused)
		}
	}
	r.wantStored(3)
	r.created(command(publishing.CreateSchedule, one))
	if _, err := r.create(command(publishing.CreateNow, one)); !fault.Is(err, fault.Quota) {
		t.Errorf("a third post: got %v, want a Quota fault", err)
	}
}

// Each entry counts in the month of its own date.
func TestCreate_EntriesCountInTheirMonths(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Deps.Quota = postsAMonth(1)
	r.posts = r.process()
	dated := func(days int) publishing.CreateEntry {
		e := entry(r.channel, "a text")
		e.Date = tomorrow().AddDate(0, 0, days)
		return e
	}
	if _, err := r.create(command(publishing.CreateSchedule, dated(0), dated(5))); !fault.Is(err, fault.Quota) {
		t.Errorf("two posts in a month: got %v, want a Quota fault", err)
	}
	r.wantStored(0)
	_, err := r.create(command(publishing.CreateSchedule, dated(0), dated(35)))
	r.OK(err)
	if _, err := r.create(command(publishing.CreateSchedule, dated(70), dated(36))); !fault.Is(err, fault.Quota) {
		t.Errorf("a month that is full: got %v, want a Quota fault", err)
	}
	r.wantStored(2)
}
