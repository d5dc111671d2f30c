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

// A response from a server other than the sandbox does not prove that the post was refused; see
// FromStatus.
func TestCommit_ResponseFromAnotherServerIsNotARefusal(t *testing.T) {
	t.Parallel()
	const own = `{"error":{"code":"not_found","message":"There is nothing here."}}`
	for name, tc := range map[string]struct {
		status int
		body   string
		want   connector.Kind
	}{
		"404 of the sandbox":   {status: 404, body: own, want: connector.KindContent},
		"404 with a page":      {status: 404, body: "<html>", want: connector.KindTransient},
		"405 without a body":   {status: 405, body: "", want: connector.KindTransient},
		"307 without a body":   {status: 307, body: "", want: connector.KindTransient},
		"303 after publishing": {status: 303, body: own, want: connector.KindUnknown},
		"403 with a page":      {status: 403, body: "<html>", want: connector.KindUnknown},
		"200 with a page":      {status: 200, body: "<html>", want: connector.KindUnknown},
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
