package publishing

import (
	"strings"
	"testing"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
)

// agent returns a principal whose agent has the given limits.
func agent(limits *tenancy.AgentLimits) tenancy.Principal {
	return tenancy.Principal{
		Via: tenancy.ViaAgent, Person: id.New[tenancy.PersonTag](), Role: tenancy.RoleSuperAdmin,
		Agent: tenancy.Agent{ID: id.New[tenancy.AgentTag](), Grant: id.New[tenancy.GrantTag](), Name: "Planner", Limits: limits},
	}
}

func TestMustAsk_HoldsOnlyForAgentsWithTheLimit(t *testing.T) {
	t.Parallel()
	asks := &tenancy.AgentLimits{MustAsk: true}
	for name, tt := range map[string]struct {
		p    tenancy.Principal
		want bool
	}{
		"an agent that must ask":   {p: agent(asks), want: true},
		"an agent without limits":  {p: agent(nil)},
		"an agent with others":     {p: agent(&tenancy.AgentLimits{PostsPerDay: 1})},
		"a session":                {p: tenancy.Principal{Via: tenancy.ViaSession}},
		"a key":                    {p: tenancy.Principal{Via: tenancy.ViaKey}},
		"the operator":             {p: tenancy.Principal{Via: tenancy.ViaInstance}},
		"a person with the limits": {p: tenancy.Principal{Via: tenancy.ViaSession, Agent: tenancy.Agent{Limits: asks}}},
	} {
		if got := MustAsk(tt.p); got != tt.want {
			t.Errorf("%s: got %t, want %t", name, got, tt.want)
		}
		if err := MayQueue("test", tt.p); fault.Is(err, fault.Forbidden) != tt.want {
			t.Errorf("%s may queue: got %v, want Forbidden to be %t", name, err, tt.want)
		}
		if err := MayContinue("test", tt.p); fault.Is(err, fault.Forbidden) != tt.want {
			t.Errorf("%s may continue a series: got %v, want Forbidden to be %t", name, err, tt.want)
		}
	}
}

func TestMayChange_AllowsOnlyDrafts(t *testing.T) {
	t.Parallel()
	asks := agent(&tenancy.AgentLimits{MustAsk: true})
	for _, state := range States() {
		// A follower waits while the first post of its thread is a draft.
		want := state != StateDraft && state != StateWaiting
		err := MayChange("test", asks, StateDraft, state)
		if fault.Is(err, fault.Forbidden) != want {
			t.Errorf("%s: got %v, want Forbidden to be %t", state, err, want)
		}
		if want && !strings.Contains(err.Error(), "POST /posts/{id}/request-approval (tool service_request_approval)") {
			t.Errorf("%s: got %v, want that it names the route and the tool", state, err)
		}
		if err := MayChange("test", agent(nil), state); err != nil {
			t.Errorf("%s without limits: got %v, want nil", state, err)
		}
	}
}

func TestMayChangeShared_RefusesAgentsThatMayNotChangeEveryPost(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		p    tenancy.Principal
		want bool
	}{
		"some channels":  {p: agent(&tenancy.AgentLimits{Channels: []string{"x"}}), want: true},
		"some customers": {p: agent(&tenancy.AgentLimits{Customers: []string{"x"}}), want: true},
		"must ask":       {p: agent(&tenancy.AgentLimits{MustAsk: true}), want: true},
		"posts per day":  {p: agent(&tenancy.AgentLimits{PostsPerDay: 1})},
		"no limits":      {p: agent(nil)},
		"a session":      {p: tenancy.Principal{Via: tenancy.ViaSession}},
		"a key":          {p: tenancy.Principal{Via: tenancy.ViaKey}},
	} {
		err := MayChangeShared("test", tt.p, "tags")
		if fault.Is(err, fault.Forbidden) != tt.want || tt.want && !strings.Contains(err.Error(), "tags") {
			t.Errorf("%s: got %v, want Forbidden to be %t", name, err, tt.want)
		}
	}
}

func TestNoAgent_RefusesOnlyAgents(t *testing.T) {
	t.Parallel()
	if err := NoAgent("test", agent(nil), "do this"); !fault.Is(err, fault.Forbidden) {
		t.Errorf("an agent: got %v, want Forbidden", err)
	}
	for _, via := range []tenancy.Via{tenancy.ViaSession, tenancy.ViaKey, tenancy.ViaGuest, tenancy.ViaInstance} {
		if err := NoAgent("test", tenancy.Principal{Via: via}, "do this"); err != nil {
			t.Errorf("%s: got %v, want nil", via, err)
		}
	}
}
