package sandbox_test

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/connector/conformance"
	"crier/publishing/connector/sandbox"
)

var broken = flag.String("sandbox.broken", "", "run the suite with this mistake in the connector or the declaration")

// lazy is a connector whose Prepare does nothing.
type lazy struct{ *sandbox.Connector }

func (lazy) Prepare(context.Context, *connector.Session, connector.Item) (connector.Step, error) {
	return connector.Step{Ready: true}, nil
}

// The suite must skip a case because of the declaration, never because of what the connector did in
// the run.
func TestSuite_FailsWhenDeclarationAndConnectorDiffer(t *testing.T) {
	t.Parallel()
	if *broken != "" {
		runBroken(t)
		return
	}
	for way, want := range map[string]string{
		"lazy":        "Prepare calls no server, but the suite does not declare it Offline",
		"not offline": "Reconcile calls a server, but the suite declares it Offline",
		"not spared":  "429 without a Retry-After can be made, but the suite declares the platform Spared",
		"lasting":     "the suite says that its access lasts: true",
		"key only":    "the descriptor says KeyOnly true, the suite false",
		"grade":       "the account has the grade A, the suite declares C",
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			child := exec.CommandContext(t.Context(), self, "-test.run", "^"+strings.Split(t.Name(), "/")[0]+"$", "-sandbox.broken", way)
			out, err := child.CombinedOutput()
			if err == nil || !strings.Contains(string(out), want) {
				t.Errorf("the suite ended with %v, want a failure with %q:\n%s", err, want, out)
			}
		})
	}
}

func runBroken(t *testing.T) {
	w := open(t)
	s := conformance.Suite{
		New: w.connector, Allow: []string{w.host}, Published: w.published, Grade: publishing.GradeIdempotent, KeyOnly: true,
		Fields: func(*testing.T) map[string]string { return w.form(publishing.GradeIdempotent) },
	}
	switch *broken {
	case "lazy":
		s.New = func() connector.Connector { return lazy{Connector: w.connector().(*sandbox.Connector)} }
	case "not offline":
		s.Offline = []conformance.Method{conformance.MethodReconcile}
	case "not spared":
		s.Spared = []conformance.Fault{conformance.RateLimitBare}
	case "lasting":
		s.Lasting = true
	case "key only":
		s.KeyOnly = false
	case "grade":
		s.Grade = publishing.GradeMarked
	}
	conformance.Run(t, s)
}
