package github

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/fault"
)

func TestFail_ChangesAnswers(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	token := r.token("user")
	r.must(r.p.Fail(Fault{Endpoint: EndpointUser, Kind: FaultStatus, Status: 502, Times: 2}))
	r.must(r.p.Fail(Fault{Endpoint: EndpointUser, Kind: FaultMalformed, Times: 1}))
	r.must(r.p.Fail(Fault{Endpoint: EndpointUser, Kind: FaultOversized, Size: 1 << 20, Times: 1}))
	r.must(r.p.Fail(Fault{Kind: FaultSecondaryLimit, RetryAfter: 1500 * time.Millisecond, Times: 1}))
	for i, want := range []int{502, 502, 200} {
		if got := r.get(pathUser, token); got.status != want || i == 2 && json.Valid([]byte(got.body)) {
			t.Errorf("request %d: got %d and %s, want %d and broken JSON at last", i, got.status, got.body, want)
		}
	}
	if got := r.get(enterprise+pathUser, token); len(got.body) < 1<<20 || !json.Valid([]byte(got.body)) {
		t.Errorf("got %d bytes, want valid JSON of more than a mebibyte", len(got.body))
	}
	got := r.get(pathEmails, token)
	if got.status != http.StatusForbidden || got.header.Get("Retry-After") != "2" ||
		!strings.Contains(got.body, "secondary rate limit") {
		t.Errorf("got %d, %v and %s, want a secondary rate limit", got.status, got.header, got.body)
	}
	if got := r.get(pathUser, token); got.status != http.StatusOK {
		t.Errorf("got status %d after the faults, want 200", got.status)
	}
}

func TestFail_DropBeforeAndAfterTheWork(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	code := r.code(nil)
	r.must(r.p.Fail(Fault{Endpoint: EndpointToken, Kind: FaultDrop, Times: 1}))
	if got, err := r.try(http.MethodPost, pathToken, tokenForm(code, nil), formAsJSON); err == nil {
		t.Errorf("got %+v, want a closed connection", got)
	}
	r.must(r.p.Fail(Fault{Endpoint: EndpointToken, Kind: FaultDropAfter, Times: 1}))
	if got, err := r.try(http.MethodPost, pathToken, tokenForm(code, nil), formAsJSON); err == nil {
		t.Errorf("got %+v, want a closed connection", got)
	}
	if _, got := r.exchange(code, nil); got.Error != "bad_verification_code" {
		t.Errorf("got %+v after a lost answer, want the code used up", got)
	}
}

func TestFail_HangsUntilClientLeavesOrClose(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	r.must(r.p.Fail(Fault{Kind: FaultHang}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url+pathToken, strings.NewReader("code=x"))
	r.must(err)
	left := make(chan error, 1)
	go func() {
		_, err := r.client.Do(req)
		left <- err
	}()
	for len(r.p.Requests()) == 0 { // go test's own deadline ends a wait that never succeeds
		r.must(clock.Sleep(t.Context(), time.Millisecond))
	}
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v, want the client's cancellation", err)
	}
	closed := make(chan error, 1)
	go func() {
		_, err := r.try(http.MethodGet, pathUser, "", nil)
		closed <- err
	}()
	r.p.Close()
	r.p.Close()
	if err := <-closed; err == nil {
		t.Error("got an answer from a request that hung, want a closed connection")
	}
	r.p.ClearFaults()
	if got := r.send(http.MethodGet, pathUser, "", nil); got.status != http.StatusUnauthorized {
		t.Errorf("got status %d after ClearFaults, want 401", got.status)
	}
}

func TestFail_WithoutConnectionAnswers502(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	if err := p.Fail(Fault{Kind: FaultDrop}); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, pathUser, nil))
	if w.Code != http.StatusBadGateway {
		t.Errorf("got status %d, want 502", w.Code)
	}
}

