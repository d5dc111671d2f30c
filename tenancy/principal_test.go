package tenancy

import (
	"strings"
	"testing"

	"crier/platform/id"
)

func TestPrincipal_NamesWhoActsAndForWhom(t *testing.T) {
	t.Parallel()
	agent := Agent{ID: id.New[AgentTag](), Grant: id.New[GrantTag](), Name: "Planner"}
	for name, c := range map[string]struct {
		p                   Principal
		actor, behind, doer string
	}{
		"a person": {p: Principal{Name: "ada@example.com"}, actor: "ada@example.com", doer: "ada@example.com"},
		"an agent": {
			p:     Principal{Name: "ada@example.com", Via: ViaAgent, Agent: agent},
			actor: "Planner for ada@example.com", doer: "Planner for ada@example.com",
		},
		"an agent with a long name": {
			p:     Principal{Name: "ada@example.com", Via: ViaAgent, Agent: Agent{ID: agent.ID, Grant: agent.Grant, Name: strings.Repeat("ä", 400)}},
			actor: strings.Repeat("ä", 300) + " for ada@example.com", doer: strings.Repeat("ä", 300) + " for ada@example.com",
		},
		"an administrator of the instance": {
			p:     Principal{Name: "ada@example.com", Impersonator: id.New[PersonTag](), ImpersonatorName: "root@example.com"},
			actor: "ada@example.com", behind: "root@example.com", doer: "root@example.com",
		},
	} {
		e := c.p.Event(ActionKeyCreated, "")
		if e.Actor != c.actor || e.Impersonator != c.behind || c.p.Doer() != c.doer {
			t.Errorf("%s: got the actor %q, behind %q, doer %q, want %q, %q, %q",
				name, e.Actor, e.Impersonator, c.p.Doer(), c.actor, c.behind, c.doer)
		}
	}
}

func TestCutSubject_FitsAnEntry(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string]string{
		"hook example.com":        "hook example.com",
		"hook ex\xff.com":         "hook ex\uFFFD.com",
		strings.Repeat("ä", 1000): strings.Repeat("ä", 320),
	} {
		if got := CutSubject(subject); got != want {
			t.Errorf("%.40q: got %q, want %q", subject, got, want)
		}
	}
}
