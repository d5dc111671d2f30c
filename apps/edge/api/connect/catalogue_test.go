package connect_test

import (
	"strings"
	"testing"

	"crier/apps/edge"
	"crier/publishing/connector"
	"crier/tests/edgetest"
)

// withDefaults has a connector with a field whose default value is value.
type withDefaults struct {
	edgetest.Channels
	value string
}

func (w withDefaults) Catalogue() []connector.Descriptor {
	return []connector.Descriptor{{ID: "sandbox", Name: "Sandbox", Fields: []connector.Field{{Key: "service", Label: "Address", DefaultValue: w.value}}}}
}

// TestCatalogue_HidesDefaultsWithAddresses: an address may be a secret, and the catalogue needs no
// session.
func TestCatalogue_HidesDefaultsWithAddresses(t *testing.T) {
	t.Parallel()
	for value, shown := range map[string]bool{"A": true, "http://127.0.0.1:37835": false, "wss://inner.example, wss://other.example": false} {
		s := edgetest.New(t, nil, func(d *edge.Deps) { d.Channels = withDefaults{Channels: d.Channels.(edgetest.Channels), value: value} })
		if a := s.Call(t, "GET", "/integrations", ""); a.Status != 200 || strings.Contains(a.Body, `"defaultValue":"`+value) != shown {
			t.Errorf("%q: got %d %s, want it shown: %v", value, a.Status, a.Body, shown)
		}
	}
}
