package conformance

import "testing"

func TestUndeclared_ReportsWrongDeclarations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		offline, called bool
		want            string
	}{
		{offline: false, called: true, want: ""},
		{offline: true, called: false, want: ""},
		{offline: true, called: true, want: "calls a server, but the suite declares it Offline"},
		{offline: false, called: false, want: "calls no server, but the suite does not declare it Offline"},
	} {
		if got := undeclared(c.offline, c.called); got != c.want {
			t.Errorf("declared offline %v, called %v: got %q, want %q", c.offline, c.called, got, c.want)
		}
	}
}
