package record

import (
	"crier/tenancy"

	"github.com/danielgtaylor/huma/v2"
)

// Actor is whoever caused an event in a post's timeline.
type Actor struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Name string `json:"name"`
	For  *Name  `json:"for,omitempty"`
}

// Name holds a person's id and current name.
type Name struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Schema returns the schema of an actor.
func (Actor) Schema(huma.Registry) *huma.Schema {
	kind := &huma.Schema{
		Type: huma.TypeString, Description: "Kind of actor. agent: an app that acts for a person. operator: an instance " +
			"administrator who impersonated a person. guest: someone with a review link. instance: the operator of the " +
			"instance.",
	}
	for _, k := range tenancy.ActorKinds() {
		kind.Enum = append(kind.Enum, string(k))
	}
	return &huma.Schema{
		Type: huma.TypeObject, Required: []string{"kind", "id", "name"},
		Description: "Who caused the event. Absent if the service itself caused it.",
		Properties: map[string]*huma.Schema{
			"kind": kind,
			"id":   {Type: huma.TypeString, Description: "Id of the person, key or agent; empty for other kinds."},
			"name": {
				Type: huma.TypeString, Description: "Current name of the person or key, the app's name at the time of the event, or the " +
					"name that the guest entered. Empty if unknown, for example because the person has left.",
			},
			"for": {
				Type: huma.TypeObject, Required: []string{"id", "name"},
				Description: "The person for whom an agent or an operator acted, or the member who passed the review link " +
					"on to the guest; absent otherwise.",
				Properties: map[string]*huma.Schema{
					"id":   {Type: huma.TypeString, Description: "Id of the person."},
					"name": {Type: huma.TypeString, Description: "Current name of the person; empty if the person has left."},
				},
			},
		},
	}
}

func actorOf(a *tenancy.Actor) *Actor {
	if a == nil {
		return nil
	}
	out := &Actor{Kind: string(a.Kind), ID: a.ID, Name: a.Name}
	if a.Kind != tenancy.ActorPerson && !a.Person.IsZero() {
		out.For = &Name{ID: a.Person.String(), Name: a.PersonName}
	}
	return out
}
