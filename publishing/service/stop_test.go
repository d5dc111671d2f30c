package service_test

import (
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	publishingservice "crier/publishing/service"
	"crier/tenancy"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// stateOf returns the state of a post.
func (m member) stateOf(post publishing.PostID) publishing.State {
	m.Helper()
	return publishtest.Value[publishing.State](m.Base, `select state from post where id = $1`, post)
}

// overdue stores a post for a channel that has been due for a time.
func (m member) overdue(c publishing.ChannelID, late time.Duration) publishing.PostID {
	m.Helper()
	posts := fixture.Post(m.who.Org, c, time.Now())
	m.insert(posts...)
	m.Clock(`update post set due = now() - $2 * interval '1 millisecond' where id = $1`, posts[0].ID, late.Milliseconds())
	return posts[0].ID
}

func TestStop_CannotBeEndedByTheOrganization(t *testing.T) {
	t.Parallel()
	m := newRig(t).organization()
	m.who.Role = tenancy.RoleSuperAdmin
	posts := publishingservice.NewPosts(limits, m.deps)
	for range 2 {
		m.OK(posts.Stop(t.Context(), m.who.Org, "the operator"))
	}
	late := m.Connect(m.who.Org)
	for _, paused := range []bool{false, true, false} {
		_, err := posts.Pause(t.Context(), m.who, publishing.SetPause{Scope: publishing.PauseOrganization, Paused: paused})
		m.OK(err)
	}
	_, err := posts.Pause(t.Context(), m.who, publishing.SetPause{Scope: publishing.PauseInstance})
	if !fault.Is(err, fault.Invalid) {
		t.Errorf("the organization ends the stop: got %v, want Invalid", err)
	}
	const free = `select count(*) from channel_queue where not paused`
	if n := publishtest.Value[int](m.Base, free); n != 0 {
		t.Errorf("%d channels may publish, want none; one was connected after the stop: %s", n, late)
	}
	m.OK(posts.Resume(t.Context(), m.who.Org, "the operator", true))
	if n := publishtest.Value[int](m.Base, free); n != 2 {
		t.Errorf("%d channels may publish after the end of the stop, want 2", n)
	}
}

func TestResume_MissesOrCatchesUp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		catchUp bool
		want    publishing.State
	}{
		"a deletion that was undone misses what fell due": {catchUp: false, want: publishing.StateError},
		"a suspension that was lifted catches up":         {catchUp: true, want: publishing.StateQueue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newRig(t).organization()
			cfg := limits
			cfg.PauseMaxAge = time.Hour
			posts := publishingservice.NewPosts(cfg, m.deps)
			c := m.Connect(m.who.Org)
			m.OK(posts.Stop(t.Context(), m.who.Org, "test"))
			stale, recent := m.overdue(c, 2*time.Hour), m.overdue(c, time.Minute)
			for range 2 { // the second has no effect
				m.OK(posts.Resume(t.Context(), m.who.Org, "test", tc.catchUp))
			}
			if got := m.stateOf(recent); got != tc.want {
				t.Errorf("the post of a minute ago is %s, want %s", got, tc.want)
			}
			if got := m.stateOf(stale); got != publishing.StateError {
				t.Errorf("the post that is later than PAUSE_MAX_AGE is %s, want ERROR", got)
			}
		})
	}
}

func TestStop_UnknownOrganizationIsNotFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	posts := publishingservice.NewPosts(limits, r.deps)
	none := id.New[tenancy.OrgTag]()
	if err := posts.Stop(t.Context(), none, "test"); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want NotFound", err)
	}
	if err := posts.Resume(t.Context(), none, "test", false); err != nil {
		t.Errorf("resume: got %v, want no effect", err)
	}
}
