package post_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// changeStatus requests a status for a post as the rig's member.
func (r *rig) changeStatus(post publishing.PostID, cmd publishing.ChangeStatus) (publishing.StatusChanged, error) {
	return r.posts.ChangeStatus(r.Context(), r.who, post.String(), cmd)
}

// thread stores a post with a follower.
func (r *rig) thread(kind publishing.CreateType) publishing.PostDetail {
	r.Helper()
	e := entry(r.channel, "one", "two")
	e.Parts[1].Delay = 5
	d := r.get(r.created(command(kind, e)))
	r.woken()
	return d
}

var (
	toDraft = publishing.ChangeStatus{To: publishing.CreateDraft}
	toQueue = publishing.ChangeStatus{To: publishing.CreateSchedule}
)

func TestChangeStatus_DraftEntersTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.thread(publishing.CreateDraft)
	post := before.Root.ID
	out, err := r.changeStatus(post, toQueue)
	if want := (publishing.StatusChanged{Post: post, State: publishing.StateQueue}); err != nil || out != want {
		t.Fatalf("got %+v, %v; want %+v", out, err, want)
	}
	d := r.get(post)
	if d.Root.State != publishing.StateQueue || !d.Root.Due.Equal(before.Root.PublishDate) {
		t.Errorf("the post is %s due at %v, want QUEUE at %v", d.Root.State, d.Root.Due, before.Root.PublishDate)
	}
	if f := d.Followers[0]; f.State != publishing.StateWaiting || f.Due != nil {
		t.Errorf("its follower is %s due at %v, want WAITING", f.State, f.Due)
	}
	if want := []publishing.EventKind{publishing.EventWritten, publishing.EventScheduled}; !slices.Equal(kinds(d), want) {
		t.Errorf("got the timeline %v, want %v", kinds(d), want)
	}
	r.wantWoken(before.Root.PublishDate)
}

func TestChangeStatus_QueuedPostBecomesADraft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.thread(publishing.CreateSchedule)
	post := before.Root.ID
	out, err := r.changeStatus(post, toDraft)
	if want := (publishing.StatusChanged{Post: post, State: publishing.StateDraft}); err != nil || out != want {
		t.Fatalf("got %+v, %v; want %+v", out, err, want)
	}
	d := r.get(post)
	if d.Root.State != publishing.StateDraft || !d.Root.Due.Equal(before.Root.PublishDate) {
		t.Errorf("the post is %s due at %v, want DRAFT for %v", d.Root.State, d.Root.Due, before.Root.PublishDate)
	}
	if got := d.Followers[0].State; got != publishing.StateDraft {
		t.Errorf("its follower is %s, want DRAFT", got)
	}
	if want := []publishing.EventKind{publishing.EventWritten, publishing.EventUnscheduled}; !slices.Equal(kinds(d), want) {
		t.Errorf("got the timeline %v, want %v", kinds(d), want)
	}
	r.wantWoken()
}

func TestChangeStatus_FollowerMovesItsThread(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	d := r.thread(publishing.CreateDraft)
	out, err := r.changeStatus(d.Followers[0].ID, toQueue)
	if err != nil || out.Post != d.Root.ID {
		t.Errorf("got %+v, %v; want the post %s", out, err, d.Root.ID)
	}
	r.wantState(d.Root.ID, publishing.StateQueue)
}

// A post that is already queued is not moved back to its date.
func TestChangeStatus_QueuedPostKeepsItsPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.thread(publishing.CreateSchedule).Root.ID
	r.Clock(`update post set due = due + interval '1 hour' where id = $1`, post)
	before := r.get(post)
	out, err := r.changeStatus(post, toQueue)
	if want := (publishing.StatusChanged{Post: post, State: publishing.StateQueue}); err != nil || out != want {
		t.Fatalf("got %+v, %v; want %+v", out, err, want)
	}
	after := r.get(post)
	if !after.Root.Due.Equal(*before.Root.Due) || len(after.Events) != len(before.Events) {
		t.Errorf("it is due at %v with the timeline %v, want %v and nothing new",
			after.Root.Due, kinds(after), before.Root.Due)
	}
	r.wantWoken()
}

func TestChangeStatus_DraftWithAPastDateIsDueNow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cmd := command(publishing.CreateDraft, entry(r.channel, "a text"))
	cmd.Date = time.Date(2001, time.May, 1, 12, 0, 0, 0, time.UTC)
	post := r.created(cmd)
	before := publishtest.Value[time.Time](r.Base, `select now()`)
	_, err := r.changeStatus(post, toQueue)
	r.OK(err)
	root := r.get(post).Root
	due := publishtest.Value[bool](r.Base, `select due <= now() from post where id = $1`, post)
	if !due || root.Due.Before(before) || !root.PublishDate.Equal(cmd.Date) {
		t.Errorf("it is due at %v for %v, want now for %v", root.Due, root.PublishDate, cmd.Date)
	}
	r.wantWoken(*root.Due)
}

