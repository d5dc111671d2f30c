package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// posts is a quota of a number of posts a month. The months begin today.
type posts int

func (p posts) Limits(context.Context, pg.Querier, tenancy.OrgID) (tenancy.Limits, error) {
	limits := tenancy.NoLimits()
	limits.Plan, limits.Posts, limits.Since = "TEST", int(p), time.Now()
	return limits, nil
}

// monthOf returns how many posts count in the month that contains the given time.
func (r *rig) monthOf(at time.Time) (n int) {
	r.Helper()
	r.OK(r.InOrg(func(tx *db.Tx) error {
		quota, err := poststore.ReadPostQuota(r.Context(), tx, posts(1))
		if err != nil {
			return err
		}
		n, err = quota.Count(r.Context(), at)
		return err
	}))
	return n
}

// Whether a post counts in a billing month depends on what becomes of it.
func TestPostQuota_CountsQueuedAndPublishedPosts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	tomorrow := time.Now().Add(24 * time.Hour)
	want := func(when string, n int) {
		t.Helper()
		if got := r.monthOf(tomorrow); got != n {
			t.Errorf("%s: got the count %d, want %d", when, got, n)
		}
	}
	want("nothing", 0)
	post := r.Post(c, 24*time.Hour, 0, time.Hour, 0)
	want("a post of three parts, of which one has a delay", 1)
	if got := r.monthOf(tomorrow.AddDate(0, 0, 40)); got != 0 {
		t.Errorf("another month has the count %d, want 0", got)
	}
	r.MoveTo(post, publishing.StateDraft)
	want("a draft", 0)
	r.MoveTo(post, publishing.StateQueue)
	want("scheduled again", 1)
	other := r.Post(c, 25*time.Hour)
	want("a second post", 2)
	r.Delete(other)
	want("the second is deleted", 1)
	out := r.Post(r.Channel(), -time.Second)
	want("a third, which is due", 2)
	claims := r.Claim(1)
	want("the third is on its way", 2)
	r.Finish(claims[0], dispatch.ResultPublished, "")
	want("the third is published", 2)
	r.Delete(out)
	want("a published post that is deleted was published", 2)
	r.Post(r.Channel(), -time.Second)
	r.Finish(r.Claim(1)[0], dispatch.ResultError, "rejected")
	want("a fourth has failed", 2)
}

// A published post still counts if it is published again or made a draft.
func TestPostQuota_CountsEachTimeAPostGoesOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second, 0, time.Hour)
	publish := func() { r.Finish(r.Claim(1)[0], dispatch.ResultPublished, "") }
	want := func(when string, n int) {
		t.Helper()
		if got := r.monthOf(time.Now()); got != n {
			t.Errorf("%s: got the count %d, want %d", when, got, n)
		}
	}
	publish()
	want("published once", 1)
	r.MoveTo(post, publishing.StateQueue)
	want("queued again", 2)
	publish()
	want("published twice", 2)
	r.MoveTo(post, publishing.StateDraft)
	want("a draft", 2)
	r.MoveTo(post, publishing.StateQueue)
	want("queued a third time", 3)
	r.Delete(post)
	want("deleted before it went out", 2)
	if got := r.monthOf(time.Now().AddDate(0, 0, 40)); got != 0 {
		t.Errorf("another month has the count %d, want 0", got)
	}
}

// A thread that fails after its first part was published still counts.
func TestPostQuota_CountsPartlyPublishedThreads(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second, 0)
	claim := r.Claim(1)[0]
	works, err := schedulerstore.Load(t.Context(), r.Store, []publishing.PostID{post})
	r.OK(err)
	first, release := works[0].Parts[0], "first"
	first.ReleaseID = &release
	_, err = schedulerstore.PartDone(t.Context(), r.Store, post, claim.Token, first, time.Minute, "test")
	r.OK(err)
	r.Finish(claim, dispatch.ResultError, "rejected")
	want := func(when string, n int) {
		t.Helper()
		if got := r.monthOf(time.Now()); got != n {
			t.Errorf("%s: got the count %d, want %d", when, got, n)
		}
	}
	want("stopped behind its first part", 1)
	r.MoveTo(post, publishing.StateDraft)
	want("a draft", 1)
	r.MoveTo(post, publishing.StateQueue)
	want("queued again", 2)
}

// A post counts only in the month in which it goes out, which is the current month if its date has
// passed.
func TestPostQuota_CountsPastDatesWhenTheyGoOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const longAgo = 5 * 365 * 24 * time.Hour
	made := fixture.Post(r.Org, r.Channel(), time.Now().Add(-longAgo))
	r.OK(r.InOrg(func(tx *db.Tx) error { return poststore.Insert(t.Context(), tx, publishtest.NewPosts(made)) }))
	post := made[0].ID
	if now, then := r.monthOf(time.Now()), r.monthOf(time.Now().Add(-longAgo)); now != 1 || then != 0 {
		t.Errorf("queued: this month has the count %d and that of its date %d, want 1 and 0", now, then)
	}
	r.MoveTo(post, publishing.StateDraft)
	if now := r.monthOf(time.Now()); now != 0 {
		t.Errorf("a draft: this month has the count %d, want 0", now)
	}
	r.MoveTo(post, publishing.StateQueue)
	if now, then := r.monthOf(time.Now()), r.monthOf(time.Now().Add(-longAgo)); now != 1 || then != 0 {
		t.Errorf("scheduled again: this month has the count %d and that of its date %d, want 1 and 0", now, then)
	}
}

