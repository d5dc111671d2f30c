package conformance

import (
	"fmt"
	"slices"
	"testing"

	"crier/publishing/connector"
)

// Method is a method of a connector that may call a server.
type Method string

// The methods.
const (
	MethodConnect   Method = "Connect"
	MethodRefresh   Method = "Refresh"
	MethodPrepare   Method = "Prepare"
	MethodReconcile Method = "Reconcile"
)

// declared checks that what the suite declares of the connector is what the connector says of itself.
func (s Suite) declared(t *testing.T) {
	d := s.New().Describe()
	if !s.Grade.Valid() {
		t.Errorf("the suite declares no valid Grade: %q", s.Grade)
	}
	if d.KeyOnly != s.KeyOnly {
		t.Errorf("the descriptor says KeyOnly %v, the suite %v", d.KeyOnly, s.KeyOnly)
	}
	if _, refreshes := s.New().(connector.Refresher); refreshes == s.Lasting {
		t.Errorf("the connector is a Refresher: %v; the suite says that its access lasts: %v", refreshes, s.Lasting)
	}
}

// mustCall ends a case whose fault should strike a call of the method: it is skipped where the suite declares that there is
// none, and fails where the declaration and what happened differ.
func (r *rig) mustCall(m Method) {
	r.t.Helper()
	wrong := undeclared(slices.Contains(r.Offline, m), r.line.counted().struck > 0)
	if wrong != "" {
		r.t.Fatalf("%s %s", m, wrong)
	}
	if slices.Contains(r.Offline, m) {
		r.t.Skipf("declared: %s calls no server", m)
	}
}

// undeclared says in what the declaration that a method calls no server differs from what happened, "" for nothing.
func undeclared(offline, called bool) string {
	switch {
	case offline && called:
		return "calls a server, and the suite declares it Offline"
	case !offline && !called:
		return "calls no server, and the suite does not declare it Offline"
	}
	return ""
}

// arm breaks the next commit. The case is skipped where the suite declares that the platform is spared this fault.
func (r *rig) arm(fault Fault) {
	r.t.Helper()
	spared := slices.Contains(r.Spared, fault)
	if armed := r.faults.Arm(r.t, fault); armed == spared {
		r.t.Fatal(map[bool]string{
			true:  fmt.Sprintf("%s can be made, and the suite declares the platform Spared", fault),
			false: fmt.Sprintf("%s cannot be made, and the suite does not declare the platform Spared", fault),
		}[armed])
	}
	if spared {
		r.t.Skipf("declared: this platform is spared %s", fault)
	}
}