func TestChangeStatus_RefusedBecauseOfTheState(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	again := publishing.ChangeStatus{To: publishing.CreateSchedule, Republish: true}
	for _, c := range []struct {
		state publishing.State
		cmd   publishing.ChangeStatus
		wait  bool // the Conflict has a RetryAfter
	}{
		{state: publishing.StatePublishing, cmd: toDraft, wait: true},
		{state: publishing.StatePublishing, cmd: toQueue, wait: true},
		{state: publishing.StatePublishing, cmd: again},
		{state: publishing.StateUnknown, cmd: toDraft, wait: true},
		{state: publishing.StateUnknown, cmd: toQueue, wait: true},
		{state: publishing.StateUnknown, cmd: again},
		{state: publishing.StatePublished, cmd: toDraft},
		{state: publishing.StatePublished, cmd: toQueue},
	} {
		name := fmt.Sprintf("a %s post to %s, republish %t", c.state, c.cmd.To, c.cmd.Republish)
		channel := r.Connect(r.who.Org) // a channel sends one post at a time
		post := r.InState(r.who.Org, channel, c.state, r.Medium(r.who.Org))
		_, err := r.changeStatus(post, c.cmd)
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Conflict || (f.RetryAfter > 0) != c.wait {
			t.Errorf("%s: got %v, want a Conflict, to be repeated: %t", name, err, c.wait)
		}
		r.wantState(post, c.state)
	}
	r.wantWoken()
}

func TestChangeStatus_RepublishQueuesAPublishedPost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.InState(r.who.Org, r.channel, publishing.StatePublished, r.Medium(r.who.Org))
	_, err := r.changeStatus(post, publishing.ChangeStatus{To: publishing.CreateSchedule, Republish: true})
	r.OK(err)
	if root := r.get(post).Root; root.State != publishing.StateQueue || root.ReleaseID != nil {
		t.Errorf("got %s with the release %v, want QUEUE without one", root.State, root.ReleaseID)
	}
}

// A post that may have been published can be made a draft. Like the post, the draft must not be
// queued again without republish.
func TestChangeStatus_MaybePublishedPostNeedsRepublish(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.InState(r.who.Org, r.channel, publishing.StateError, r.Medium(r.who.Org))
	r.Tenant(r.who.Org, `update post set maybe_sent = true, outcome_unknown = true where id = $1`, post)
	for _, step := range []struct {
		cmd  publishing.ChangeStatus
		want publishing.State
		kind fault.Kind
	}{
		{cmd: toQueue, want: publishing.StateError, kind: fault.Conflict},
		{cmd: toDraft, want: publishing.StateDraft},
		{cmd: toQueue, want: publishing.StateDraft, kind: fault.Conflict},
		{cmd: publishing.ChangeStatus{To: publishing.CreateSchedule, Republish: true}, want: publishing.StateQueue},
	} {
		if _, err := r.changeStatus(post, step.cmd); fault.KindOf(err) != step.kind {
			t.Errorf("to %s, republish %t: got %v, want the kind %q", step.cmd.To, step.cmd.Republish, err, step.kind)
		}
		r.wantState(post, step.want)
	}
}

func TestChangeStatus_AppliesTheRulesToADraft(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	disabled := r.Connect(r.who.Org)
	r.Tenant(r.who.Org, `update channel set disabled = true where id = $1`, disabled)
	medium := r.Medium(r.who.Org)
	withFile := entry(r.channel, "a text")
	withFile.Parts[0].Media = []publishing.CreateMedium{{ID: medium.ID.String()}}
	drafts := map[string]publishing.PostID{
		"The text is refused.":     r.created(command(publishing.CreateDraft, entry(r.channel, "refused"))),
		"The channel is disabled.": r.created(command(publishing.CreateDraft, entry(disabled, "a text"))),
		"A file of this post was deleted: remove it from the post first.": r.created(command(publishing.CreateDraft, withFile)),
	}
	r.Tenant(r.who.Org, `update media set deleted_at = now() where id = $1`, medium.ID)
	for want, post := range drafts {
		_, err := r.changeStatus(post, toQueue)
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Invalid || f.Message != want {
			t.Errorf("got %v, want Invalid: %s", err, want)
		}
		r.wantState(post, publishing.StateDraft)
	}
	r.wantWoken()
}

func TestChangeStatus_FindsOnlyPostsOfTheOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	draft := r.created(command(publishing.CreateDraft, entry(r.channel, "a text")))
	deleted := r.created(command(publishing.CreateDraft, entry(r.channel, "a text")))
	r.OK(r.posts.Delete(t.Context(), r.who, deleted.String()))
	stranger := r.Organization()
	unknown := id.New[publishing.PostTag]()
	for name, c := range map[string]struct {
		who  tenancy.Principal
		post string
		to   publishing.CreateType
		want fault.Kind
	}{
		"another organization":                  {who: stranger, post: draft.String(), to: publishing.CreateSchedule, want: fault.NotFound},
		"another organization to draft":         {who: stranger, post: draft.String(), to: publishing.CreateDraft, want: fault.NotFound},
		"another organization to no status":     {who: stranger, post: draft.String(), to: publishing.CreateNow, want: fault.NotFound},
		"an id that is not known":               {who: r.who, post: unknown.String(), to: publishing.CreateSchedule, want: fault.NotFound},
		"an id that is not known to no status":  {who: r.who, post: unknown.String(), to: publishing.CreateNow, want: fault.NotFound},
		"what is no id":                         {who: r.who, post: "x", to: publishing.CreateSchedule, want: fault.NotFound},
		"a deleted post":                        {who: r.who, post: deleted.String(), to: publishing.CreateSchedule, want: fault.NotFound},
		"a deleted post to draft":               {who: r.who, post: deleted.String(), to: publishing.CreateDraft, want: fault.NotFound},
		"a status that posts cannot be given":   {who: r.who, post: draft.String(), to: publishing.CreateNow, want: fault.Invalid},
		"a status that posts cannot be updated": {who: r.who, post: draft.String(), to: publishing.CreateUpdate, want: fault.Invalid},
	} {
		_, err := r.posts.ChangeStatus(t.Context(), c.who, c.post, publishing.ChangeStatus{To: c.to})
		if !fault.Is(err, c.want) {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
	r.wantState(draft, publishing.StateDraft)
	r.wantWoken()
}
