// Package conformance is the test suite for all connectors. It publishes through a connector as the
// engine does, injects faults, simulates crashes, and counts the posts that the platform actually
// has.
package conformance

import (
	"encoding/json"
	"testing"

	"crier/publishing"
	"crier/publishing/connector"
)

// Suite is the input to Run. The cases run one after another. Most cases share one account, so no
// two cases publish the same text.
type Suite struct {
	// New returns the connector. It is called again after every simulated crash.
	New func() connector.Connector
	// Allow lists the host:port addresses that the connector must be able to reach
	// (OUTBOUND_ALLOW). Example: 127.0.0.1:4009
	Allow []string
	// Fields returns a form that Connect accepts; nil for an Authorizer.
	Fields func(t *testing.T) map[string]string
	// OAuth connects an Authorizer's accounts; nil for a connector with a form.
	OAuth *OAuth
	// BadFields are forms that Connect must reject, keyed by reason.
	BadFields map[string]map[string]string
	// Published returns all of the account's posts on the platform, oldest first. It must not use
	// the connector.
	Published func(t *testing.T, account connector.Account) []Seen

	// The following fields declare the connector's properties. Together with the descriptor, they
	// determine which cases run, regardless of what the connector does during the run. If a
	// declaration is missing or unnecessary, the suite fails.

	// Grade is the grade that Connect must give the account.
	Grade publishing.Grade
	// KeyOnly must equal Descriptor.KeyOnly.
	KeyOnly bool
	// Lasting is true if credentials do not expire. In that case, the connector must not be a
	// Refresher.
	Lasting bool
	// Offline lists the methods that never call a server.
	Offline []Method
	// Spared lists the faults that cannot occur in a Commit on this platform.
	Spared []Fault

	// The following fields are optional.

	// Rendered returns an item's text in the form in which Published returns it. If Rendered is
	// nil, Published must return the text that was sent.
	Rendered func(connector.Item) string
	// Samples maps content types to files that replace the generated ones. The content types are
	// image/png, image/jpeg and video/mp4.
	Samples map[string][]byte
	// Settings is included in every Item and Draft.
	Settings json.RawMessage
	// MaxLength is the account's length limit for one part. 0 means the descriptor's limit.
	MaxLength int
	// Faults returns the fault injector for a connector that does not publish through HTTP.Commit.
	// If it is nil, the case's Line injects the faults.
	Faults func(t *testing.T) Faults

	shared *sharedAccount
}

// Seen is a post that actually exists on the platform, regardless of what the connector reports.
type Seen struct {
	// ID equals Ref.ID.
	ID   string
	Text string
	// Alts holds the alternative text of each medium.
	Alts []string
	// MediaSHA256 holds the hash of each medium in hexadecimal. It is nil if the platform changes
	// or hides the bytes.
	MediaSHA256 []string
	// Parent is the ID of the post that this one replies to, or "".
	Parent string
	// Root is the ID of the thread's first post. It is "" for the first post itself, and on
	// platforms whose posts do not record a root.
	Root string
}

// Fault is a failure that the suite injects into an irreversible call. A Line can also inject it
// into a call to Do or Websocket.
type Fault string

// The faults. A fault marked "acts" occurs after the platform has published the post.
const (
	RefuseDial    Fault = "refused dial"           // nothing was written
	LoseRequest   Fault = "lost request"           // it was written but did not arrive
	DropAnswer    Fault = "dropped answer"         // acts
	CutAnswer     Fault = "answer cut in its body" // acts
	RateLimit     Fault = "429 with Retry-After"   // of 7 seconds
	RateLimitBare Fault = "429 without a Retry-After"
	ErrorBefore   Fault = "500 before acting"
	ErrorAfter    Fault = "500 after acting" // acts
	Expired       Fault = "401"
	Replaced      Fault = "404 of another server" // such as a proxy while the server restarts
)

func (f Fault) acts() bool { return f == DropAnswer || f == CutAnswer || f == ErrorAfter }

// Faults injects faults into irreversible calls. Line implements it for connectors that publish
// through HTTP.Commit.
type Faults interface {
	// Arm sets the fault for the next irreversible call. It returns false if the fault cannot occur
	// on the platform. Suite.Spared must list every such fault.
	Arm(t *testing.T, fault Fault) bool
}

// Run runs all cases as subtests of t. The posts it publishes stay on the platform.
func Run(t *testing.T, s Suite) {
	s.shared = &sharedAccount{}
	t.Run("declared", s.checkDeclarations)
	t.Run("describe", s.describe)
	t.Run("connect", s.connect)
	t.Run("oauth", s.oauth)
	t.Run("refresh", s.refresh)
	t.Run("validate", s.validate)
	t.Run("publish", s.publish)
	t.Run("fault in commit", s.commitFaults)
	t.Run("fault in prepare", s.prepareFaults)
	t.Run("fault in reconcile", s.reconcileFaults)
	t.Run("repeat", s.repeat)
	t.Run("crash", s.crash)
}
