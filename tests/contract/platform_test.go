package contract

import (
	"maps"
	"strings"
	"testing"

	"crier/tests/sandboxtest"
)

func (r *rig) judge() sandboxtest.Judge { return sandboxtest.Judge{URL: r.sandbox} }

// fault scripts a fault of the sandbox for one account.
func (r *rig) fault(t *testing.T, c channel, action string, match, more m) {
	t.Helper()
	fault := m{"match": match, "action": action}
	maps.Copy(fault, more)
	if _, err := r.judge().Fault(t.Context(), c.account, fault); err != nil {
		t.Fatal(err)
	}
}

// published returns the posts that an account has on the sandbox, oldest first.
func (r *rig) published(t *testing.T, c channel) []sandboxtest.Post {
	t.Helper()
	out, err := r.judge().Posts(t.Context(), c.account)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// texts returns the texts that an account has published, oldest first and separated by " | ".
func (r *rig) texts(t *testing.T, c channel) string {
	t.Helper()
	var out []string
	for _, p := range r.published(t, c) {
		out = append(out, p.Text)
	}
	return strings.Join(out, " | ")
}

// wantTexts ends the test unless an account has published these texts, oldest first and separated
// by " | ".
func (r *rig) wantTexts(t *testing.T, c channel, want string) {
	t.Helper()
	if got := r.texts(t, c); got != want {
		t.Fatalf("published is %q, want %q", got, want)
	}
}

// publishes waits until an account has published n posts.
func (r *rig) publishes(t *testing.T, c channel, n int) {
	t.Helper()
	eventually(t, "posts on the platform", func() bool { return len(r.published(t, c)) == n },
		func() any { return r.texts(t, c) })
}
