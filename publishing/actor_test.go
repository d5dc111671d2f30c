package publishing

import (
	"testing"

	"crier/platform/id"
	"crier/tenancy"
)

func TestActorOf_NamesKeyPersonOperatorAndAgent(t *testing.T) {
	t.Parallel()
	person, key, agent := id.New[tenancy.PersonTag](), id.New[tenancy.KeyTag](), id.New[tenancy.AgentTag]()
	for want, p := range map[string]tenancy.Principal{
		"key " + key.String():                    {Person: person, Via: tenancy.ViaKey, Key: key},
		"person " + person.String():              {Person: person, Via: tenancy.ViaSession},
		"operator for person " + person.String(): {Person: person, Via: tenancy.ViaSession, Impersonator: id.New[tenancy.PersonTag]()},
		"agent " + agent.String() + " for person " + person.String(): {
			Person: person, Via: tenancy.ViaAgent, Agent: tenancy.Agent{ID: agent},
		},
	} {
		if got := ActorOf(p); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
