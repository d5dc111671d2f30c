package channel_test

import (
	"testing"

	"crier/tests/edgetest"
)

func TestPause(t *testing.T) {
	t.Parallel()
	s := edgetest.New(t, nil)
	signed := func(method, path, body string) edgetest.Answer {
		return s.Call(t, method, path, body, "auth", edgetest.UserSession, "Content-Type", "application/json")
	}
	for path, scope := range map[string]string{"/integrations/c1/pause": "channel", "/customers/g1/pause": "customer"} {
		edgetest.Want(t, signed("PUT", path, `{"paused":true}`), 200,
			`"paused":true,"held":3,"inFlight":1,"missed":0,"posts":[{"id":"`,
			`"date":"2026-01-02T03:04:05.000Z","content":"Hello","integration":{"id":"`, `"name":"News"}`)
		s.Mu.Lock()
		if got := s.IDs[len(s.IDs)-2]; got != scope {
			t.Errorf("%s pauses the %s", path, got)
		}
		s.Mu.Unlock()
		edgetest.Want(t, signed("PUT", path, `{"paused":false}`), 200, `"paused":false`)
		edgetest.Want(t, signed("PUT", path, `{}`), 400, "paused")
		edgetest.Want(t, s.Call(t, "PUT", path, `{"paused":true}`, "Content-Type", "application/json"), 401)
	}
	// The session belongs to a member who is not an administrator.
	edgetest.Want(t, signed("PUT", "/settings/pause", `{"paused":true}`), 403, "administrator")
}
