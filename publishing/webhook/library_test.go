package webhook_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"crier/publishing/webhook"
	"crier/tests/standardwebhooks"
)

// asReceived returns a call with the headers that the library reads, as of its arrival.
func asReceived(c received, secret string) standardwebhooks.Call {
	out := standardwebhooks.Call{Secret: secret, Body: c.Body, Headers: map[string]string{}}
	for _, name := range []string{webhook.StandardID, webhook.StandardTimestamp, webhook.StandardSignature} {
		out.Headers[name] = c.Header.Get(name)
	}
	at, _ := strconv.ParseInt(c.Header.Get(webhook.StandardTimestamp), 10, 64)
	out.At = time.Unix(at, 0).Add(time.Second)
	return out
}

// The library that receivers use accepts every attempt at the time of the attempt, with both
// secrets of a rotation, and rejects everything else.
func TestDeliver_IsAcceptedByTheLibrary(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(500))
	r := newRig(t, x)
	w, old := r.create(x.server.URL)
	r.publish("Grüße, 世界 \"<&>\" \u2028 \U0001F600")
	r.step()
	for _, wait := range plan {
		r.wait(wait)
		r.step()
	}
	x.set(status(200))
	_, fresh, err := r.hooks.RotateSecret(r.Context(), r.org, w.ID.String(), nil)
	r.OK(err)
	r.publish("after the rotation")
	r.step()
	got := x.take()
	last := got[len(got)-1]

	var calls []standardwebhooks.Call
	for _, c := range got {
		calls = append(calls, asReceived(c, old))
	}
	calls = append(calls, asReceived(last, fresh))
	for i, problem := range standardwebhooks.Verify(t, calls...) {
		if problem != "" {
			t.Errorf("call %d: the library refuses it: %s", i+1, problem)
		}
	}

	changed, foreign, stale := asReceived(last, fresh), asReceived(got[0], fresh), asReceived(last, fresh)
	changed.Body += " "
	stale.At = stale.At.Add(6 * time.Minute)
	if problems := standardwebhooks.Verify(t, changed, foreign, stale); slices.Contains(problems, "") {
		t.Errorf("got %q for a changed body, another secret and an old timestamp, want three refusals", problems)
	}
}
