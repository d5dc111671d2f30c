package connector

import (
	"fmt"
	"sort"
)

// Registry holds this instance's connectors, keyed by platform identifier. The connectors that it
// returns are guarded: panics become errors, and all text from a platform is cleaned and truncated.
// A Registry is safe for concurrent use.
type Registry struct{ byID map[string]Connector }

// NewRegistry returns a registry that contains the given connectors. It returns an error if two of
// them have the same identifier.
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

// Get returns the connector with the given identifier, or false if this instance does not offer the
// platform. A stored channel may belong to a platform that is no longer offered.
func (r *Registry) Get(id string) (Connector, bool) {
	c, ok := r.byID[id]
	return c, ok
}

// All returns the connectors sorted by identifier.
func (r *Registry) All() []Connector {
	out := make([]Connector, 0, len(r.byID))
	for _, c := range r.byID {
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Describe().ID < out[j].Describe().ID })
	return out
}
