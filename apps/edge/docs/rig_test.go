package docs_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/apps/edge"
	"crier/apps/edge/docs"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/tests/edgetest"
)

// site is the address of the server that all tests of this package share, because rendering the
// pages takes longer than a test.
var site string

func TestMain(m *testing.M) {
	code, err := serve(m.Run)
	if err != nil {
		slog.Error("The server of the tests failed.", "error", err)
		code = 1
	}
	os.Exit(code)
}

// serve runs a server without use cases, which the documentation does not call, until run returns.
func serve(run func() int) (code int, err error) {
	var cfg edge.Config
	variables := map[string]string{"BASE_URL": "http://crier.test"}
	get := func(name string) (string, bool) { v, ok := variables[name]; return v, ok }
	if err := env.Load(context.Background(), get, &cfg); err != nil {
		return 0, err
	}
	s, err := edge.New(cfg, edge.Deps{
		Health: healthy{}, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Version: "test",
		Clock: clock.System{}, Limits: docs.InstanceLimits{IdempotencyKeys: 48 * time.Hour, Deliveries: 30 * 24 * time.Hour},
	})
	if err != nil {
		return 0, err
	}
	address, stop, err := edgetest.Serve(s)
	if err != nil {
		return 0, err
	}
	site = "http://" + address
	code = run()
	client.CloseIdleConnections()
	return code, stop()
}

// healthy is a service whose dependencies answer.
type healthy struct{}

func (healthy) Check(context.Context) (map[string]string, bool) { return map[string]string{}, true }

// client does not decompress responses.
var client = &http.Transport{DisableCompression: true}

type answer struct {
	status int
	header http.Header
	body   string
}

// get reads a page. headers are pairs of names and values.
func get(t testing.TB, path string, headers ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, site+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := client.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: resp.StatusCode, header: resp.Header, body: string(b)}
}

func want(t *testing.T, a answer, status int, parts ...string) {
	t.Helper()
	if a.status != status {
		t.Errorf("got %d, want %d: %s", a.status, status, a.body)
	}
	for _, p := range parts {
		if !strings.Contains(a.body, p) {
			t.Errorf("got %s, want it to contain %q", a.body, p)
		}
	}
}

func decode[T any](t *testing.T, body string) (out T) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		t.Fatalf("got %.200q, want JSON of %T: %v", body, out, err)
	}
	return out
}
