package signin

import (
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/outbound"
	"crier/tests/oidctest"
)

const (
	clientID     = oidctest.ClientID
	clientSecret = oidctest.ClientSecret
	redirectURI  = "https://app.example/callback"
)

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatalf("generate a key: %v", err)
	}
	return key
}

// provider is a real OpenID provider on loopback.
type provider struct {
	*server
	*oidctest.Provider
}

func startProvider(t *testing.T) *provider {
	t.Helper()
	s := newServer(t)
	p := &provider{server: s, Provider: oidctest.New(t, s.url, redirectURI)}
	s.mux.Handle("/", p.Provider)
	return p
}

// signIn does what a person does in the browser and returns the query of the callback.
func (p *provider) signIn(t *testing.T, start Start, person string) url.Values {
	t.Helper()
	query := p.SignIn(t, start.URL, person)
	if query.Get("state") != start.State {
		t.Fatalf("got the callback %v, want the state %s", query, start.State)
	}
	return query
}

// server is an HTTP server on loopback whose paths can be made to hang.
type server struct {
	url     string
	mux     *http.ServeMux
	hangs   atomic.Pointer[string] // the path that hangs
	arrived chan string            // the paths of all requests

	mu   sync.Mutex
	seen map[string]int // requests by path
}

func newServer(t *testing.T) *server {
	t.Helper()
	s, stop := &server{mux: http.NewServeMux(), arrived: make(chan string, 256), seen: map[string]int{}}, make(chan struct{})
	listening := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.count(r.URL.Path)
		if path := s.hangs.Load(); path != nil && *path == r.URL.Path {
			<-stop
			return
		}
		s.mux.ServeHTTP(w, r)
	}))
	t.Cleanup(listening.Close)
	t.Cleanup(func() { close(stop) })
	s.url = listening.URL
	return s
}

func (s *server) count(path string) {
	s.mu.Lock()
	s.seen[path]++
	s.mu.Unlock()
	s.arrived <- path
}

// requests returns how many requests arrived at paths with the suffix.
func (s *server) requests(suffix string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for path, count := range s.seen {
		if strings.HasSuffix(path, suffix) {
			n += count
		}
	}
	return n
}

// await waits for a request to the path.
func (s *server) await(t *testing.T, path string) {
	t.Helper()
	for {
		select {
		case got := <-s.arrived:
			if got == path {
				return
			}
		case <-t.Context().Done():
			t.Fatalf("no request for %s came", path)
		}
	}
}

func (s *server) hang(path string) { s.hangs.Store(&path) }

// openProviders returns providers that reach the servers that cfg names.
func openProviders(t *testing.T, cfg Config, limit time.Duration) *Providers {
	t.Helper()
	p, err := newProviders(cfg, outbound.Deps{}, clock.System{}, limit)
	if err != nil {
		t.Fatalf("providers: %v", err)
	}
	t.Cleanup(p.Close)
	return p
}

func generic(s *server) Config { return Config{Issuer: s.url, ID: clientID, Secret: clientSecret} }

func begin(t *testing.T, p *Providers, provider Provider) Start {
	t.Helper()
	start, err := p.Begin(t.Context(), provider, redirectURI)
	if err != nil {
		t.Fatalf("Begin: %v", err)
	}
	return start
}

func callback(start Start, code string) Callback {
	return Callback{Code: code, RedirectURI: redirectURI, Verifier: start.Verifier, Nonce: start.Nonce}
}

// wantFault checks the kind and the message of an error, and that it contains none of the hidden
// texts.
func wantFault(t *testing.T, err error, kind fault.Kind, message string, hidden ...string) {
	t.Helper()
	var f *fault.Error
	if !errors.As(err, &f) || f.Kind != kind || !strings.Contains(f.Message, message) {
		t.Fatalf("got the error %v, want %s with %q", err, kind, message)
	}
	for _, text := range append(hidden, clientSecret) {
		if text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("the error %v contains %q, want it left out", err, text)
		}
	}
}
