package tenancy

import (
	"testing"

	"crier/platform/id"
)

func TestParseActor_ReadsWhatIsStored(t *testing.T) {
	t.Parallel()
	person, key, agent := id.New[PersonTag](), id.New[KeyTag](), id.New[AgentTag]()
	by := func(name string) Principal {
		return Principal{Person: person, Via: ViaAgent, Agent: Agent{ID: agent, Name: name}}
	}
	name, tricky := "Ada", "Ada with the link of person "+person.String()
	for text, tt := range map[string]struct {
		stored string
		want   Actor
	}{
		"key " + key.String(): {
			stored: ActorOf(Principal{Person: person, Via: ViaKey, Key: key}),
			want:   Actor{Kind: ActorKey, ID: key.String()},
		},
		"person " + person.String(): {
			stored: ActorOf(Principal{Person: person, Via: ViaSession}),
			want:   Actor{Kind: ActorPerson, ID: person.String(), Person: person},
		},
		"operator for person " + person.String(): {
			stored: ActorOf(Principal{Person: person, Via: ViaSession, Impersonator: id.New[PersonTag]()}),
			want:   Actor{Kind: ActorOperator, Person: person},
		},
		"agent " + agent.String() + " for person " + person.String(): {
			stored: ActorOf(by("")), want: Actor{Kind: ActorAgent, ID: agent.String(), Person: person},
		},
		"agent " + agent.String() + " for person " + person.String() + ": Planner: weekly": {
			stored: ActorOf(by("Planner:\nweekly\u202e")),
			want:   Actor{Kind: ActorAgent, ID: agent.String(), Name: "Planner: weekly", Person: person},
		},
		"a guest": {stored: GuestActor(nil, PersonID{}), want: Actor{Kind: ActorGuest}},
		"a guest with the link of person " + person.String(): {
			stored: GuestActor(nil, person), want: Actor{Kind: ActorGuest, Person: person},
		},
		"guest Ada": {stored: GuestActor(&name, PersonID{}), want: Actor{Kind: ActorGuest, Name: "Ada"}},
		"guest Ada with the link of person " + person.String() + " with the link of person " + person.String(): {
			stored: GuestActor(&tricky, person), want: Actor{Kind: ActorGuest, Name: tricky, Person: person},
		},
		"someone": {stored: "someone", want: Actor{Kind: ActorInstance}},
	} {
		if tt.stored != text {
			t.Errorf("got the description %q, want %q", tt.stored, text)
		}
		if got := ParseActor(tt.stored); got != tt.want {
			t.Errorf("%s: got %+v, want %+v", text, got, tt.want)
		}
	}
}
