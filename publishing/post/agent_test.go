package post_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/post"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// agentOf returns an agent of a person, with limits.
func agentOf(p tenancy.Principal, limits tenancy.AgentLimits) tenancy.Principal {
	p.Via = tenancy.ViaAgent
	p.Agent = tenancy.Agent{
		ID: id.New[tenancy.AgentTag](), Grant: id.New[tenancy.GrantTag](), Name: "Planner", Write: true, Limits: &limits,
	}
	return p
}

// grants is an Allowance that counts posts by grant, and an Authority that refuses revoked grants.
type grants struct {
	limit   int
	days    map[string]int
	revoked bool
	asked   int
}

func (g *grants) Take(_ context.Context, _ pg.Querier, p tenancy.Principal, posts int, day string) error {
	key := p.Agent.Grant.String() + " " + day
	if g.days[key]+posts > g.limit {
		return fault.New(fault.Forbidden, "test.Take", fmt.Sprintf("This agent may queue %d posts on %s.", g.limit, day))
	}
	g.days[key] += posts
	return nil
}

func (g *grants) taken() (n int) {
	for _, day := range g.days {
		n += day
	}
	return n
}

func (g *grants) Confirm(_ context.Context, _ pg.Querier, _ tenancy.Principal) error {
	g.asked++
	if g.revoked {
		return fault.New(fault.Unauthenticated, "test.Confirm", "The grant was revoked.")
	}
	return nil
}

// agentRig is a rig with the use cases of an agent of its person.
type agentRig struct {
	*rig
	agent tenancy.Principal
}

func newAgentRig(t *testing.T, limits tenancy.AgentLimits) *agentRig {
	t.Helper()
	r := newRig(t)
	return &agentRig{rig: r, agent: agentOf(r.who, limits)}
}

// as returns the ways in which a principal changes a post.
func (r *agentRig) changes(who tenancy.Principal, p publishing.PostDetail) map[string]func() error {
	ctx, post := r.Context(), p.Root.ID.String()
	edit := func(kind publishing.CreateType) func() error {
		return func() error {
			cmd := command(kind, entry(r.channel, "changed"))
			cmd.Entries[0].Group = p.Root.Group.String()
			_, err := r.posts.Create(ctx, who, cmd)
			return err
		}
	}
	status := func(to publishing.CreateType) func() error {
		return func() error {
			_, err := r.posts.ChangeStatus(ctx, who, post, publishing.ChangeStatus{To: to, Republish: true})
			return err
		}
	}
	return map[string]func() error{
		"edit as draft": edit(publishing.CreateDraft), "edit": edit(publishing.CreateUpdate),
		"schedule anew": edit(publishing.CreateSchedule), "publish anew": edit(publishing.CreateNow),
		"schedule": status(publishing.CreateSchedule), "unschedule": status(publishing.CreateDraft),
		"settings": func() error {
			_, err := r.posts.ChangeSettings(ctx, who, post, publishing.ChangeSettings{Settings: []byte(`{"reply":"all"}`)})
			return err
		},
		"release id":   func() error { return r.posts.SetRelease(ctx, who, post, "at://x") },
		"delete":       func() error { return r.posts.Delete(ctx, who, post) },
		"delete group": func() error { return r.posts.DeleteGroup(ctx, who, p.Root.Group.String()) },
	}
}

func TestMustAsk_LeavesEverythingButDraftsAlone(t *testing.T) {
	t.Parallel()
	r := newAgentRig(t, tenancy.AgentLimits{MustAsk: true})
	queued := r.get(r.created(command(publishing.CreateSchedule, entry(r.channel, "queued"))))
	published := r.get(r.created(command(publishing.CreateSchedule, entry(r.channel, "published"))))
	r.Clock(`update post set state = 'PUBLISHED', release_id = 'x' where id = $1`, published.Root.ID)
	failed := r.get(r.created(command(publishing.CreateSchedule, entry(r.channel, "failed"))))
	r.Clock(`update post set state = 'ERROR', error = 'x' where id = $1`, failed.Root.ID)
	for name, p := range map[string]publishing.PostDetail{"queued": queued, "published": published, "failed": failed} {
		before := publishtest.Value[string](r.Base, `select row(state, due, updated_at, deleted_at)::text from post where id = $1`, p.Root.ID)
		for change, do := range r.changes(r.agent, p) {
			if err := do(); !fault.Is(err, fault.Forbidden) {
				t.Errorf("%s a %s post: got %v, want Forbidden", change, name, err)
			}
		}
		after := publishtest.Value[string](r.Base, `select row(state, due, updated_at, deleted_at)::text from post where id = $1`, p.Root.ID)
		if before != after {
			t.Errorf("the %s post has changed from %s to %s", name, before, after)
		}
	}
}

