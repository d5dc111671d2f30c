package tenancy

import (
	"regexp"

	"crier/platform/id"
	"crier/platform/text"
)

// ActorKind is the kind of actor that caused an event in a post's timeline.
type ActorKind string

// The kinds of actors.
const (
	ActorPerson ActorKind = "person"
	ActorKey    ActorKind = "key"
	// ActorAgent is a program that acted on behalf of a person.
	ActorAgent ActorKind = "agent"
	// ActorOperator is an instance administrator who impersonated a person.
	ActorOperator ActorKind = "operator"
	// ActorGuest is the holder of a review link.
	ActorGuest ActorKind = "guest"
	// ActorInstance is the instance operator or the service itself.
	ActorInstance ActorKind = "instance"
)

// ActorKinds returns all kinds.
func ActorKinds() []ActorKind {
	return []ActorKind{ActorPerson, ActorKey, ActorAgent, ActorOperator, ActorGuest, ActorInstance}
}

// Actor identifies who caused an event in a post's timeline.
type Actor struct {
	Kind ActorKind
	// ID is the id of the person, the key or the agent. It is empty for the other kinds.
	ID string
	// Name is the agent's name at the time of the event, the name that a guest entered, or the
	// current name of the person or key. It is empty if the name is unknown, for example because
	// the person has left.
	Name string
	// Person is the person for whom an agent or an operator acted, or the member who passed a
	// review link on to a guest. PersonName is that person's current name.
	Person     PersonID
	PersonName string
}

// maxActorName is the maximum length of an agent's name in a timeline, in bytes.
const maxActorName = 200

// ActorOf returns a description of the principal for a post's timeline. ParseActor parses the
// description. Examples: "operator for person 0192f0c1-…" and "agent 0192f0c2-… for person
// 0192f0c1-…: Planner". The description contains no email addresses, because timelines outlive
// accounts.
func ActorOf(p Principal) string {
	if p.Via == ViaKey {
		return "key " + p.Key.String()
	}
	if !p.Impersonator.IsZero() {
		return "operator for person " + p.Person.String()
	}
	if p.Agent.IsZero() {
		return "person " + p.Person.String()
	}
	agent := "agent " + p.Agent.ID.String() + " for person " + p.Person.String()
	if name := text.Line(p.Agent.Name, maxActorName); name != "" {
		return agent + ": " + name
	}
	return agent
}

// GuestActor returns the timeline description of a guest who answered an approval request. name is
// nil if the guest entered none. sharer is the member who passed the link on, or zero if the link
// was emailed.
func GuestActor(name *string, sharer PersonID) string {
	guest := "a guest"
	if name != nil {
		guest = "guest " + *name
	}
	if sharer.IsZero() {
		return guest
	}
	return guest + " with the link of person " + sharer.String()
}

const idForm = `([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`

// actorForm matches the descriptions that ActorOf and GuestActor return. Names may contain
// anything.
var actorForm = regexp.MustCompile(`(?s)^(?:(person|key|agent|operator)(?: ` + idForm + `)?(?: for person ` + idForm +
	`(?:: (.*))?)?|(?:a )?(guest)(?: (.*?))??(?: with the link of person ` + idForm + `)?)$`)

// ParseActor parses a description from a timeline. For people and keys, the result contains the id
// but not the name. Any other text describes the instance operator or the service itself.
func ParseActor(by string) Actor {
	m := actorForm.FindStringSubmatch(by)
	if m == nil {
		return Actor{Kind: ActorInstance}
	}
	out := Actor{Kind: ActorKind(m[1]), ID: m[2], Name: m[4]}
	person := m[3]
	switch {
	case m[5] != "":
		out, person = Actor{Kind: ActorGuest, Name: m[6]}, m[7]
	case out.Kind == ActorPerson:
		person = out.ID
	}
	out.Person, _ = id.Parse[PersonTag](person)
	return out
}
