package post_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/tenancy"
)

func TestCreate_ReplacesTheContentOfAPost(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(e *publishing.CreateEntry, d publishing.PostDetail){
		"named by its group": func(e *publishing.CreateEntry, d publishing.PostDetail) { e.Group = d.Root.Group.String() },
		"named by its id":    func(e *publishing.CreateEntry, d publishing.PostDetail) { e.Parts[0].ID = d.Root.ID.String() },
		"named by a later part": func(e *publishing.CreateEntry, d publishing.PostDetail) {
			e.Parts[1].ID = d.Root.Parts[1].ID.String()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			e := entry(r.channel, "one", "two")
			e.Parts[1].Delay = 5
			cmd := command(publishing.CreateSchedule, e)
			post := r.created(cmd)
			before := r.get(post)
			cmd.Date = cmd.Date.Add(time.Hour)
			cmd.Entries = []publishing.CreateEntry{entry(r.channel, "new", "other")}
			of(&cmd.Entries[0], before)
			if again := r.created(cmd); again != post {
				t.Fatalf("the answer names the post %s, want %s", again, post)
			}
			after := r.get(post)
			if !slices.Equal(texts(after), []string{"new", "other"}) || len(after.Followers) != 0 {
				t.Errorf("got the parts %q and %d followers, want only the new parts", texts(after), len(after.Followers))
			}
			root := after.Root
			if root.Group != before.Root.Group || root.State != publishing.StateQueue || !root.Due.Equal(cmd.Date) {
				t.Errorf("got %+v, want the same group in the queue for %v", root, cmd.Date)
			}
			want := []publishing.EventKind{publishing.EventWritten, publishing.EventEdited, publishing.EventMoved}
			if !slices.Equal(kinds(after), want) {
				t.Errorf("got the timeline %v, want %v", kinds(after), want)
			}
			if kept := after.Root.Parts[1].ID == before.Root.Parts[1].ID; kept != (name == "named by a later part") {
				t.Errorf("the second part keeps its id: %t", kept)
			}
		})
	}
}

// foreign stores a post of another organization.
func (r *rig) foreign() (stranger tenancy.Principal, post publishing.PostID) {
	r.Helper()
	stranger = r.Organization()
	cmd := command(publishing.CreateSchedule, entry(r.Connect(stranger.Org), "theirs"))
	out, err := r.posts.Create(r.Context(), stranger, cmd)
	r.OK(err)
	return stranger, out.Created[0].Post
}

// Clients make up groups for new posts.
func TestCreate_UnknownGroupMakesANewPost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stranger, theirs := r.foreign()
	foreign, err := r.posts.Get(t.Context(), stranger, theirs.String())
	r.OK(err)
	deleted := r.get(r.created(command(publishing.CreateSchedule, entry(r.channel, "deleted"))))
	r.OK(r.posts.Delete(t.Context(), r.who, deleted.Root.ID.String()))
	for _, group := range []string{
		"x", id.New[publishing.GroupTag]().String(), foreign.Root.Group.String(), deleted.Root.Group.String(),
	} {
		e := entry(r.channel, "new")
		e.Group = group
		d := r.get(r.created(command(publishing.CreateSchedule, e)))
		if d.Root.ID == foreign.Root.ID || d.Root.ID == deleted.Root.ID || d.Root.Group.String() == group {
			t.Errorf("group %s: got the post %s of the group %s, want new ones", group, d.Root.ID, d.Root.Group)
		}
	}
	if d, err := r.posts.Get(t.Context(), stranger, foreign.Root.ID.String()); err != nil || texts(d)[0] != "theirs" {
		t.Errorf("another organization's post is %q, %v", texts(d), err)
	}
}

