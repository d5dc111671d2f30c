package faultnet

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestBalancer_ConnectsOnlyToHealthyServers(t *testing.T) {
	t.Parallel()
	status := func(code int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	sick, one, two := status(http.StatusServiceUnavailable), status(http.StatusOK), status(http.StatusOK)
	b := Balance(t.Context(), func() []string { return []string{sick, one, two, "127.0.0.1:1"} })
	seen := map[string]int{}
	for range 4 {
		c, err := b.Dial(t.Context(), "tcp", "")
		if err != nil {
			t.Fatal(err)
		}
		seen[c.RemoteAddr().String()]++
		_ = c.Close() // nothing was sent
	}
	if seen[one] != 2 || seen[two] != 2 {
		t.Errorf("got connections %v, want 2 for each healthy server", seen)
	}
}