func TestPostQuota_RefusesOnlyWhatAddsToTheMonth(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	r.Post(c, 24*time.Hour)
	r.Post(c, 25*time.Hour)
	at := time.Now().Add(24 * time.Hour)
	change := func(most posts, write func(tx *db.Tx) error) error {
		return r.InOrg(func(tx *db.Tx) error {
			quota, err := poststore.ReadPostQuota(t.Context(), tx, most)
			if err != nil {
				return err
			}
			before, err := quota.Count(t.Context(), at)
			if err != nil {
				return err
			}
			if err := write(tx); err != nil {
				return err
			}
			return quota.Check(t.Context(), "test", at, before)
		})
	}
	add := func(tx *db.Tx) error {
		return poststore.Insert(t.Context(), tx, publishtest.NewPosts(fixture.Post(r.Org, c, at)))
	}
	r.OK(change(1, func(*db.Tx) error { return nil }))
	err := change(2, add)
	var refused *fault.Error
	if !errors.As(err, &refused) || refused.Kind != fault.Quota || refused.Limit == nil ||
		*refused.Limit != (fault.Limit{Name: "posts", Current: 2, Allowed: 2}) {
		t.Errorf("one more than the plan allows: got %v, want a Quota fault with 2 of 2 posts", err)
	}
	r.OK(change(3, add))
	if got := r.monthOf(at); got != 3 {
		t.Errorf("got the count %d, want 3: what was refused is not stored", got)
	}
}

// A transaction that counts waits for another one that has counted but not ended, so that both
// together keep to the limit.
func TestPostQuota_CountsOneTransactionAfterTheOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c, at := r.Channel(), time.Now().Add(24*time.Hour)
	add := func(tx *db.Tx) error {
		quota, err := poststore.ReadPostQuota(t.Context(), tx, posts(1))
		if err != nil {
			return err
		}
		before, err := quota.Count(t.Context(), at)
		if err != nil {
			return err
		}
		if err := poststore.Insert(t.Context(), tx, publishtest.NewPosts(fixture.Post(r.Org, c, at))); err != nil {
			return err
		}
		return quota.Check(t.Context(), "test", at, before)
	}
	second := make(chan error, 1)
	r.OK(r.InOrg(func(tx *db.Tx) error {
		if err := add(tx); err != nil {
			return err
		}
		go func() { second <- db.New(r.DB).InOrg(t.Context(), r.Org, add) }()
		r.AwaitLock("OrganizationLock", second)
		return nil
	}))
	if err := <-second; !fault.Is(err, fault.Quota) {
		t.Errorf("the second of two at the limit: got %v, want a Quota fault", err)
	}
	if got := r.monthOf(at); got != 1 {
		t.Errorf("got the count %d, want 1", got)
	}
}

// If the plan has no room for an occurrence, it fails and the series continues, however often that
// happens.
func TestAdvance_OccurrenceOverTheQuotaFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Webhook()
	first := r.Repeated(r.Channel(), publishing.Repeat{Days: 1}, "UTC", 0, time.Hour)
	series := id.FromUUID[publishing.SeriesTag](first.UUID())
	r.ClaimAndFinish(first, dispatch.ResultPublished, "")
	r.WebhookEvents()
	advance := func(most posts) bool {
		t.Helper()
		wrote, err := poststore.AdvanceSeries(t.Context(), r.Store, r.Org, series, true, most)
		r.OK(err)
		return wrote
	}
	if !advance(0) {
		t.Fatal("no occurrence is written")
	}
	second := publishing.Occurrence(first, 1)
	refused := r.Root(second)
	if refused.State != publishing.StateError || refused.ErrorCode == nil || *refused.ErrorCode != publishing.CodeQuota {
		t.Fatalf("the occurrence is %+v, want ERROR with the code quota", refused)
	}
	r.WantInTimeline(second, publishing.EventFailed)
	r.WantWebhookEvents("an occurrence over the quota", publishtest.WebhookEvent{Post: second, Event: "post.failed", State: "ERROR", Error: *refused.Error})
	if n := r.Count("post", "group_id = $1 and error_code = 'predecessor_failed'", refused.Group); n != 1 {
		t.Errorf("%d followers have failed with it, want 1", n)
	}
	if n := r.WriteOccurrences(); n != 0 {
		t.Fatalf("the step wrote %d occurrences before the time of the one that failed, want 0", n)
	}
	for range publishing.FailuresToStop + 1 {
		r.Exec(`update series set retry_at = now() where id = $1`, series)
		if !advance(0) {
			t.Fatal("the series does not go on")
		}
	}
	r.Exec(`update series set retry_at = now() where id = $1`, series)
	if n := r.WriteOccurrences(); n != 1 {
		t.Fatalf("the step wrote %d occurrences once the plan allows it, want 1", n)
	}
	if got := r.numbers(first); !slices.Equal(got, []int{0, 1, 2, 3, 4, 5}) {
		t.Errorf("the occurrences %v are stored, want 0 to 5", got)
	}
	r.WantState(publishing.Occurrence(first, 5), publishing.StateQueue)
}