func TestMustAsk_WritesDrafts(t *testing.T) {
	t.Parallel()
	for change, refused := range map[string]bool{
		"edit as draft": false, "edit": false, "settings": false, "unschedule": false, "delete": false, "delete group": false,
		"schedule": true, "schedule anew": true, "publish anew": true, "release id": true,
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			r := newAgentRig(t, tenancy.AgentLimits{MustAsk: true})
			out, err := r.posts.Create(t.Context(), r.agent, command(publishing.CreateDraft, entry(r.channel, "a draft")))
			r.OK(err)
			draft := r.get(out.Created[0].Post)
			if err := r.changes(r.agent, draft)[change](); fault.Is(err, fault.Forbidden) != refused || err != nil && !refused {
				t.Errorf("got %v, want Forbidden to be %t", err, refused)
			}
			r.wantState(draft.Root.ID, publishing.StateDraft)
		})
	}
}

func TestMustAsk_NamesTheRouteAndTheTool(t *testing.T) {
	t.Parallel()
	r := newAgentRig(t, tenancy.AgentLimits{MustAsk: true})
	for _, kind := range []publishing.CreateType{publishing.CreateNow, publishing.CreateSchedule} {
		_, err := r.posts.Create(t.Context(), r.agent, command(kind, entry(r.channel, "a post")))
		if !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "request-approval") || !strings.Contains(err.Error(), "service_request_approval") {
			t.Errorf("%s: got %v, want Forbidden that names the way", kind, err)
		}
	}
	r.wantStored(0)
}

// A draft is often the current occurrence of a repeated post. Without it, the next occurrence would
// be scheduled.
func TestMustAsk_NeverContinuesASeries(t *testing.T) {
	t.Parallel()
	repeated := func(kind publishing.CreateType, r *agentRig) publishing.CreatePosts {
		cmd := command(kind, entry(r.channel, "again"))
		cmd.Repeat = publishing.Repeat{Days: 1}
		return cmd
	}
	queuedOf := func(r *agentRig) int {
		return publishtest.Value[int](r.Base, `select count(id) from post where org_id = $1 and state = 'QUEUE' and deleted_at is null`, r.who.Org)
	}
	t.Run("of the agent", func(t *testing.T) {
		t.Parallel()
		r := newAgentRig(t, tenancy.AgentLimits{MustAsk: true})
		out, err := r.posts.Create(t.Context(), r.agent, repeated(publishing.CreateDraft, r))
		r.OK(err)
		r.OK(r.posts.Delete(t.Context(), r.agent, out.Created[0].Post.String()))
		if n := queuedOf(r); n != 0 {
			t.Errorf("%d posts are queued after the draft was deleted, want none", n)
		}
		drafts := publishtest.Value[int](r.Base, `select count(id) from post where org_id = $1 and state = 'DRAFT' and deleted_at is null`, r.who.Org)
		if drafts != 1 {
			t.Errorf("there are %d drafts, want the next occurrence", drafts)
		}
	})
	t.Run("of a person", func(t *testing.T) {
		t.Parallel()
		r := newAgentRig(t, tenancy.AgentLimits{MustAsk: true})
		post := r.created(repeated(publishing.CreateSchedule, r))
		_, err := r.posts.ChangeStatus(t.Context(), r.who, post.String(), publishing.ChangeStatus{To: publishing.CreateDraft})
		r.OK(err)
		if err := r.posts.Delete(t.Context(), r.agent, post.String()); !fault.Is(err, fault.Forbidden) {
			t.Errorf("got %v, want Forbidden", err)
		}
		if n := queuedOf(r); n != 0 {
			t.Errorf("%d posts are queued, want none", n)
		}
		// The whole series may be deleted: nothing of it is scheduled.
		r.OK(r.posts.DeleteGroup(t.Context(), r.agent, r.get(post).Root.Group.String()))
		if n := queuedOf(r); n != 0 {
			t.Errorf("%d posts are queued after the series was deleted, want none", n)
		}
	})
	t.Run("with scheduled occurrences", func(t *testing.T) {
		t.Parallel()
		r := newAgentRig(t, tenancy.AgentLimits{MustAsk: true})
		first := r.get(r.created(repeated(publishing.CreateSchedule, r)))
		later, err := r.posts.List(t.Context(), r.who, publishing.ListPosts{
			Start: first.Root.PublishDate.Add(time.Hour), End: first.Root.PublishDate.Add(49 * time.Hour),
		})
		r.OK(err)
		second := later.Threads[0].Root
		_, err = r.posts.ChangeStatus(t.Context(), r.who, second.ID.String(), publishing.ChangeStatus{To: publishing.CreateDraft})
		r.OK(err)
		for name, err := range map[string]error{
			"the draft":                             r.posts.Delete(t.Context(), r.agent, second.ID.String()),
			"the series":                            r.posts.DeleteGroup(t.Context(), r.agent, second.Group.String()),
			"a later occurrence that is not stored": r.posts.Delete(t.Context(), r.agent, later.Threads[1].Root.ID.String()),
		} {
			if !fault.Is(err, fault.Forbidden) {
				t.Errorf("delete %s: got %v, want Forbidden", name, err)
			}
		}
		if n := queuedOf(r); n != 1 {
			t.Errorf("%d posts are queued, want the first", n)
		}
	})
}

