package conformance

import (
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/platform/outbound"
	"crier/publishing"
	"crier/publishing/connector"
)

// rig is the state of one case: a connector with its own Line and a session.
type rig struct {
	Suite
	t       *testing.T
	c       connector.Connector
	line    *Line
	faults  Faults
	s       *connector.Session
	secrets []string
}

// unconnected returns a rig whose session has no account and no credential.
func (s Suite) unconnected(t *testing.T) *rig {
	t.Helper()
	r := &rig{Suite: s, t: t, c: s.New(), line: NewLine(t, s.Allow...)}
	r.faults = r.line
	if s.Faults != nil {
		r.faults = s.Faults(t)
	}
	r.s = &connector.Session{Env: connector.Env{HTTP: r.line, Clock: clock.System{}}}
	if s.OAuth != nil {
		r.s.App = s.OAuth.App
	}
	return r
}

// connected returns a rig with a session from a new sign-in.
func (s Suite) connected(t *testing.T) *rig {
	t.Helper()
	r := s.unconnected(t)
	var fields map[string]string
	if s.OAuth == nil {
		fields = s.Fields(t)
	}
	done := s.open(t, r, fields)
	r.s.Account, r.s.Credential = done.Account, done.Credential
	r.secrets = append(r.secrets, secretsOf(r.c.Describe(), fields, done)...)
	return r
}

// onShared returns a rig with a session for the account that the cases share. They share one
// account because platforms limit sign-ins and because hashing a password is slow.
func (s Suite) onShared(t *testing.T) *rig {
	t.Helper()
	if s.shared.account.ID == "" {
		first := s.connected(t)
		*s.shared = sharedAccount{account: first.s.Account, credential: first.s.Credential, secrets: first.secrets}
	}
	r := s.unconnected(t)
	r.s.Account, r.s.Credential, r.secrets = s.shared.account, s.shared.credential, s.shared.secrets
	// the case may refresh the credential
	t.Cleanup(func() { s.shared.credential, s.shared.secrets = r.s.Credential, r.secrets })
	return r
}

// sharedAccount is set by the first case that needs it.
type sharedAccount struct {
	account    connector.Account
	credential json.RawMessage
	secrets    []string
}

// grade returns the declared grade. The connect case checks that the account has this grade.
func (r *rig) grade() publishing.Grade { return r.Suite.Grade }

// item returns a publication whose text is unique on the platform.
func (r *rig) item(media ...connector.Media) connector.Item {
	now := r.s.Clock.Now().Truncate(time.Millisecond)
	item := connector.Item{Due: now, CreatedAt: now, Media: media, Settings: r.Settings}
	renew(&item.Publication)
	item.Text = "Conformance " + item.Publication.String()
	return item
}

func renew[T any](v *id.ID[T]) { *v = id.New[T]() }

func (r *rig) prepared(media ...connector.Media) connector.Item {
	r.t.Helper()
	return r.prepare(r.item(media...))
}

// prepare calls Prepare until the Step is Ready and checks every step.
func (r *rig) prepare(item connector.Item) connector.Item {
	r.t.Helper()
	item, err := Prepare(r.t.Context(), watched{Connector: r.c, r: r}, r.s, item)
	if err != nil {
		r.t.Fatalf("Prepare: %v", err)
	}
	return item
}

// commit sets item.Committing and calls Commit once. It checks the calls that Commit makes, and its
// result.
func (r *rig) commit(item *connector.Item) (connector.Ref, error) {
	r.t.Helper()
	before := r.line.counted()
	item.Committing = r.s.Clock.Now()
	ctx := r.t.Context()
	if r.grade().Deduplicates() { // as the registry does
		ctx = outbound.WithKeptConnections(ctx)
	}
	ref, err := r.c.Commit(ctx, r.s, *item)
	if n := r.line.counted().since(before); n.commits > 1 || n.writes > 0 {
		r.t.Errorf("Commit made %d irreversible calls by HTTP.Commit and %d by HTTP.Do, want at most one and none",
			n.commits, n.writes)
	}
	if err != nil {
		r.judgeError("Commit", err)
		return ref, err
	}
	r.judgeRef(ref)
	return ref, nil
}

// reconcile calls Reconcile and checks that Reconcile changes nothing on the platform.
func (r *rig) reconcile(item connector.Item) (connector.Verdict, error) {
	r.t.Helper()
	before := r.line.counted()
	v, err := r.c.Reconcile(r.t.Context(), r.s, item)
	if n := r.line.counted().since(before); n.commits > 0 || n.writes > 0 {
		r.t.Errorf("Reconcile changed the platform: %d calls by HTTP.Commit, %d by HTTP.Do", n.commits, n.writes)
	}
	if err != nil {
		r.judgeError("Reconcile", err)
		return v, err
	}
	outcomes := []connector.Outcome{connector.Published, connector.NotPublished, connector.CannotTell}
	if !slices.Contains(outcomes, v.Outcome) {
		r.t.Errorf("Reconcile returns the unknown outcome %q", v.Outcome)
	}
	if v.Outcome == connector.Published {
		r.judgeRef(v.Ref)
	}
	return v, nil
}

// published returns the posts on the platform that have the item's text.
func (r *rig) published(item connector.Item) []Seen {
	r.t.Helper()
	text := item.Text
	if r.Rendered != nil {
		text = r.Rendered(item)
	}
	var out []Seen
	for _, seen := range r.Published(r.t, r.s.Account) {
		if seen.Text == text {
			out = append(out, seen)
		}
	}
	return out
}

// want checks that an item has exactly count posts on the platform, and returns those posts.
func (r *rig) want(count int, item connector.Item) []Seen {
	r.t.Helper()
	seen := r.published(item)
	if len(seen) != count {
		r.t.Fatalf("the platform has %d posts of this publication, want %d", len(seen), count)
	}
	return seen
}

// judgeError checks that an error is a *connector.Error of a known kind, with a public message and
// no secret.
func (r *rig) judgeError(call string, err error) {
	r.t.Helper()
	var e *connector.Error
	if !errors.As(err, &e) || e.Public == "" {
		r.t.Errorf("%s: got %v, want a *connector.Error with a public message", call, err)
		return
	}
	kinds := []connector.Kind{
		connector.KindReauth, connector.KindDisconnect, connector.KindContent,
		connector.KindTransient, connector.KindUnknown, connector.KindOperator,
	}
	if !slices.Contains(kinds, e.Kind) {
		r.t.Errorf("%s: got the unknown kind %q", call, e.Kind)
	}
	r.noSecret(call+"'s error", err.Error()+e.Public+e.Raw)
}

// judgeRef checks that a Ref has an ID, an absolute URL or none, valid Data, and no secret.
func (r *rig) judgeRef(ref connector.Ref) {
	r.t.Helper()
	if ref.ID == "" {
		r.t.Error("the Ref has no ID")
	}
	if u, err := url.Parse(ref.URL); err != nil || ref.URL != "" && !u.IsAbs() {
		r.t.Errorf("the Ref's URL %q is not absolute", ref.URL)
	}
	if len(ref.Data) > 0 && !json.Valid(ref.Data) {
		r.t.Errorf("the Ref's Data is not JSON: %s", ref.Data)
	}
	r.noSecret("the Ref", ref.ID+ref.URL+string(ref.Data))
}

func (r *rig) noSecret(where, text string) {
	r.t.Helper()
	for _, secret := range r.secrets {
		if strings.Contains(text, secret) {
			r.t.Errorf("%s contains a secret", where)
		}
	}
}
