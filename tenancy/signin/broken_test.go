package signin

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/outbound"
)

// hangLimit is the time limit of a Finish whose provider hangs.
const hangLimit = 3 * time.Second

const wellKnown = "/.well-known/openid-configuration"

func TestFinish_HangingProviderEndsAtTheLimit(t *testing.T) {
	t.Parallel()
	for _, path := range []string{wellKnown, "/oauth/token", "/keys", "/userinfo"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := startProvider(t)
			start := begin(t, openProviders(t, generic(s.server), finishLimit), ProviderGeneric)
			cb := callback(start, s.signIn(t, start, "ada").Get("code"))
			p := openProviders(t, generic(s.server), hangLimit)
			s.hang(path)
			_, err := p.Finish(t.Context(), ProviderGeneric, cb)
			wantFault(t, err, fault.Unavailable, "SSO does not respond", cb.Code, cb.Verifier)
			if !errors.Is(err, context.DeadlineExceeded) || s.requests(path) == 0 {
				t.Errorf("got the error %v after %d requests, want the deadline of a request", err, s.requests(path))
			}
		})
	}
}

func TestBegin_HangingIssuerDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	s := startProvider(t)
	s.hang(wellKnown)
	cfg := generic(s.server)
	cfg.GitHubID, cfg.GitHubSecret = "id", "secret"
	p := openProviders(t, cfg, 3*hangLimit)
	var waiting sync.WaitGroup
	for range 8 {
		waiting.Go(func() {
			_, err := p.Begin(t.Context(), ProviderGeneric, redirectURI)
			if !fault.Is(err, fault.Unavailable) {
				t.Errorf("got the error %v, want Unavailable", err)
			}
		})
	}
	s.await(t, wellKnown)
	if _, err := p.Begin(t.Context(), ProviderGitHub, redirectURI); err != nil {
		t.Errorf("Begin at GitHub while the issuer hangs: %v", err)
	}
	waiting.Wait()
	if got := s.requests(wellKnown); got != 1 {
		t.Errorf("got %d requests for the metadata, want one that all callers share", got)
	}
	s.hang("")
	begin(t, p, ProviderGeneric) // the failure is not cached
}

// TestBegin_CallerThatLeavesDoesNotEndTheFetch checks that the fetch that the first caller began
// serves the others after that caller has left.
func TestBegin_CallerThatLeavesDoesNotEndTheFetch(t *testing.T) {
	t.Parallel()
	f := startForger(t)
	f.mu.Lock() // holds back the response
	p := openProviders(t, generic(f.server), finishLimit)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := p.Begin(ctx, ProviderGeneric, redirectURI)
		left <- err
	}()
	f.await(t, wellKnown)
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v for the caller that left, want context.Canceled", err)
	}
	f.mu.Unlock()
	begin(t, p, ProviderGeneric)
	if got := f.requests(wellKnown); got != 1 {
		t.Errorf("got %d requests for the metadata, want the first one to serve both callers", got)
	}
}

func TestBegin_MetadataIsReadAgainAfterAnHour(t *testing.T) {
	t.Parallel()
	f := startForger(t)
	now := time.Now()
	p, err := New(generic(f.server), outbound.Deps{}, clock.Func(func() time.Time { return now }))
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	begin(t, p, ProviderGeneric)
	f.metadata["authorization_endpoint"] = f.url + "/moved"
	now = now.Add(maxAge - 1)
	if got := begin(t, p, ProviderGeneric).URL; !strings.HasPrefix(got, f.url+"/authorize") {
		t.Errorf("got %s within the hour, want the known endpoint", got)
	}
	now = now.Add(1)
	if got := begin(t, p, ProviderGeneric).URL; !strings.HasPrefix(got, f.url+"/moved") {
		t.Errorf("got %s after the hour, want the new endpoint", got)
	}
}

func TestBegin_UnusableMetadata(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]map[string]any{
		"no authorization endpoint":    {"authorization_endpoint": nil},
		"no token endpoint":            {"token_endpoint": ""},
		"no keys":                      {"jwks_uri": nil},
		"http on another machine":      {"token_endpoint": "http://idp.example/token"},
		"a script":                     {"authorization_endpoint": "javascript:alert(1)"},
		"no client secret":             {"token_endpoint_auth_methods_supported": []string{"private_key_jwt"}},
		"a value of another type":      {"token_endpoint": 1},
		"more than a megabyte of text": {"service_documentation": strings.Repeat("x", 10<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startForger(t)
			for key, value := range change {
				f.metadata[key] = value
			}
			p := openProviders(t, generic(f.server), finishLimit)
			_, err := p.Begin(t.Context(), ProviderGeneric, redirectURI)
			wantFault(t, err, fault.Unavailable, "SSO does not respond correctly", "alert")
		})
	}
}

