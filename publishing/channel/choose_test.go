package channel_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// offeringOAuth is an OAuth platform that offers two accounts and counts the choices.
type offeringOAuth struct {
	blockingOAuth
	chosen atomic.Int64
}

func (*offeringOAuth) Exchange(context.Context, connector.Env, connector.App, connector.Code) (connector.Authorized, error) {
	return connector.Authorized{
		Credential: json.RawMessage(`{}`), Candidates: []connector.Candidate{{ID: "page", Name: "Page"}, {ID: "other", Name: "Other"}},
	}, nil
}

func (d *offeringOAuth) Select(context.Context, connector.Env, connector.App, json.RawMessage, string) (connector.Connected, error) {
	d.chosen.Add(1)
	return connector.Connected{
		Account: connector.Account{ID: "page", Name: "Page", Grade: publishing.GradeMarked}, Credential: json.RawMessage(`{}`),
	}, nil
}

// channelsAllowed is a quota of channels that a test can change.
type channelsAllowed struct{ n int }

func (c *channelsAllowed) Limits(context.Context, pg.Querier, tenancy.OrgID) (tenancy.Limits, error) {
	limits := tenancy.NoLimits()
	limits.Plan, limits.Channels, limits.Since = "TEST", c.n, time.Now()
	return limits, nil
}

// A platform may accept a choice only once, so it is not called unless the plan allows the channel.
func TestChooseByState_AsksThePlanFirst(t *testing.T) {
	t.Parallel()
	r := publishtest.NewRig(t)
	d, plan := &offeringOAuth{blockingOAuth: blockingOAuth{Platform: r.Platform}}, &channelsAllowed{n: 2}
	r.Register(d)
	r.Deps.Quota = plan
	r.Deps.Access = r.Access(r.Deps.Connectors, map[string]connector.App{"sandbox": {ClientID: "c", Secret: "s"}}, nil)
	channels := r.Deps.Channels(publishtest.Limits)
	address, err := channels.Begin(t.Context(), r.Member().Who, publishing.BeginConnect{Connector: "sandbox"})
	r.OK(err)
	_, state, _ := strings.Cut(address, "state=")
	_, err = channels.Finish(t.Context(), publishing.FinishConnect{Connector: "sandbox", State: state, Code: "code"})
	r.OK(err)
	choose := func() error {
		_, err := channels.ChooseByState(t.Context(), "sandbox", publishing.ChooseAccount{State: state, Candidate: "page"})
		return err
	}
	plan.n = 1 // the organization already has a channel
	if err := choose(); !fault.Is(err, fault.Quota) || d.chosen.Load() != 0 {
		t.Errorf("over the plan: got %v after %d choices, want Quota and none", err, d.chosen.Load())
	}
	plan.n = 2
	if err := choose(); err != nil || d.chosen.Load() != 1 {
		t.Errorf("within the plan: got %v after %d choices, want one", err, d.chosen.Load())
	}
}
