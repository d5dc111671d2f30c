package connector

import (
	"fmt"
	"sort"
)

// Registry holds the connectors of this instance by platform identifier. What it returns is guarded: a panic in a
// connector is an error, and what a platform says is cleaned and bounded.
type Registry struct{ byID map[string]Connector }

// NewRegistry makes a registry; two connectors of one identifier are an error.
func NewRegistry(all ...Connector) (*Registry, error) {
	r := &Registry{byID: map[string]Connector{}}
	for _, c := range all {
		name := c.Describe().ID
		if _, taken := r.byID[name]; taken {
			return nil, fmt.Errorf("connector %q is registered twice", name)
		}
		r.byID[name] = guard(c)
	}
	return r, nil
}

// Get finds a connector.
func (r *Registry) Get(id string) (Connector, bool) {
	c, ok := r.byID[id]
	return c, ok
}

// All lists the connectors by identifier.
func (r *Registry) All() []Connector {
	out := make([]Connector, 0, len(r.byID))
	for _, c := range r.byID {
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Describe().ID < out[j].Describe().ID })
	return out
}
