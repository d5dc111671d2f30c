package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// NewRegistry returns a registry with metrics for the Go runtime and the process. Packages register
// their own metrics.
func NewRegistry() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// Route is an additional route of a Listener. Pattern is an http.ServeMux pattern. Example:
// "GET /monitor/queue/{name}"
type Route struct {
	Pattern string
	Handler http.Handler
}

// Listener serves /metrics, /health and /debug/pprof/ on a private network listener, without
// authentication.
type Listener struct {
	ln     net.Listener
	server *http.Server
	done   chan struct{}
}

// Serve returns a Listener that serves on ln until Stop, which closes ln.
//
// If ln is on loopback, requests whose Host is neither localhost nor an IP address get a 403.
// Otherwise, a web page in a browser on this machine could read profiles through a domain name that
// resolves to 127.0.0.1.
func Serve(ln net.Listener, reg *prometheus.Registry, health *Health, log *slog.Logger, more ...Route) *Listener {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{Registry: reg}))
	mux.Handle("GET /health", answerHealth(health, log))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.Handle("GET /debug/pprof/cmdline", http.NotFoundHandler()) // arguments may contain secrets
	for _, r := range more {
		mux.Handle(r.Pattern, r.Handler)
	}
	l := &Listener{ln: ln, done: make(chan struct{}), server: &http.Server{
		Handler:           guarded(ln, mux),
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}
	go func() {
		defer close(l.done)
		if err := l.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			log.Error("metrics listener ended", "error", err)
		}
	}()
	return l
}

// guarded wraps next with a check of the Host header if ln is on loopback.
func guarded(ln net.Listener, next http.Handler) http.Handler {
	if at, ok := ln.Addr().(*net.TCPAddr); !ok || !at.IP.IsLoopback() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocalName(r.Host) {
			http.Error(w, "Use localhost or an IP address: this listener has no other name.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLocalName reports whether a Host header, with or without a port, is an IP address or localhost.
// An empty header counts as local: HTTP/1.0 permits it, and browsers never send it.
func isLocalName(host string) bool {
	u := url.URL{Host: host}
	name := u.Hostname()
	_, err := netip.ParseAddr(name)
	return host == "" || strings.EqualFold(name, "localhost") || err == nil
}

func answerHealth(health *Health, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		checks, healthy := health.Check(r.Context())
		w.Header().Set("Content-Type", "application/json")
		if !healthy {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		if err := json.NewEncoder(w).Encode(map[string]any{"checks": checks}); err != nil {
			log.WarnContext(r.Context(), "health response not sent", "error", err)
		}
	})
}

// Addr returns the listener's host:port. If port 0 was configured, Addr returns the actual port.
func (l *Listener) Addr() string { return l.ln.Addr().String() }

// Stop waits for active requests. If ctx ends first, it closes their connections and returns ctx's
// error, joined with any error from closing.
func (l *Listener) Stop(ctx context.Context) error {
	err := l.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, l.server.Close())
	}
	<-l.done
	return err
}
