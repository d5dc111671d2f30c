package approval_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// agentOf returns an agent of the rig's person.
func (r *approvalRig) agentOf(limits tenancy.AgentLimits) tenancy.Principal {
	p := r.who
	p.Via = tenancy.ViaAgent
	p.Agent = tenancy.Agent{
		ID: id.New[tenancy.AgentTag](), Grant: id.New[tenancy.GrantTag](), Name: "Planner", Write: true, Limits: &limits,
	}
	return p
}

// taker is an Allowance that records for whom posts are queued, and refuses if full is set.
type taker struct {
	full  bool
	taken []tenancy.Principal
	posts int
}

func (a *taker) Take(_ context.Context, _ pg.Querier, p tenancy.Principal, posts int, _ string) error {
	if a.full {
		return fault.New(fault.Forbidden, "test.Take", "This agent may queue no more posts today.")
	}
	a.taken, a.posts = append(a.taken, p), a.posts+posts
	return nil
}

func TestAgent_PersonAnswersTheRequestOfTheirAgent(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	agent := r.agentOf(tenancy.AgentLimits{MustAsk: true})
	made, err := r.posts.Create(t.Context(), agent, publishing.CreatePosts{
		Type: publishing.CreateDraft, Date: time.Now().Add(48 * time.Hour),
		Entries: []publishing.CreateEntry{{Channel: r.channel, Parts: []publishing.CreatePart{{Content: "a post"}}}},
	})
	r.OK(err)
	post := made.Created[0].Post
	asked, err := r.approvals.Request(t.Context(), agent, post.String(), publishing.RequestApproval{AutoSchedule: true})
	r.OK(err)
	if asked.Agent != agent.Agent.ID || asked.Grant != agent.Agent.Grant || asked.AgentName != "Planner" {
		t.Errorf("the request is by %v (%q), want the agent", asked.Agent, asked.AgentName)
	}
	approve := publishing.ResolveApproval{Action: publishing.ActionApprove}
	if _, err := r.approvals.Resolve(t.Context(), agent, asked.ID.String(), approve); !fault.Is(err, fault.Forbidden) {
		t.Errorf("the agent answers: got %v, want Forbidden", err)
	}
	other := agent
	other.Person = r.colleague(tenancy.RoleAdmin).Person
	if _, err := r.approvals.Resolve(t.Context(), other, asked.ID.String(), approve); !fault.Is(err, fault.Forbidden) {
		t.Errorf("another agent answers: got %v, want Forbidden", err)
	}
	// Neither the agent nor its person sees the link: it would let a guest answer.
	for name, who := range map[string]tenancy.Principal{"the agent": agent, "another agent": other, "the person": r.who} {
		one, err := r.approvals.Status(t.Context(), who, post.String())
		r.OK(err)
		all, err := r.approvals.List(t.Context(), who, publishing.ListApprovals{Limit: 10})
		r.OK(err)
		detail, err := r.posts.Get(t.Context(), who, post.String())
		r.OK(err)
		bell, err := r.Deps.Notifications().List(t.Context(), who, 0)
		r.OK(err)
		text, err := json.Marshal([]any{asked, one, all, detail, bell})
		r.OK(err)
		if strings.Contains(string(text), "/review/") {
			t.Errorf("%s reads the review link in %s", name, text)
		}
	}
	answer, err := r.approvals.Resolve(t.Context(), r.who, asked.ID.String(), approve)
	r.OK(err)
	if answer.ResolvedBy != r.who.Person {
		t.Errorf("the answer is by %v, want the person", answer.ResolvedBy)
	}
	r.wantStatus(post, status{publishing.StateQueue, publishing.ApprovalApproved})
	if _, err := r.approvals.Withdraw(t.Context(), agent, asked.ID.String()); !fault.Is(err, fault.Forbidden) {
		t.Errorf("the agent takes the post out of the queue: got %v, want Forbidden", err)
	}
	own := r.request(r.draft(), false)
	if _, err := r.approvals.Resolve(t.Context(), r.who, own.ID.String(), approve); !fault.Is(err, fault.Forbidden) {
		t.Errorf("the person answers their own request: got %v, want Forbidden", err)
	}
}

func TestAgent_IsNamedInTimelineAndWebhook(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	agent := r.agentOf(tenancy.AgentLimits{})
	r.Tenant(r.who.Org, `insert into webhook (org_id, id, name, url, signing_key, created_at, updated_at)
		values ($1, gen_random_uuid(), 'a hook', 'https://example.com', 'x', now(), now())`, r.who.Org)
	post := r.draft()
	_, err := r.approvals.Request(t.Context(), agent, post.String(), publishing.RequestApproval{})
	r.OK(err)
	d, err := r.posts.Get(t.Context(), r.who, post.String())
	r.OK(err)
	want := tenancy.Actor{
		Kind: tenancy.ActorAgent, ID: agent.Agent.ID.String(), Name: "Planner", Person: r.who.Person,
		PersonName: d.Events[0].Actor().Name,
	}
	if got := d.Events[len(d.Events)-1].Actor(); got == nil || *got != want || want.PersonName == "" {
		t.Errorf("the request is by %+v, want %+v", got, want)
	}
	var body string
	r.OK(r.DB.Read(t.Context(), r.who.Org.UUID(), readText(`select data::text from webhook_event where event = 'approval.requested'`, &body)))
	for _, part := range []string{`"agent": {"id": "` + agent.Agent.ID.String() + `", "name": "Planner"}`, `"reviewUrl": null`, r.who.Person.String()} {
		if !strings.Contains(body, part) {
			t.Errorf("the webhook has %s, want %s in it", body, part)
		}
	}
}

func readText(sql string, into *string) func(*pgx.Batch) {
	return func(b *pgx.Batch) { b.Queue(sql).QueryRow(func(row pgx.Row) error { return row.Scan(into) }) }
}

