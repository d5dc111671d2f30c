package sender

import (
	"context"
	"strings"
	"testing"
	"time"

	"crier/platform/id"
	"crier/platform/outbound"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/tenancy"
)

func TestAThreadGivenUpTellsWhatIsOut(t *testing.T) {
	t.Parallel()
	part := func(position int, phase publishing.Phase) publishing.Publication {
		return publishing.Publication{Position: position, Phase: phase}
	}
	for name, c := range map[string]struct {
		w      publishing.Work
		begins string
	}{
		"a single post says only why": {publishing.Work{Parts: []publishing.Publication{part(0, publishing.PhaseCommitting)}}, "The platform never told"},
		"parts before it are named":   {publishing.Work{Parts: []publishing.Publication{part(0, publishing.PhaseDone), part(1, publishing.PhaseCommitting), part(2, publishing.PhasePreparing)}}, "Part 1 is published. Part 2: The platform never told"},
		"parts of earlier runs too, each once": {publishing.Work{Before: []publishing.Publication{part(0, publishing.PhaseDone), part(0, publishing.PhaseDone), part(1, publishing.PhaseDone)}, Parts: []publishing.Publication{part(2, publishing.PhaseCommitting)}},
			"Parts 1 and 2 are published. Part 3: The platform never told"},
		"without a doubtful part, why": {publishing.Work{Parts: []publishing.Publication{part(0, publishing.PhaseDone)}}, "The platform never told"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out := giveUp(c.w, publishing.Outcome{}); out.Code != publishing.CodeOutcomeUnknown || !strings.HasPrefix(out.Error, c.begins) {
				t.Fatalf("%+v", out)
			}
		})
	}
}

func TestAgain_SaysWaitAsPeopleReadIt(t *testing.T) {
	t.Parallel()
	r := &run{Sender: &Sender{cfg: Config{BackoffFor: time.Second / 2}}}
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
		_, _, said, _ := r.again(&connector.Error{Kind: connector.KindTransient, After: after, Public: "Slow down."})
		if !strings.HasSuffix(said, "Slow down. The platform asked to wait for "+want+".") {
			t.Errorf("for %v people read %q, want %s", after, said, want)
		}
	}
}

// asked is a connector that looks who owns the connections of a look-up.
type asked struct {
	connector.Connector
	owner string
}

func (a *asked) Describe() connector.Descriptor { return connector.Descriptor{ID: "asked"} }

func (a *asked) Reconcile(ctx context.Context, _ *connector.Session, _ connector.Item) (connector.Verdict, error) {
	a.owner = outbound.Owner(ctx)
	return connector.Verdict{Outcome: connector.CannotTell}, nil
}

func TestAsk_ConnectionsAreOfTheOrganization(t *testing.T) {
	t.Parallel()
	a := &asked{}
	w := publishing.Work{Org: id.New[tenancy.OrgTag](), Parts: []publishing.Publication{{}}}
	r := &run{Sender: &Sender{cfg: Config{RequestDeadline: time.Minute}}, w: w, c: a}
	if _, err := r.ask(t.Context(), 0); err != nil || a.owner != w.Org.String() {
		t.Errorf("the connections are of %q, want the organization %s: %v", a.owner, w.Org, err)
	}
}
