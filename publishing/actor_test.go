package publishing

import (
	"testing"

	"crier/platform/id"
	"crier/tenancy"
)

func TestParseActor_ReadsWhatIsStored(t *testing.T) {
	t.Parallel()
	person, key, agent := id.New[tenancy.PersonTag](), id.New[tenancy.KeyTag](), id.New[tenancy.AgentTag]()
	by := func(name string) tenancy.Principal {
		return tenancy.Principal{Person: person, Via: tenancy.ViaAgent, Agent: tenancy.Agent{ID: agent, Name: name}}
	}
	name, tricky := "Ada", "Ada with the link of person "+person.String()
	for text, tt := range map[string]struct {
		stored string
		want   Actor
	}{
		"key " + key.String(): {
			stored: ActorOf(tenancy.Principal{Person: person, Via: tenancy.ViaKey, Key: key}),
			want:   Actor{Kind: ActorKey, ID: key.String()},
		},
		"person " + person.String(): {
			stored: ActorOf(tenancy.Principal{Person: person, Via: tenancy.ViaSession}),
			want:   Actor{Kind: ActorPerson, ID: person.String(), Person: person},
		},
		"operator for person " + person.String(): {
			stored: ActorOf(tenancy.Principal{Person: person, Via: tenancy.ViaSession, Impersonator: id.New[tenancy.PersonTag]()}),
			want:   Actor{Kind: ActorOperator, Person: person},
		},
		"agent " + agent.String() + " for person " + person.String(): {
			stored: ActorOf(by("")), want: Actor{Kind: ActorAgent, ID: agent.String(), Person: person},
		},
		"agent " + agent.String() + " for person " + person.String() + ": Planner: weekly": {
			stored: ActorOf(by("Planner:\nweekly\u202e")),
			want:   Actor{Kind: ActorAgent, ID: agent.String(), Name: "Planner: weekly", Person: person},
		},
		"a guest": {stored: GuestActor(nil, tenancy.PersonID{}), want: Actor{Kind: ActorGuest}},
		"a guest with the link of person " + person.String(): {
			stored: GuestActor(nil, person), want: Actor{Kind: ActorGuest, Person: person},
		},
		"guest Ada": {stored: GuestActor(&name, tenancy.PersonID{}), want: Actor{Kind: ActorGuest, Name: "Ada"}},
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

func TestEventActor_HasCurrentNames(t *testing.T) {
	t.Parallel()
	person, key, agent := id.New[tenancy.PersonTag](), id.New[tenancy.KeyTag](), id.New[tenancy.AgentTag]()
	for by, want := range map[string]Actor{
		"person " + person.String(): {Kind: ActorPerson, ID: person.String(), Person: person, Name: "Ada"},
		"key " + key.String():       {Kind: ActorKey, ID: key.String(), Name: "CI"},
		"agent " + agent.String() + " for person " + person.String() + ": Planner": {
			Kind: ActorAgent, ID: agent.String(), Name: "Planner", Person: person, PersonName: "Ada",
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
