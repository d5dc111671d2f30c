package conformance

import (
	"fmt"
	"slices"
	"testing"

	"crier/publishing/connector"
)

// Method is the name of a connector method that may call a server.
type Method string

// The methods that Suite.Offline may list. Commit is excluded because it always calls a server.
const (
	MethodConnect   Method = "Connect"
	MethodRefresh   Method = "Refresh"
	MethodPrepare   Method = "Prepare"
	MethodReconcile Method = "Reconcile"
)

// checkDeclarations checks that the suite's declarations agree with the connector's descriptor and
// methods.
func (s Suite) checkDeclarations(t *testing.T) {
	d := s.New().Describe()
	if !s.Grade.Valid() {
		t.Errorf("the suite declares no valid Grade: %q", s.Grade)
	}
	if d.KeyOnly != s.KeyOnly {
		t.Errorf("the descriptor says KeyOnly %v, the suite %v", d.KeyOnly, s.KeyOnly)
	}
	if _, authorizes := s.New().(connector.Authorizer); authorizes != (s.OAuth != nil) {
		t.Errorf("the connector is an Authorizer: %v; the suite declares OAuth: %v", authorizes, s.OAuth != nil)
	}
	if _, refreshes := s.New().(connector.Refresher); refreshes == s.Lasting {
		t.Errorf("the connector is a Refresher: %v; the suite says that its access lasts: %v", refreshes, s.Lasting)
	}
}

// requireCall checks that a fault was injected into a call made by the method. If the suite
// declares that the method never calls a server, requireCall skips the case. If that declaration is
// wrong, requireCall fails the case.
func (r *rig) requireCall(m Method) {
	r.t.Helper()
	if wrong := undeclared(slices.Contains(r.Offline, m), r.line.counted().faulted > 0); wrong != "" {
		r.t.Fatalf("wrong declaration: %s %s", m, wrong)
	}
	if slices.Contains(r.Offline, m) {
		r.t.Skipf("declared: %s calls no server", m)
	}
}

// undeclared describes how a method's behavior contradicts the declaration that the method never
// calls a server. It returns "" if there is no contradiction.
func undeclared(offline, called bool) string {
	switch {
	case offline && called:
		return "calls a server, but the suite declares it Offline"
	case !offline && !called:
		return "calls no server, but the suite does not declare it Offline"
	}
	return ""
}

// arm sets the fault for the next Commit. If the suite declares that the fault cannot occur on the
// platform, arm skips the case. If that declaration is wrong, arm fails the case.
func (r *rig) arm(fault Fault) {
	r.t.Helper()
	spared := slices.Contains(r.Spared, fault)
	if armed := r.faults.Arm(r.t, fault); armed == spared {
		r.t.Fatal(map[bool]string{
			true:  fmt.Sprintf("%s can be made, but the suite declares the platform Spared", fault),
			false: fmt.Sprintf("%s cannot be made, but the suite does not declare the platform Spared", fault),
		}[armed])
	}
	if spared {
		r.t.Skipf("declared: this platform is spared %s", fault)
	}
}
