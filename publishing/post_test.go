package publishing

import (
	"testing"

	"crier/platform/id"
	"crier/tenancy"
)

func TestEventActor_HasCurrentNames(t *testing.T) {
	t.Parallel()
	person, key, agent := id.New[tenancy.PersonTag](), id.New[tenancy.KeyTag](), id.New[tenancy.AgentTag]()
	for by, want := range map[string]tenancy.Actor{
		"person " + person.String(): {Kind: tenancy.ActorPerson, ID: person.String(), Person: person, Name: "Ada"},
		"key " + key.String():       {Kind: tenancy.ActorKey, ID: key.String(), Name: "CI"},
		"agent " + agent.String() + " for person " + person.String() + ": Planner": {
			Kind: tenancy.ActorAgent, ID: agent.String(), Name: "Planner", Person: person, PersonName: "Ada",
		},
	} {
		if got := (Event{By: &by, KeyName: "CI", PersonName: "Ada"}).Actor(); got == nil || *got != want {
			t.Errorf("%s: got %+v, want %+v", by, got, want)
		}
	}
	if got := (Event{}).Actor(); got != nil {
		t.Errorf("an event of the service: got %+v, want nil", got)
	}
}
