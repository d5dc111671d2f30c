package record

import (
	"encoding/json"
	"testing"

	"crier/platform/id"
	"crier/publishing"
	"crier/tenancy"
)

func TestActor_NamesTheAgentAndItsPerson(t *testing.T) {
	t.Parallel()
	person, agent := id.New[tenancy.PersonTag](), id.New[tenancy.AgentTag]()
	for want, a := range map[string]*publishing.Actor{
		`{"kind":"agent","id":"` + agent.String() + `","name":"Planner","for":{"id":"` + person.String() + `","name":"Ada"}}`: {
			Kind: publishing.ActorAgent, ID: agent.String(), Name: "Planner", Person: person, PersonName: "Ada",
		},
		`{"kind":"person","id":"` + person.String() + `","name":"Ada"}`: {
			Kind: publishing.ActorPerson, ID: person.String(), Name: "Ada", Person: person,
		},
		`{"kind":"guest","id":"","name":"Client"}`: {Kind: publishing.ActorGuest, Name: "Client"},
		`null`: nil,
	} {
		got, err := json.Marshal(actorOf(a))
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
}