func TestAgent_ApprovalCountsForTheAgentThatAsked(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	allowance := &taker{}
	r.Deps.Allowance = allowance
	r.posts = r.Deps.Posts(publishtest.Limits)
	r.approvals = r.Deps.Approvals(publishtest.Limits, r.posts, r.mails)
	agent := r.agentOf(tenancy.AgentLimits{MustAsk: true, PostsPerDay: 1})
	ask := func(auto bool) (publishing.PostID, publishing.Approval) {
		post := r.draft()
		a, err := r.approvals.Request(t.Context(), agent, post.String(), publishing.RequestApproval{AutoSchedule: auto})
		r.OK(err)
		return post, a
	}
	queued, first := ask(true)
	_, err := r.resolve(first, publishing.ActionApprove)
	r.OK(err)
	r.wantStatus(queued, status{publishing.StateQueue, publishing.ApprovalApproved})
	if allowance.posts != 1 || allowance.taken[0].Agent.Grant != agent.Agent.Grant || allowance.taken[0].Org != r.who.Org {
		t.Errorf("%d posts were counted for %+v, want one for the agent", allowance.posts, allowance.taken)
	}
	_, later := ask(false)
	_, err = r.resolve(later, publishing.ActionApprove)
	r.OK(err)
	_, refused := ask(true)
	_, err = r.resolve(refused, publishing.ActionReject)
	r.OK(err)
	own := r.request(r.draft(), true)
	_, err = r.resolve(own, publishing.ActionApprove)
	r.OK(err)
	if allowance.posts != 1 {
		t.Errorf("%d posts were counted, want only the one that was queued for the agent", allowance.posts)
	}
	// Over the limit, the post stays an approved draft, and its timeline says why.
	allowance.full = true
	held, last := ask(true)
	_, err = r.resolve(last, publishing.ActionApprove)
	r.OK(err)
	d := r.wantStatus(held, status{publishing.StateDraft, publishing.ApprovalApproved})
	reason := d.Events[len(d.Events)-1].Reason
	if reason == nil || !strings.Contains(*reason, "This agent may queue no more posts today. The day ends at ") {
		t.Errorf("the timeline says %v, want why the post is not queued", reason)
	}
}

// The next occurrence must be a draft even if a person deletes the draft that the agent wrote.
func TestWithdraw_RequestOfAnAgentKeepsTheSeriesHeld(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	agent := r.agentOf(tenancy.AgentLimits{MustAsk: true})
	withdraw := func(by tenancy.Principal, a publishing.Approval) {
		_, err := r.approvals.Withdraw(t.Context(), by, a.ID.String())
		r.OK(err)
	}
	for name, end := range map[string]func(publishing.Approval){
		"withdrawn by the agent": func(a publishing.Approval) { withdraw(agent, a) },
		"withdrawn by a person":  func(a publishing.Approval) { withdraw(r.who, a) },
		"rejected": func(a publishing.Approval) {
			_, err := r.resolve(a, publishing.ActionReject)
			r.OK(err)
		},
		"expired": func(a publishing.Approval) {
			r.Tenant(r.who.Org, `update approval set expires_at = now() - interval '1 minute' where id = $1`, a.ID)
			_, err := r.approvals.SweepApprovals(t.Context())
			r.OK(err)
		},
	} {
		draft, err := publishtest.CreateAt(t.Context(), r.posts, agent, r.channel, publishing.CreateDraft,
			time.Now().Add(48*time.Hour), publishing.Repeat{Days: 1})
		r.OK(err)
		asked, err := r.approvals.Request(t.Context(), agent, draft.String(), publishing.RequestApproval{})
		r.OK(err)
		end(asked)
		r.OK(r.posts.Delete(t.Context(), r.who, draft.String()))
		var queued, drafts int
		r.OK(r.DB.Read(t.Context(), r.who.Org.UUID(), func(b *pgx.Batch) {
			b.Queue(`select count(id) filter (where state = 'QUEUE'), count(id) filter (where state = 'DRAFT') from post
				where series_id = (select series_id from post where id = $1) and deleted_at is null`,
				draft).QueryRow(func(row pgx.Row) error { return row.Scan(&queued, &drafts) })
		}))
		if queued != 0 || drafts != 1 {
			t.Errorf("%s: %d occurrences are queued and %d are drafts, want one draft", name, queued, drafts)
		}
	}
}

func TestAgent_ThatMustAskWithdrawsOnlyItsOwnRequests(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	agent := r.agentOf(tenancy.AgentLimits{MustAsk: true})
	asked := r.request(r.draft(), false)
	if _, err := r.approvals.Withdraw(t.Context(), agent, asked.ID.String()); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a person's request: got %v, want Forbidden", err)
	}
	if _, err := r.approvals.Withdraw(t.Context(), r.agentOf(tenancy.AgentLimits{}), asked.ID.String()); err != nil {
		t.Errorf("an agent that need not ask: got %v, want nil", err)
	}
}

func TestAgent_ThatMustAskAsksMembers(t *testing.T) {
	t.Parallel()
	r := newApprovalRig(t)
	agent := r.agentOf(tenancy.AgentLimits{MustAsk: true})
	outside := publishing.RequestApproval{ReviewerEmail: new("client@example.org")}
	if _, err := r.approvals.Request(t.Context(), agent, r.draft().String(), outside); !fault.Is(err, fault.Invalid) {
		t.Errorf("an address outside: got %v, want Invalid", err)
	}
	if _, err := r.approvals.Request(t.Context(), r.agentOf(tenancy.AgentLimits{}), r.draft().String(), outside); err != nil {
		t.Errorf("an agent that need not ask: got %v, want nil", err)
	}
}