func TestAllowance_CountsWhatAnAgentQueues(t *testing.T) {
	t.Parallel()
	g := &grants{limit: 3, days: map[string]int{}}
	r := newAgentRig(t, tenancy.AgentLimits{PostsPerDay: 3})
	r.Deps.Allowance = g
	r.posts = r.process()
	r.Tenant(r.who.Org, `update organization set timezone = 'Pacific/Kiritimati' where id = $1`, r.who.Org)
	create := func(who tenancy.Principal, kind publishing.CreateType, n int) (publishing.CreateResult, error) {
		var all []publishing.CreateEntry
		for range n {
			all = append(all, entry(r.channel, "a post"))
		}
		return r.posts.Create(t.Context(), who, command(kind, all...))
	}
	steps := []struct {
		name string
		do   func() error
		want int
	}{
		{"a person's posts", func() error { _, err := create(r.who, publishing.CreateSchedule, 2); return err }, 0},
		{"drafts", func() error { _, err := create(r.agent, publishing.CreateDraft, 2); return err }, 0},
		{"two posts", func() error { _, err := create(r.agent, publishing.CreateSchedule, 2); return err }, 2},
	}
	for _, s := range steps {
		if err := s.do(); err != nil || g.taken() != s.want {
			t.Errorf("%s: got %v and %d posts, want %d", s.name, err, g.taken(), s.want)
		}
	}
	if _, err := create(r.agent, publishing.CreateNow, 2); !fault.Is(err, fault.Forbidden) {
		t.Errorf("two more: got %v, want Forbidden", err)
	} else if !strings.Contains(err.Error(), "The day ends at ") || !strings.Contains(err.Error(), "+14:00") {
		t.Errorf("two more: got %v, want when the day of the organization ends", err)
	}
	draft, err := create(r.agent, publishing.CreateDraft, 1)
	r.OK(err)
	post := draft.Created[0].Post.String()
	for range 2 { // the second changes nothing
		_, err := r.posts.ChangeStatus(t.Context(), r.agent, post, publishing.ChangeStatus{To: publishing.CreateSchedule})
		r.OK(err)
	}
	if g.taken() != 3 {
		t.Errorf("after a draft was scheduled: %d posts were counted, want 3", g.taken())
	}
	// Otherwise, the agent could publish more by replacing what is in the queue.
	for change, do := range r.changes(r.agent, r.get(draft.Created[0].Post)) {
		switch change {
		case "edit", "schedule anew", "publish anew", "settings":
			if err := do(); !fault.Is(err, fault.Forbidden) {
				t.Errorf("%s a queued post: got %v, want Forbidden", change, err)
			}
		}
	}
	g.limit++
	edit := command(publishing.CreateSchedule, entry(r.channel, "edited"))
	edit.Entries[0].Parts[0].ID = post
	if _, err := r.posts.Create(t.Context(), r.agent, edit); err != nil || g.taken() != 4 {
		t.Errorf("an edit of a queued post: got %v and %d posts, want 4", err, g.taken())
	}
	_, err = r.posts.ChangeStatus(t.Context(), r.agent, draft.Created[0].Post.String(), publishing.ChangeStatus{To: publishing.CreateDraft})
	r.OK(err)
	_, err = r.posts.ChangeStatus(t.Context(), r.agent, post, publishing.ChangeStatus{To: publishing.CreateSchedule})
	if !fault.Is(err, fault.Forbidden) {
		t.Errorf("scheduled once more: got %v, want Forbidden", err)
	}
	r.wantState(draft.Created[0].Post, publishing.StateDraft)
}

