package boot

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// lines is a writer that passes each write, which is one log record, to its receiver.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

func TestStart_ChecksTheIssuerAndDoesNotWaitForIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"another issuer": {func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"issuer": "https://another.example"})
		}, "https://another.example"},
		"no answer": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "until a provider answers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			issuer := httptest.NewServer(c.answer)
			t.Cleanup(issuer.Close)
			log := make(lines, 100)
			serveWith(t, map[string]string{
				"OIDC_ISSUER": issuer.URL, "OIDC_CLIENT_ID": "id", "OIDC_CLIENT_SECRET": "secret",
			}, func(a *App) {
				a.log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			})
			for late := time.After(time.Minute); ; {
				select {
				case line := <-log:
					if !strings.Contains(line, "sign-ins") {
						continue
					}
					if !strings.Contains(line, issuer.URL) || !strings.Contains(line, c.want) {
						t.Errorf("got the warning %q, want one with the issuer and %q", line, c.want)
					}
					return
				case <-late:
					t.Fatal("got no warning within a minute, want one about the issuer")
				}
			}
		})
	}
}
