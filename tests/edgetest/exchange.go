package edgetest

import (
	"strings"
	"testing"
)

// Exchange is a request with the expected response.
type Exchange struct {
	As                 string // the session that sends it
	Method, Path, Body string
	Status             int
	Parts              []string // that the response's body must contain
	Calls              []string // of use cases; see World.WantCalls
}

// CheckExchanges sends the requests to one Service and checks the responses. Each request names
// another host, which no response may contain.
func CheckExchanges(t *testing.T, all []Exchange) {
	t.Helper()
	s := New(t, nil)
	for _, e := range all {
		headers := []string{"auth", e.As, "Host", "evil.test", "X-Forwarded-Host", "evil.test"}
		if e.Body != "" {
			headers = append(headers, "Content-Type", "application/json")
		}
		a := s.Call(t, e.Method, e.Path, e.Body, headers...)
		if a.Status != e.Status {
			t.Errorf("%s %s %s: answered %d %s, want %d", e.Method, e.Path, e.Body, a.Status, a.Body, e.Status)
		}
		for _, part := range e.Parts {
			if !strings.Contains(a.Body, part) {
				t.Errorf("%s %s %s: answered %s, want it to contain %s", e.Method, e.Path, e.Body, a.Body, part)
			}
		}
		if strings.Contains(a.Body, "evil.test") {
			t.Errorf("%s %s: the answer has the host of the request: %s", e.Method, e.Path, a.Body)
		}
		s.WantCalls(t, e.Calls...)
	}
}
