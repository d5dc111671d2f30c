// Package edgetest runs the edge's HTTP server for tests, with fakes in place of the use cases.
//
//	s := edgetest.New(t, nil)
//	a := s.CallAPI(t, "GET", "/public/v1/is-connected", "")
//	edgetest.Want(t, a, 200, `{"connected":true}`)
package edgetest

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/apps/edge"
	"crier/platform/clock"
	"crier/platform/env"
	"crier/tests/syncbuffer"
)

// BaseURL is the BASE_URL of a Service unless a test sets another one.
const BaseURL = "http://crier.test"

// shutdownTime limits how long a server may take to shut down.
const shutdownTime = 5 * time.Second

// Service is a running edge with the use cases of a World.
type Service struct {
	*World
	*edge.Server
	URL    string // of the listener, without a trailing slash
	Log    *syncbuffer.Buffer
	Client *http.Transport // keeps connections to the listener alive
}

// New serves an edge on a free port of this machine until the test ends. vars are added to its
// environment, and each change may replace its ports.
func New(t testing.TB, vars map[string]string, change ...func(*edge.Deps)) *Service {
	t.Helper()
	all := map[string]string{"BASE_URL": BaseURL}
	maps.Copy(all, vars)
	var cfg edge.Config
	if err := env.Load(t.Context(), func(name string) (string, bool) {
		v, ok := all[name]
		return v, ok
	}, &cfg); err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	log := &syncbuffer.Buffer{}
	deps := edge.Deps{
		Posts: posts{World: w}, Queue: queue{World: w}, Channels: Channels{World: w}, Slots: slots{World: w},
		Tags: tags{}, Media: media{World: w}, Analytics: Analytics{World: w},
		Webhooks: webhooks{World: w}, Approvals: approvals{World: w}, Notifications: notifications{World: w},
		Accounts: accounts{World: w}, Plans: plans{}, Limiter: limiter{World: w}, Health: health{World: w},
		Log: slog.New(slog.NewTextHandler(log, nil)), Metrics: prometheus.NewRegistry(), Version: "test",
		Clock: clock.Func(func() time.Time { return clock.System{}.Now().Add(time.Duration(w.Skew.Load())) }),
	}
	for _, c := range change {
		c(&deps)
	}
	s, err := edge.New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	address, stop, err := Serve(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
	client := &http.Transport{}
	t.Cleanup(client.CloseIdleConnections)
	return &Service{World: w, Server: s, URL: "http://" + address, Log: log, Client: client}
}

// Serve serves s on a free port of this machine and returns the address. stop shuts the server down
// and returns the errors of Shutdown and Listen.
func Serve(s *edge.Server) (address string, stop func() error, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	done := make(chan error, 1)
	go func() { done <- s.Listen(ln) }()
	return ln.Addr().String(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		return errors.Join(s.Shutdown(ctx), <-done)
	}, nil
}