func TestRequests_HaveNoSecrets(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	token := r.token("user")
	r.get(pathUser, token)
	got := r.p.Requests()
	if len(got) != 3 {
		t.Fatalf("got %d requests, want 3: %+v", len(got), got)
	}
	wantQuery := []string{"client_id", "code_challenge", "code_challenge_method", "redirect_uri", "scope", "state"}
	if got[0].Method != http.MethodGet || got[0].Path != pathAuthorize || !slices.Equal(got[0].Query, wantQuery) ||
		got[0].Authorized {
		t.Errorf("got %+v, want the authorization with the names %v", got[0], wantQuery)
	}
	if got[1].Method != http.MethodPost || got[1].Path != pathToken || got[1].Accept != "application/json" {
		t.Errorf("got %+v, want the exchange", got[1])
	}
	if got[2].Path != pathUser || !got[2].Authorized || got[2].UserAgent == "" {
		t.Errorf("got %+v, want the request of the user", got[2])
	}
	text, err := json.Marshal(got)
	r.must(err)
	for _, hidden := range []string{token, secret, verifier, challenge()} {
		if strings.Contains(string(text), hidden) {
			t.Errorf("got the secret %s in the requests %s", hidden, text)
		}
	}
}

func TestRequests_RecordStatusAndAreBounded(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	for range maxRequests + 1 {
		p.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/user/", nil))
	}
	got := p.Requests()
	if len(got) != maxRequests || got[0].Status != http.StatusNotFound {
		t.Errorf("got %d requests, the first with status %d, want %d with 404", len(got), got[0].Status, maxRequests)
	}
}

func TestScript_RefusesWhatGitHubCouldNotHave(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	one := []Callback{{URL: callback}}
	user := func(emails ...Email) User { return User{ID: 1, Login: "a", Emails: emails} }
	for name, err := range map[string]error{
		"app without callback":  p.AddApp(App{ClientID: "a", Secret: "b"}),
		"app with 11 callbacks": p.AddApp(App{ClientID: "a", Secret: "b", Callbacks: slices.Repeat(one, 11)}),
		"app without secret":    p.AddApp(App{ClientID: "a", Callbacks: one}),
		"relative callback":     p.AddApp(App{ClientID: "a", Secret: "b", Callbacks: []Callback{{URL: "/callback"}}}),
		"fragment in callback":  p.AddApp(App{ClientID: "a", Secret: "b", Callbacks: []Callback{{URL: callback + "#x"}}}),
		"user without ID":       p.SetUser(User{Login: "a"}),
		"malformed login":       p.SetUser(User{ID: 1, Login: "-a"}),
		"malformed email":       p.SetUser(user(Email{Email: "x"})),
		"repeated email":        p.SetUser(user(Email{Email: "a@b"}, Email{Email: "A@b"})),
		"two primaries":         p.SetUser(user(Email{Email: "a@b", Primary: true}, Email{Email: "c@d", Primary: true})),
		"unknown visibility":    p.SetUser(user(Email{Email: "a@b", Visibility: "hidden"})),
		"unknown fault":         p.Fail(Fault{Kind: "x"}),
		"fault with status 200": p.Fail(Fault{Kind: FaultStatus, Status: 200}),
	} {
		var known *fault.Error
		if !errors.As(err, &known) || known.Kind != fault.Invalid {
			t.Errorf("%s: got the error %v, want fault.Invalid", name, err)
		}
	}
	if err := errors.Join(p.SetUser(User{ID: 1, Login: "a"}), p.SetUser(User{ID: 1, Login: "a"})); err != nil {
		t.Errorf("got %v for the same user twice, want nil", err)
	}
	var known *fault.Error
	if err := p.SetUser(User{ID: 2, Login: "A"}); !errors.As(err, &known) || known.Kind != fault.Conflict {
		t.Errorf("got %v for the login of another user, want fault.Conflict", err)
	}
	if err := p.SignIn(3); !errors.As(err, &known) || known.Kind != fault.NotFound {
		t.Errorf("got %v for an unknown user, want fault.NotFound", err)
	}
}

func TestOversized_HasSize(t *testing.T) {
	t.Parallel()
	n, err := io.Copy(io.Discard, oversized(1000))
	if err != nil || n < 1000 || n > 1020 {
		t.Errorf("got %d bytes and %v, want about 1000", n, err)
	}
}