func TestMetadata_EndpointsOfAnHTTPSIssuerAreHTTPS(t *testing.T) {
	t.Parallel()
	m := metadata{
		Issuer: "https://idp.example", Authorization: "https://idp.example/a", Token: "https://idp.example/t",
		Keys: "https://idp.example/k",
	}
	if got := m.reject("https://idp.example"); got != "" {
		t.Errorf("got %q for https endpoints, want no reason", got)
	}
	m.Token = "http://127.0.0.1/t"
	if got := m.reject("https://idp.example"); got == "" {
		t.Error("a token endpoint with http was accepted, want a reason")
	}
}

func TestFinish_UnusableTokenAnswer(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", 10<<20)
	for name, c := range map[string]struct {
		status  int
		body    any
		kind    fault.Kind
		message string
	}{
		"refused code":       {400, map[string]any{"error": "invalid_grant", "error_description": "code-8b2d"}, fault.Invalid, "refused"},
		"unknown error code": {400, map[string]any{"error": "code-8b2d"}, fault.Invalid, "refused"},
		"error with 200":     {200, map[string]any{"error": "invalid_grant"}, fault.Invalid, "refused"},
		"unknown client":     {401, map[string]any{"error": "invalid_client"}, fault.Unavailable, "not set up correctly"},
		"busy":               {429, map[string]any{"error": "code-8b2d"}, fault.Unavailable, "does not respond"},
		"broken":             {500, map[string]any{"error": "invalid_grant"}, fault.Unavailable, "does not respond"},
		"away for a moment":  {400, map[string]any{"error": "temporarily_unavailable"}, fault.Unavailable, "does not respond"},
		"no error code":      {400, map[string]any{"code": "code-8b2d"}, fault.Unavailable, "does not respond"},
		"not an object":      {200, "code-8b2d", fault.Unavailable, "does not respond"},
		"no access token":    {200, map[string]any{"token_type": "Bearer"}, fault.Unavailable, "does not respond"},
		"another token type": {200, map[string]any{"access_token": accessToken, "token_type": "mac"}, fault.Unavailable, "does not respond"},
		"10 MB":              {200, map[string]any{"access_token": accessToken, "token_type": "Bearer", "more": huge}, fault.Unavailable, "does not respond"},
		"10 MB of an error":  {400, map[string]any{"error": "invalid_grant", "more": huge}, fault.Unavailable, "does not respond"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startForger(t)
			_, err := f.finish(t, func(string) { f.answer(c.status, c.body) })
			wantFault(t, err, c.kind, c.message, "code-8b2d", accessToken, huge[:20])
			if got := f.requests("token"); got != 1 {
				t.Errorf("got %d token requests, want 1", got)
			}
		})
	}
}

func TestFinish_CodeIsSentOnce(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter){
		"redirected": func(w http.ResponseWriter) {
			w.Header().Set("Location", "/other-token")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"no HTTP": func(w http.ResponseWriter) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Errorf("hijack: %v", err)
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 code-8b2d\r\n\r\n"))
			_ = conn.Close()
		},
		"connection lost": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startForger(t)
			_, err := f.finish(t, func(string) { f.token = answer })
			wantFault(t, err, fault.Unavailable, "does not respond", "code-8b2d")
			if got := f.requests("token"); got != 1 {
				t.Errorf("got %d token requests, want 1", got)
			}
		})
	}
}

func TestFinish_HugeAnswersAreRefused(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat(" ", 10<<20)
	for _, endpoint := range []string{"token_endpoint", "jwks_uri", "userinfo_endpoint"} {
		t.Run(endpoint, func(t *testing.T) {
			t.Parallel()
			f := startForger(t)
			f.mux.HandleFunc("/other", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(huge)) })
			f.metadata[endpoint] = f.url + "/other"
			_, err := f.finish(t, func(nonce string) {
				claims := f.claims(nonce)
				delete(claims, "email")
				f.grant(sign(t, f.key, claims))
			})
			wantFault(t, err, fault.Unavailable, "does not respond", "code-8b2d", accessToken)
			if !errors.Is(err, outbound.ErrTooLarge) {
				t.Errorf("got the error %v, want outbound.ErrTooLarge", err)
			}
		})
	}
}
