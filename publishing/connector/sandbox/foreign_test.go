package sandbox_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/connector/conformance"
	"crier/publishing/connector/sandbox"
)

// What answers in the place of the sandbox decides nothing about the post; FromStatus has the rule.
func TestCommit_ForeignAnswerIsNoRefusal(t *testing.T) {
	t.Parallel()
	const own = `{"error":{"code":"not_found","message":"There is nothing here."}}`
	for name, tc := range map[string]struct {
		status int
		body   string
		want   connector.Kind
	}{
		"its own 404":           {404, own, connector.KindContent},
		"a page as 404":         {404, "<html>", connector.KindTransient},
		"an empty 405":          {405, "", connector.KindTransient},
		"a redirect to another": {307, "", connector.KindTransient},
		"a redirect after work": {303, own, connector.KindUnknown},
		"a page as 403":         {403, "<html>", connector.KindUnknown},
		"a page as 200":         {200, "<html>", connector.KindUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			t.Cleanup(server.Close)
			line := conformance.NewLine(t, server.Listener.Addr().String())
			s := &connector.Session{
				Env:        connector.Env{HTTP: line, Clock: clock.System{}},
				Account:    connector.Account{Grade: publishing.GradeIdempotent},
				Credential: json.RawMessage(`{"service":"` + server.URL + `"}`),
			}
			_, err := sandbox.New(sandbox.Config{}).Commit(t.Context(), s, item("text"))
			if err == nil || connector.KindOf(err, true) != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}