// Later occurrences are not counted, so an agent with a limit could exceed it by repeating posts.
func TestAllowance_RefusesRepeatedPosts(t *testing.T) {
	t.Parallel()
	r := newAgentRig(t, tenancy.AgentLimits{PostsPerDay: 1})
	for _, kind := range []publishing.CreateType{publishing.CreateNow, publishing.CreateSchedule, publishing.CreateDraft} {
		cmd := command(kind, entry(r.channel, "again"))
		cmd.Repeat = publishing.Repeat{Days: 1}
		_, err := r.posts.Create(t.Context(), r.agent, cmd)
		if !fault.Is(err, fault.Forbidden) || !strings.Contains(err.Error(), "Omit inter") {
			t.Errorf("%s: got %v, want Forbidden that names inter", kind, err)
		}
	}
	r.wantStored(0)
	cmd := command(publishing.CreateSchedule, entry(r.channel, "again"))
	cmd.Repeat = publishing.Repeat{Days: 1}
	for name, who := range map[string]tenancy.Principal{"a person": r.who, "no limit": agentOf(r.who, tenancy.AgentLimits{})} {
		out, err := r.posts.Create(t.Context(), who, cmd)
		if err != nil {
			t.Errorf("%s: got %v, want nil", name, err)
		}
		post := r.get(out.Created[0].Post)
		for _, change := range []string{"edit", "schedule anew", "publish anew"} {
			if err := r.changes(r.agent, post)[change](); !fault.Is(err, fault.Forbidden) {
				t.Errorf("%s a repeated post of %s: got %v, want Forbidden", change, name, err)
			}
		}
		r.OK(r.changes(r.who, post)["unschedule"]())
		if err := r.changes(r.agent, post)["schedule"](); !fault.Is(err, fault.Forbidden) {
			t.Errorf("schedule a repeated draft of %s: got %v, want Forbidden", name, err)
		}
	}
}

func TestAllowance_RollsBackWithThePosts(t *testing.T) {
	t.Parallel()
	r := newAgentRig(t, tenancy.AgentLimits{PostsPerDay: 1})
	r.Deps.Allowance = &grants{days: map[string]int{}}
	r.posts = r.process()
	cmd := command(publishing.CreateSchedule, entry(r.channel, "a post"))
	cmd.IdempotencyKey, cmd.RequestHash = "key", []byte("hash")
	if _, err := r.posts.Create(t.Context(), r.agent, cmd); !fault.Is(err, fault.Forbidden) {
		t.Errorf("got %v, want Forbidden", err)
	}
	r.wantStored(0)
	if out, err := r.posts.Create(t.Context(), r.who, cmd); err != nil || out.Replayed {
		t.Errorf("the key is taken after a refusal: got %+v, %v", out, err)
	}
}

func TestAllowance_ReturnsErrors(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	r := newAgentRig(t, tenancy.AgentLimits{PostsPerDay: 1})
	r.Deps.Allowance = failing{away}
	r.posts = r.process()
	if _, err := r.posts.Create(t.Context(), r.agent, command(publishing.CreateSchedule, entry(r.channel, "a post"))); !errors.Is(err, away) {
		t.Errorf("got %v, want %v", err, away)
	}
	r.wantStored(0)
}

type failing struct{ err error }

func (f failing) Take(context.Context, pg.Querier, tenancy.Principal, int, string) error {
	return f.err
}

var (
	_ post.Allowance = (*grants)(nil)
	_ db.Authority   = (*grants)(nil)
)

// A revoked grant writes nothing, not even what an API key writes without being confirmed.
func TestWrites_ConfirmAgents(t *testing.T) {
	t.Parallel()
	g := &grants{revoked: true}
	r := newAgentRig(t, tenancy.AgentLimits{})
	draft := r.get(r.created(command(publishing.CreateDraft, entry(r.channel, "a draft"))))
	r.Store.Authority = g
	for change, do := range r.changes(r.agent, draft) {
		if err := do(); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("%s: got %v, want Unauthenticated", change, err)
		}
	}
	if _, err := r.posts.Create(t.Context(), r.agent, command(publishing.CreateNow, entry(r.channel, "a post"))); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("create: got %v, want Unauthenticated", err)
	}
	if _, err := r.Deps.Slots(publishtest.Limits).FindAny(t.Context(), r.agent); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("find a slot: got %v, want Unauthenticated", err)
	}
	r.wantStored(1)
	g.asked = 0
	key := r.who
	key.Via, key.Key = tenancy.ViaKey, id.New[tenancy.KeyTag]()
	_, err := r.posts.Create(t.Context(), key, command(publishing.CreateDraft, entry(r.channel, "a draft")))
	r.OK(err)
	if g.asked != 0 {
		t.Errorf("a key that writes a post was confirmed %d times, want never", g.asked)
	}
}
