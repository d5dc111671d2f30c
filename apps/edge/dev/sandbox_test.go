package dev_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"crier/apps/edge"
)

func TestSandbox_ServesPageOnly(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method+" "+r.URL.String()+r.Header.Get("Authorization")+r.Header.Get("Cookie"))
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("Set-Cookie", "a=b")
		_, _ = w.Write([]byte("page"))
	}))
	t.Cleanup(far.Close)
	s := start(t, func(d *edge.Deps) { d.SandboxURL = far.URL })
	a := s.get(t, "/sandbox")
	if got := a.header.Get("Location"); a.status != 302 || !strings.HasSuffix(got, "/sandbox/") {
		t.Errorf("answered %d to %q, want 302 to /sandbox/", a.status, got)
	}
	a = s.get(t, "/sandbox/?account=a", "Authorization", "key", "Cookie", "auth=session")
	want(t, a, 200, "page")
	if a.header.Get("Set-Cookie") != "" || a.header.Get("X-Content-Type-Options") != "nosniff" ||
		a.header.Get("X-Request-Id") == "" {
		t.Errorf("got the headers %v, want no cookie, nosniff, and a request id", a.header)
	}
	want(t, s.call(t, "HEAD", "/sandbox/media/abc", "localhost"), 200)
	want(t, s.get(t, "/sandbox/picture/abc"), 200)
	want(t, s.get(t, "/sandbox/style.css"), 200)
	for _, path := range []string{
		"/sandbox/api/posts", "/sandbox/_sim/posts", "/sandbox/media/..%2f_sim", "/sandbox/media/../_sim/posts",
		"/sandbox/media/a/../../api/posts", "/sandbox/media/%2e%2e", "/sandbox/x",
	} {
		if a := s.get(t, path); a.status != 404 {
			t.Errorf("%s: answered %d, want 404", path, a.status)
		}
	}
	if a := s.call(t, "POST", "/sandbox/", "localhost"); a.status != 405 {
		t.Errorf("POST: %d", a.status)
	}
	// A page of another site, served under a name that resolves to this machine.
	for _, host := range []string{"evil.test", "evil.test:4000", "localhost.evil.test"} {
		want(t, s.call(t, "GET", "/sandbox/", host), 403, "Set BASE_URL")
	}
	for _, host := range []string{"crier.test", "localhost:4000", "127.0.0.1", "192.168.1.5:4000", "[::1]:4000", "[fd00::5]:4000"} {
		want(t, s.call(t, "GET", "/sandbox/style.css", host), 200)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(asked[:min(4, len(asked))], "; "); got != "GET /?account=a; HEAD /media/abc; GET /picture/abc; GET /style.css" || len(asked) != 10 {
		t.Errorf("asked: %s", got)
	}
}

func TestSandbox_NotFoundWithoutAddress(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	want(t, s.get(t, "/sandbox"), 404)
	want(t, s.get(t, "/sandbox/"), 404)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + ln.Addr().String()
	ln.Close()
	s = start(t, func(d *edge.Deps) { d.SandboxURL = gone })
	want(t, s.get(t, "/sandbox/"), 503)
}

func TestSandbox_PageHasPolicy(t *testing.T) {
	t.Parallel()
	for own, want := range map[string]string{"": "default-src 'none'; sandbox", "default-src 'self'": "default-src 'self'"} {
		far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if own != "" {
				w.Header().Set("Content-Security-Policy", own)
			}
			_, _ = w.Write([]byte("<script>x()</script>")) // the client reports a failure
		}))
		t.Cleanup(far.Close)
		s := start(t, func(d *edge.Deps) { d.SandboxURL = far.URL })
		for _, path := range []string{"/sandbox/", "/sandbox/media/abc", "/sandbox/picture/abc"} {
			if got := s.get(t, path).header.Get("Content-Security-Policy"); got != want {
				t.Errorf("%s: the policy is %q, want %q", path, got, want)
			}
		}
	}
}
