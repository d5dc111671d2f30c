package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/platform/fault"
)

func logger(t *testing.T, format string) (*slog.Logger, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	log, err := NewLogger(&out, format, slog.LevelInfo)
	if err != nil {
		t.Fatal(err)
	}
	return log, &out
}

func TestNewLogger_WritesRequestIDInEachFormat(t *testing.T) {
	t.Parallel()
	ctx := WithRequestID(t.Context(), "r-1")
	for _, format := range []string{"json", "auto"} {
		log, out := logger(t, format)
		log.With("a", 1).InfoContext(ctx, "hello")
		log.DebugContext(ctx, "unseen")
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%s is not one JSON line: %v", out, err)
		}
		if line["request_id"] != "r-1" || line["msg"] != "hello" || line["a"] != 1.0 {
			t.Errorf("got %v, want the message, the attribute and the request id", line)
		}
	}
	log, out := logger(t, "text")
	log.Info("hello")
	if got := out.String(); !strings.Contains(got, "level=INFO msg=hello") || strings.Contains(got, "request_id") {
		t.Errorf("got %q, want the message as text and no request id", got)
	}
	if _, err := NewLogger(io.Discard, "xml", slog.LevelInfo); err == nil || RequestID(t.Context()) != "" {
		t.Errorf("an unknown format: got %v and the request id %q, want an error and none", err, RequestID(t.Context()))
	}
}

func TestLog_HidesSecrets(t *testing.T) {
	t.Parallel()
	const s = "s3cr3tvalue"
	for _, format := range []string{"json", "text"} {
		log, out := logger(t, format)
		for _, key := range []string{
			"Authorization", "password", "access_token", "client_secret", "api_key", "apiKey", "Set-Cookie", "token", "private-key",
		} {
			log.Info("m", key, s)
			log.With(key, s).WithGroup("g").Info("m", slog.Group("h", key, s))
		}
		log.Info("get https://u:" + s + "@h/p?fields=id&access_token=" + s + "&x=1")
		log.Info("m", "header", "Bearer "+s, "url", "https://h/?code="+s, "dsn", "postgres://crier:"+s+"@db/crier")
		log.Info("m", "error", fmt.Errorf("Get %q: %w", "https://h/?oauth_token="+s, io.EOF))
		if strings.Contains(out.String(), s) {
			t.Errorf("%s: got %s, want no secret", format, out)
		}
	}
	log, out := logger(t, "json")
	log.Info("plain", "monkey", "kept", "tokens", 5, "url", "https://h/?fields=kept")
	if got := out.String(); strings.Count(got, "kept") != 2 || strings.Contains(got, redacted) {
		t.Errorf("got %q, want nothing hidden", got)
	}
}

func TestListener_ServesMetricsAndProfiles(t *testing.T) {
	t.Parallel()
	reg := NewRegistry()
	posts := prometheus.NewCounter(prometheus.CounterOpts{Name: "crier_posts_total", Help: "Posts."})
	reg.MustRegister(posts)
	posts.Add(3)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := Serve(ln, reg, NewHealth(time.Second, nil), slog.New(slog.DiscardHandler))
	client := &http.Client{Transport: &http.Transport{}}
	for path, want := range map[string]string{
		"/metrics": "crier_posts_total 3\n", "/metrics?": "go_goroutines ", "/debug/pprof/": "goroutine", "/debug/pprof/goroutine?debug=1": "goroutine profile",
		"/debug/pprof/cmdline": "404", "/": "404",
	} {
		resp, err := client.Get("http://" + l.Addr() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		err = errors.Join(err, resp.Body.Close())
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: got status %d, %v; want a body with %q", path, resp.StatusCode, err, want)
		}
	}
	client.CloseIdleConnections()
	if err := l.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", l.Addr()); err == nil {
		_ = conn.Close()
		t.Error("the listener accepts connections after Stop, want none")
	}
}

// elsewhere is a listener whose address is not a loopback address.
type elsewhere struct{ net.Listener }

func (elsewhere) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 4612} }

func TestListener_OnLoopbackRefusesOtherNames(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	discard := slog.New(slog.DiscardHandler)
	own := Serve(ln, NewRegistry(), NewHealth(time.Second, nil), discard)
	other := Serve(elsewhere{Listener: open}, NewRegistry(), NewHealth(time.Second, nil), discard)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	status := func(at net.Listener, host string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+at.Addr().String()+"/debug/pprof/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	for host, want := range map[string]int{
		"127.0.0.1:4612": 200, "127.0.0.1": 200, "localhost": 200, "LOCALHOST:4612": 200, "[::1]:4612": 200, "[::1]": 200, "10.0.0.1": 200,
		"evil.test": 403, "evil.test:4612": 403, "localhost.evil.test": 403, "127.0.0.1.evil.test:80": 403, "evil": 403,
	} {
		if got := status(ln, host); got != want {
			t.Errorf("host %q on loopback: got %d, want %d", host, got, want)
		}
	}
	if got := status(open, "crier-0.internal:4612"); got != 200 {
		t.Errorf("a name on another address: got %d, want 200", got)
	}
	for _, l := range []*Listener{own, other} {
		if err := l.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestHealth_ReportsEachCheck(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h := NewHealth(time.Second, slog.New(slog.NewTextHandler(&out, nil)))
	if answers, healthy := h.Check(t.Context()); len(answers) != 0 || !healthy || h.Ready() {
		t.Fatalf("without checks: got %v, healthy %t, want none, true and not ready", answers, healthy)
	}
	release := make(chan struct{})
	defer close(release)
	h.Add("replaced", func(context.Context) error { return io.EOF })
	h.Add("replaced", func(context.Context) error { return nil })
	h.Add("private", func(context.Context) error { return errors.New("dial 10.0.0.1: refused") })
	h.Add("public", func(context.Context) error {
		return fault.Wrap(fault.Unavailable, "op", "The database is starting.", errors.New("hidden cause"))
	})
	h.Add("slow", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	h.Add("hanging", func(context.Context) error { <-release; return nil })
	if answers, healthy := h.Check(t.Context()); healthy || answers["private"] != "Not checked yet." {
		t.Errorf("before the first run: got %v, healthy %t, want failures", answers, healthy)
	}
	h.Refresh()
	answers, healthy := h.Check(t.Context())
	want := map[string]string{
		"replaced": "ok", "private": "Not reachable.", "public": "The database is starting.", "slow": "No response within 1s.", "hanging": "No response within 1s.",
	}
	if !maps.Equal(answers, want) || healthy {
		t.Errorf("got %v, healthy %t, want %v, false", answers, healthy, want)
	}
	if !strings.Contains(out.String(), "10.0.0.1") || !strings.Contains(out.String(), "hidden cause") {
		t.Errorf("got the log %q, want the causes", out.String())
	}
	for _, ready := range []bool{true, false} {
		if h.SetReady(ready); h.Ready() != ready {
			t.Errorf("Ready: got %t, want %t", h.Ready(), ready)
		}
	}
}
