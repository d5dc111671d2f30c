package dev_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"crier/apps/edge"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/tests/edgetest"
)

// server is the address of a running server.
type server string

// start runs a server without use cases, because the pages of this package call none. change sets
// its other dependencies.
func start(t *testing.T, change func(*edge.Deps)) server {
	t.Helper()
	var cfg edge.Config
	variables := map[string]string{"BASE_URL": "http://crier.test"}
	if err := env.Load(t.Context(), func(name string) (string, bool) { v, ok := variables[name]; return v, ok }, &cfg); err != nil {
		t.Fatal(err)
	}
	deps := edge.Deps{Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(), Version: "test", Clock: clock.System{}}
	if change != nil {
		change(&deps)
	}
	s, err := edge.New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	address, stop, err := edgetest.Serve(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return server(address)
}

type answer struct {
	status int
	header http.Header
	body   string
}

// call sends a request without a client that could change its path or host, and closes the
// connection. headers are pairs of names and values.
func (s server) call(t *testing.T, method, path, host string, headers ...string) answer {
	t.Helper()
	c, err := net.Dial("tcp", string(s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	lines := ""
	for i := 0; i < len(headers); i += 2 {
		lines += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n\r\n", method, path, host, lines); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
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

// get calls the server with GET and a host name of this machine.
func (s server) get(t *testing.T, path string, headers ...string) answer {
	t.Helper()
	return s.call(t, "GET", path, "localhost:4000", headers...)
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
