package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/scheduler"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// stateOf returns the state of a post.
func (m member) stateOf(post publishing.PostID) publishing.State {
	m.Helper()
	return publishtest.Value[publishing.State](m.Base, `select state from post where id = $1`, post)
}

// overdue stores a post for a channel that has been due for the duration late.
func (m member) overdue(c publishing.ChannelID, late time.Duration) publishing.PostID {
	m.Helper()
	posts := fixture.Post(m.who.Org, c, time.Now())
	m.Insert(m.who.Org, posts...)
	m.Clock(`update post set due = now() - $2 * interval '1 millisecond' where id = $1`, posts[0].ID, late.Milliseconds())
	return posts[0].ID
}

func TestStop_CannotBeEndedByTheOrganization(t *testing.T) {
	t.Parallel()
	m := newRig(t).organization()
	m.who.Role = tenancy.RoleSuperAdmin
	posts := scheduler.NewQueue(limits, m.deps)
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
			posts := scheduler.NewQueue(cfg, m.deps)
			c := m.Connect(m.who.Org)
			m.OK(posts.Stop(t.Context(), m.who.Org, "test"))
			stale, recent := m.overdue(c, 2*time.Hour), m.overdue(c, time.Minute)
			for range 2 { // the second call has no effect
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
	posts := scheduler.NewQueue(limits, r.deps)
	none := id.New[tenancy.OrgTag]()
	if err := posts.Stop(t.Context(), none, "test"); !fault.Is(err, fault.NotFound) {
		t.Errorf("got %v, want NotFound", err)
	}
	if err := posts.Resume(t.Context(), none, "test", false); err != nil {
		t.Errorf("resume: got %v, want no effect", err)
	}
}

// A post that the database refuses to give up does not hold back the others.
func TestEndOfPause_GivesUpAllButRefusedPosts(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(m member, posts *scheduler.Queue) error{
		"a stop": func(m member, posts *scheduler.Queue) error {
			return posts.Resume(m.Context(), m.who.Org, "test", false)
		},
		"a pause of the organization": func(m member, posts *scheduler.Queue) error {
			got, err := posts.Pause(m.Context(), m.who, publishing.SetPause{Scope: publishing.PauseOrganization})
			if want := schedulerstore.MaxGiveUp + 9; got.Missed != want {
				m.Errorf("missed are %d, want %d", got.Missed, want)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newRig(t).organization()
			m.who.Role = tenancy.RoleSuperAdmin
			posts := scheduler.NewQueue(limits, m.deps)
			c := m.Connect(m.who.Org)
			if name == "a stop" {
				m.OK(posts.Stop(t.Context(), m.who.Org, "test"))
			} else {
				_, err := posts.Pause(t.Context(), m.who, publishing.SetPause{Scope: publishing.PauseOrganization, Paused: true})
				m.OK(err)
			}
			var many []publishing.Post
			for range schedulerstore.MaxGiveUp + 10 {
				many = append(many, fixture.Post(m.who.Org, c, time.Now())...)
			}
			m.Insert(m.who.Org, many...)
			m.Clock(`update post set due = now() - interval '1 minute'`)
			owner, err := pgx.Connect(t.Context(), m.Address)
			m.OK(err)
			defer func() { _ = owner.Close(context.WithoutCancel(t.Context())) }()
			bad := many[500].ID
			_, err = owner.Exec(t.Context(), fmt.Sprintf(`
				create function refuse() returns trigger language plpgsql as $$
					begin if old.id = '%s' then raise exception 'no' using errcode = 'P0001'; end if; return new; end $$;
				create trigger refuse before update on post for each row execute function refuse()`, bad))
			m.OK(err)
			m.OK(end(m, posts))
			if n := publishtest.Value[int](m.Base, `select count(*) from post where state <> 'ERROR'`); n != 1 || m.stateOf(bad) != publishing.StateQueue {
				t.Errorf("%d posts were not given up and %s is %s, want only that one", n, bad, m.stateOf(bad))
			}
			if n := publishtest.Value[int](m.Base, `select count(*) from channel_queue where paused`); n != 0 {
				t.Errorf("%d channels are still paused, want none", n)
			}
		})
	}
}
