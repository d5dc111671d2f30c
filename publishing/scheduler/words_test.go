package scheduler

import (
	"context"
	"strings"
	"testing"
	"time"

	"crier/platform/id"
	"crier/platform/outbound"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

func TestGiveUp_NamesThePublishedParts(t *testing.T) {
	t.Parallel()
	part := func(position int, phase dispatch.Phase) dispatch.Publication {
		return dispatch.Publication{Position: position, Phase: phase}
	}
	const unknown = "The platform never confirmed"
	done, committing, preparing := dispatch.PhaseDone, dispatch.PhaseCommitting, dispatch.PhasePreparing
	type parts = []dispatch.Publication
	for name, c := range map[string]struct {
		before, parts parts
		prefix        string
	}{
		"a single post has the reason only": {before: nil, parts: parts{part(0, committing)}, prefix: unknown},
		"parts before it are named": {
			before: nil, parts: parts{part(0, done), part(1, committing), part(2, preparing)}, prefix: "Part 1 is published. Part 2: " + unknown,
		},
		"parts of earlier posts are named once": {
			before: parts{part(0, done), part(0, done), part(1, done)}, parts: parts{part(2, committing)},
			prefix: "Parts 1 and 2 are published. Part 3: " + unknown,
		},
		"without an unknown part it has the reason only": {before: nil, parts: parts{part(0, done)}, prefix: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := giveUp(dispatch.Work{Before: c.before, Parts: c.parts}, dispatch.Outcome{})
			if out.Code != publishing.CodeOutcomeUnknown || !strings.HasPrefix(out.Error, c.prefix) {
				t.Errorf("got %s, %q, want %s, %q", out.Code, out.Error, publishing.CodeOutcomeUnknown, c.prefix)
			}
		})
	}
}

func TestRetryOrFail_FormatsTheWait(t *testing.T) {
	t.Parallel()
	r := &run{Sender: &Sender{cfg: Config{RetryWindow: time.Second / 2}}}
	for after, want := range map[time.Duration]string{
		30 * 24 * time.Hour:             "30 days",
		48*time.Hour + time.Nanosecond:  "3 days",
		48 * time.Hour:                  "2 days",
		47*time.Hour + 30*time.Minute:   "48 hours",
		2 * time.Hour:                   "2 hours",
		90 * time.Minute:                "90 minutes",
		119 * time.Second:               "119 seconds",
		time.Second:                     "1 second",
		1500 * time.Millisecond:         "2 seconds",
		600*time.Millisecond + 1:        "1 second",
		2*time.Minute + time.Nanosecond: "3 minutes",
	} {
		_, _, message, _ := r.retryOrFail(&connector.Error{Kind: connector.KindTransient, After: after, Public: "Slow down."})
		if !strings.HasSuffix(message, "Slow down. The platform asked to wait for "+want+".") {
			t.Errorf("a wait of %v: got %q, want it to name %s", after, message, want)
		}
	}
}

// ownerRecorder is a connector that records the owner of the connections that Reconcile uses.
type ownerRecorder struct {
	connector.Connector
	owner string
}

func (a *ownerRecorder) Describe() connector.Descriptor { return connector.Descriptor{ID: "asked"} }

func (a *ownerRecorder) Reconcile(ctx context.Context, _ *connector.Session, _ connector.Item) (connector.Verdict, error) {
	a.owner = outbound.Owner(ctx)
	return connector.Verdict{Outcome: connector.CannotTell}, nil
}

func TestAskPlatform_ConnectionsBelongToTheOrganization(t *testing.T) {
	t.Parallel()
	a := &ownerRecorder{}
	w := dispatch.Work{Org: id.New[tenancy.OrgTag](), Parts: []dispatch.Publication{{}}}
	r := &run{Sender: &Sender{cfg: Config{PlatformTimeout: time.Minute}}, work: w, connector: a}
	if _, err := r.askPlatform(t.Context(), 0); err != nil || a.owner != w.Org.String() {
		t.Errorf("the connections belong to %q, want the organization %s: %v", a.owner, w.Org, err)
	}
}
