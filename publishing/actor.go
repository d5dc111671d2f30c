package publishing

import (
	"strings"

	"crier/platform/id"
	"crier/platform/text"
	"crier/tenancy"
)

// ActorKind is the kind of whoever caused an event in a post's timeline.
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
	// ActorInstance is the operator of the instance, or the service itself.
	ActorInstance ActorKind = "instance"
)

// ActorKinds returns all kinds.
func ActorKinds() []ActorKind {
	return []ActorKind{ActorPerson, ActorKey, ActorAgent, ActorOperator, ActorGuest, ActorInstance}
}

// Actor is whoever caused an event in a post's timeline.
type Actor struct {
	Kind ActorKind
	// ID is the id of the person, the key or the agent. It is empty for the other kinds.
	ID string
	// Name is the agent's name at that time, the name that a guest entered, or the current name of
	// the person or key. It is empty if it is not known, for example because the person has left.
	Name string
	// Person is the person for whom an agent or an operator acted, or the member who passed a review
	// link on to a guest. PersonName is that person's current name.
	Person     tenancy.PersonID
	PersonName string
}

// maxActorName is the longest name of an agent in a timeline, in bytes.
const maxActorName = 200

// The words that ActorOf and package approval write, and that ParseActor reads.
const (
	forPerson  = " for person "
	withLinkOf = " with the link of person "
	aGuest     = "a guest"
	namedGuest = "guest "
)

// ActorOf returns a description of the principal, as stored in a post's timeline. ParseActor reads
// it. Examples: "operator for person 0192f0c1-…" and "agent 0192f0c2-… for person 0192f0c1-…:
// Planner". The description contains no email addresses, because timelines outlive accounts.
func ActorOf(p tenancy.Principal) string {
	if p.Via == tenancy.ViaKey {
		return "key " + p.Key.String()
	}
	if !p.Impersonator.IsZero() {
		return "operator" + forPerson + p.Person.String()
	}
	if p.Agent.IsZero() {
		return "person " + p.Person.String()
	}
	agent := "agent " + p.Agent.ID.String() + forPerson + p.Person.String()
	if name := text.Line(p.Agent.Name, maxActorName); name != "" {
		return agent + ": " + name
	}
	return agent
}

// GuestActor returns a description of a guest who answered an approval request, as stored in a
// post's timeline. name is nil if the guest entered none. sharer is the member who passed the link
// on, or zero if the link was mailed.
func GuestActor(name *string, sharer tenancy.PersonID) string {
	guest := aGuest
	if name != nil {
		guest = namedGuest + *name
	}
	if sharer.IsZero() {
		return guest
	}
	return guest + withLinkOf + sharer.String()
}

// ParseActor returns the actor with the description from a timeline. Names of people and keys are
// not part of it. Any other text describes the operator of the instance.
func ParseActor(by string) Actor {
	kind, rest, _ := strings.Cut(by, " ")
	switch ActorKind(kind) {
	case ActorPerson:
		person, ok := id.Parse[tenancy.PersonTag](rest)
		if ok {
			return Actor{Kind: ActorPerson, ID: rest, Person: person}
		}
	case ActorKey:
		return Actor{Kind: ActorKey, ID: rest}
	case ActorOperator:
		person, _ := id.Parse[tenancy.PersonTag](strings.TrimPrefix(" "+rest, forPerson))
		return Actor{Kind: ActorOperator, Person: person}
	case ActorAgent:
		agent, rest, _ := strings.Cut(rest, forPerson)
		sent, name, _ := strings.Cut(rest, ": ")
		person, _ := id.Parse[tenancy.PersonTag](sent)
		return Actor{Kind: ActorAgent, ID: agent, Name: name, Person: person}
	}
	if by == aGuest || strings.HasPrefix(by, aGuest+withLinkOf) || strings.HasPrefix(by, namedGuest) {
		return guestOf(by)
	}
	return Actor{Kind: ActorInstance}
}

// guestOf returns the guest with a description. The guest's name may contain any words, so the
// member is looked for from the end.
func guestOf(by string) Actor {
	out := Actor{Kind: ActorGuest}
	if i := strings.LastIndex(by, withLinkOf); i >= 0 {
		if person, ok := id.Parse[tenancy.PersonTag](by[i+len(withLinkOf):]); ok {
			by, out.Person = by[:i], person
		}
	}
	if name, named := strings.CutPrefix(by, namedGuest); named {
		out.Name = name
	}
	return out
}