func TestCreate_RefusesToReplaceAnotherPost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	channel := r.Connect(r.who.Org)
	_, theirs := r.foreign()
	stored := func(c publishing.ChannelID) publishing.Post {
		return r.get(r.created(command(publishing.CreateSchedule, entry(c, "old")))).Root
	}
	one, two, elsewhere := stored(r.channel), stored(r.channel), stored(channel)
	in := func(group publishing.GroupID, texts ...string) publishing.CreateEntry {
		e := entry(r.channel, texts...)
		e.Group = group.String()
		return e
	}
	part := func(ids ...string) publishing.CreateEntry {
		e := entry(r.channel)
		for _, id := range ids {
			e.Parts = append(e.Parts, publishing.CreatePart{ID: id, Content: "new"})
		}
		return e
	}
	const (
		unknown  = "There is no such post or group to replace."
		noUpdate = "There is no post to update: send its group, or its id in value[0].id."
	)
	for name, c := range map[string]struct {
		cmd  publishing.CreatePosts
		want string
	}{
		"a part that is not known": {
			cmd: command(publishing.CreateSchedule, part(id.New[publishing.PartTag]().String())), want: unknown,
		},
		"a part that is no id":              {cmd: command(publishing.CreateSchedule, part("x")), want: unknown},
		"a part of another organization":    {cmd: command(publishing.CreateSchedule, part(theirs.String())), want: unknown},
		"parts of two posts":                {cmd: command(publishing.CreateSchedule, part(one.ID.String(), two.ID.String())), want: unknown},
		"a post of another channel":         {cmd: command(publishing.CreateSchedule, in(elsewhere.Group, "new")), want: "The group belongs to a post of another channel."},
		"the post of another entry":         {cmd: command(publishing.CreateSchedule, in(one.Group, "new"), in(one.Group, "newer")), want: "Two entries replace the same post."},
		"an update that names no post":      {cmd: command(publishing.CreateUpdate, entry(r.channel, "new")), want: noUpdate},
		"an update of a group that is gone": {cmd: command(publishing.CreateUpdate, in(id.New[publishing.GroupTag](), "new")), want: noUpdate},
	} {
		_, err := r.create(c.cmd)
		var f *fault.Error
		want := []fault.Item{{ID: r.channel.String(), Kind: "sandbox", Name: "Channel", Message: c.want}}
		if !errors.As(err, &f) || f.Kind != fault.Invalid || !reflect.DeepEqual(f.Items, want) {
			t.Errorf("%s: got %v with %+v, want Invalid with %+v", name, err, f, want)
		}
	}
	for _, p := range []publishing.Post{one, two, elsewhere} {
		if d := r.get(p.ID); !slices.Equal(texts(d), []string{"old"}) {
			t.Errorf("the post %s has the parts %q, want it unchanged", p.ID, texts(d))
		}
	}
	r.wantStored(3)
}

func TestCreate_ReplacingDependsOnTheState(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, c := range []struct {
		state     publishing.State
		kind      publishing.CreateType
		republish bool
		want      publishing.State // "" for a Conflict
		wait      bool             // the Conflict has a RetryAfter
	}{
		{state: publishing.StateDraft, kind: publishing.CreateSchedule, want: publishing.StateQueue},
		{state: publishing.StateQueue, kind: publishing.CreateDraft, want: publishing.StateDraft},
		{state: publishing.StateError, kind: publishing.CreateNow, want: publishing.StateQueue},
		{state: publishing.StatePublished, kind: publishing.CreateSchedule},
		{state: publishing.StatePublished, kind: publishing.CreateSchedule, republish: true, want: publishing.StateQueue},
		{state: publishing.StatePublishing, kind: publishing.CreateSchedule, wait: true},
		{state: publishing.StatePublishing, kind: publishing.CreateSchedule, republish: true},
		{state: publishing.StateUnknown, kind: publishing.CreateSchedule, wait: true},
		{state: publishing.StateDraft, kind: publishing.CreateUpdate, want: publishing.StateDraft},
		{state: publishing.StateQueue, kind: publishing.CreateUpdate, want: publishing.StateQueue},
		{state: publishing.StateError, kind: publishing.CreateUpdate, want: publishing.StateDraft},
		{state: publishing.StatePublished, kind: publishing.CreateUpdate},
	} {
		name := fmt.Sprintf("a %s post, %s, republish %t", c.state, c.kind, c.republish)
		channel := r.Connect(r.who.Org) // a channel sends one post at a time
		post := r.InState(r.who.Org, channel, c.state, r.Medium(r.who.Org))
		cmd := command(c.kind, entry(channel, "new"))
		cmd.Entries[0].Parts[0].ID, cmd.Republish = post.String(), c.republish
		_, err := r.create(cmd)
		if c.want != "" {
			r.OK(err)
			if d := r.get(post); d.Root.State != c.want || !slices.Equal(texts(d), []string{"new"}) {
				t.Errorf("%s: got %s with the parts %q, want %s", name, d.Root.State, texts(d), c.want)
			}
			continue
		}
		var f *fault.Error
		if !errors.As(err, &f) || f.Kind != fault.Conflict || (f.RetryAfter > 0) != c.wait {
			t.Errorf("%s: got %v, want a Conflict, to be repeated: %t", name, err, c.wait)
		}
		if d := r.get(post); d.Root.State != c.state || slices.Contains(texts(d), "new") {
			t.Errorf("%s: got %s with the parts %q, want it unchanged", name, d.Root.State, texts(d))
		}
	}
}
