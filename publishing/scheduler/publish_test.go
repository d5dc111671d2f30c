package scheduler_test

import (
	"context"
	"testing"
	"time"

	"crier/platform/secret"
	"crier/publishing/connector"
	"crier/publishing/scheduler/dispatch"
)

// overloaded is a platform on which every request fails temporarily.
type overloaded struct{ *platform }

func (overloaded) Prepare(context.Context, *connector.Session, connector.Item) (connector.Step, error) {
	return connector.Step{}, &connector.Error{Kind: connector.KindTransient, Public: "Try again later."}
}

// A post must not be given up because its platform fails right after the operator has corrected the
// settings, or because another process that has the platform has not claimed the post yet.
func TestSend_DoesNotCountTimeWithWrongSettings(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	org := r.organization()
	post := org.book(org.channel, time.Second)
	registry, err := connector.NewRegistry(overloaded{platform: r.platform})
	r.OK(err)
	key, err := secret.GenerateKey()
	r.OK(err)
	wrong, err := secret.NewKeyring([]string{key})
	r.OK(err)
	none, err := connector.NewRegistry()
	r.OK(err)
	for try, has := range []struct {
		keys      *secret.Keyring
		platforms *connector.Registry
	}{
		{keys: r.deps.Keyring, platforms: registry},
		{keys: wrong, platforms: registry},
		{keys: r.deps.Keyring, platforms: none},
		{keys: r.deps.Keyring, platforms: registry},
	} {
		r.deps.Keyring, r.deps.Connectors = has.keys, has.platforms
		if out := org.send(nil, nil); out.Result != dispatch.ResultRetry {
			t.Fatalf("try %d: got %q, %s, want %q", try, out.Result, out.Error, dispatch.ResultRetry)
		}
		r.Clock(`update post set not_before = null, failing_since = failing_since - interval '1 hour' where id = $1`, post)
	}
}
