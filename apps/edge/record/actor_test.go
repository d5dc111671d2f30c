package record

import (
	"encoding/json"
	"testing"

	"crier/platform/id"
	"crier/tenancy"
)

func TestActor_NamesTheAgentAndItsPerson(t *testing.T) {
	t.Parallel()
	person, agent := id.New[tenancy.PersonTag](), id.New[tenancy.AgentTag]()
	for want, a := range map[string]*tenancy.Actor{
		`{"kind":"agent","id":"` + agent.String() + `","name":"Planner","for":{"id":"` + person.String() + `","name":"Ada"}}`: {
			Kind: tenancy.ActorAgent, ID: agent.String(), Name: "Planner", Person: person, PersonName: "Ada",
		},
		`{"kind":"person","id":"` + person.String() + `","name":"Ada"}`: {
			Kind: tenancy.ActorPerson, ID: person.String(), Name: "Ada", Person: person,
		},
		`{"kind":"guest","id":"","name":"Client"}`: {Kind: tenancy.ActorGuest, Name: "Client"},
		`null`: nil,
	} {
		got, err := json.Marshal(actorOf(a))
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}
