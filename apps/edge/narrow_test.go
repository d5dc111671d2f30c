package edge_test

import (
	"context"
	"testing"

	"crier/apps/edge"
	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
	"crier/tests/edgetest"
)

// agentAccounts returns an agent with limits for every credential.
type agentAccounts struct {
	edge.Accounts
	limits *tenancy.AgentLimits
}

func (a agentAccounts) Authenticate(context.Context, string) (tenancy.Principal, error) {
	return tenancy.Principal{
		Org: edgetest.OrgID, Role: tenancy.RoleAdmin, Via: tenancy.ViaAgent, Agent: tenancy.Agent{Limits: a.limits},
	}, nil
}

// seenChannels records whether the context of a list is narrowed.
type seenChannels struct {
	edge.Channels
	narrowed *bool
}

func (c seenChannels) List(ctx context.Context, _ tenancy.Principal, _ string) ([]publishing.Channel, error) {
	*c.narrowed = pg.IsNarrowed(ctx)
	return nil, nil
}

func TestAgent_RequestIsNarrowedToItsGrant(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limits *tenancy.AgentLimits
		want   bool
	}{
		"without limits": {},
		"other limits":   {limits: &tenancy.AgentLimits{MustAsk: true, PostsPerDay: 3}},
		"channels":       {limits: &tenancy.AgentLimits{Channels: []string{"0193b2c4-7d10-7a31-9c55-2f0e6b1a4d01"}}, want: true},
		"customers":      {limits: &tenancy.AgentLimits{Customers: []string{"0193b2c4-7d10-7a31-9c55-2f0e6b1a4d01"}}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var narrowed bool
			s := edgetest.New(t, nil, func(d *edge.Deps) {
				d.Accounts, d.Channels = agentAccounts{d.Accounts, tt.limits}, seenChannels{d.Channels, &narrowed}
			})
			edgetest.Want(t, s.CallAPI(t, "GET", "/public/v1/integrations", ""), 200)
			if narrowed != tt.want {
				t.Errorf("the request is narrowed is %t, want %t", narrowed, tt.want)
			}
		})
	}
}
