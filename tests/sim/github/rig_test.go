package github

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crier/platform/clock"
)

const (
	clientID = "Ov23app"
	secret   = "app-secret"
	callback = "https://app.example/callback"
	verifier = "abcdefghijklmnopqrstuvwxyz-0123456789._~ABCDEF"
)

// rig is a Platform behind a server, with one app and the signed-in user 7, who accepts everything.
type rig struct {
	t       *testing.T
	p       *Platform
	url     string
	client  *http.Client
	elapsed atomic.Int64 // in nanoseconds
}

func octocat() User {
	return User{ID: 7, Login: "octocat", Name: "The Octocat", Emails: []Email{
		{Email: "octocat@example.org", Primary: true, Verified: true, Visibility: VisibilityPrivate},
		{Email: "cat@example.net"},
	}}
}

func start(t *testing.T, opts Options) *rig {
	t.Helper()
	r := &rig{t: t}
	begin := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	opts.Clock = clock.Func(func() time.Time { return begin.Add(time.Duration(r.elapsed.Load())) })
	r.p = New(opts)
	srv := httptest.NewServer(r.p)
	t.Cleanup(func() { r.p.Close(); srv.Close() })
	r.url = srv.URL
	r.client = &http.Client{
		Transport:     srv.Client().Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	r.must(r.p.AddApp(App{ClientID: clientID, Secret: secret, Name: "Crier", Callbacks: []Callback{{URL: callback}}}))
	r.must(r.p.SetUser(octocat()))
	r.must(r.p.SignIn(7))
	r.p.SetConsent(Consent{Answer: AnswerAccept})
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) advance(d time.Duration) { r.elapsed.Add(int64(d)) }

type reply struct {
	status int
	header http.Header
	body   string
}

func (r *rig) send(method, path, body string, header map[string]string) reply {
	r.t.Helper()
	out, err := r.try(method, path, body, header)
	r.must(err)
	return out
}

func (r *rig) try(method, path, body string, header map[string]string) (reply, error) {
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Close = true // the transport repeats requests on reused connections
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return reply{status: res.StatusCode, header: res.Header, body: string(text)}, err
}

// params returns a copy of base with changes. The value "-" removes a parameter.
func params(base, changes map[string]string) url.Values {
	out := url.Values{}
	for _, m := range []map[string]string{base, changes} {
		for name, value := range m {
			out.Set(name, value)
			if value == "-" {
				out.Del(name)
			}
		}
	}
	return out
}

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func authorizePath(changes map[string]string) string {
	return pathAuthorize + "?" + params(map[string]string{
		"client_id": clientID, "redirect_uri": callback, "state": "xyz", "scope": "read:user user:email",
		"code_challenge": challenge(), "code_challenge_method": "S256",
	}, changes).Encode()
}

// authorize returns the query of the redirect and its address without the query.
func (r *rig) authorize(changes map[string]string) (target string, query url.Values) {
	r.t.Helper()
	got := r.send(http.MethodGet, authorizePath(changes), "", nil)
	if got.status != http.StatusFound {
		r.t.Fatalf("got status %d from the authorization, want 302: %s", got.status, got.body)
	}
	return r.location(got)
}

func (r *rig) location(got reply) (target string, query url.Values) {
	r.t.Helper()
	u, err := url.Parse(got.header.Get("Location"))
	r.must(err)
	query = u.Query()
	u.RawQuery = ""
	return u.String(), query
}

func (r *rig) code(changes map[string]string) string {
	r.t.Helper()
	_, query := r.authorize(changes)
	if query.Get("code") == "" {
		r.t.Fatalf("got no code from the authorization: %v", query)
	}
	return query.Get("code")
}

func tokenForm(code string, changes map[string]string) string {
	return params(map[string]string{
		"client_id": clientID, "client_secret": secret, "code": code, "redirect_uri": callback, "code_verifier": verifier,
	}, changes).Encode()
}

var formAsJSON = map[string]string{
	"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json",
}

type tokenReply struct {
	AccessToken string `json:"access_token"`
	Scope       string `json:"scope"`
	TokenType   string `json:"token_type"`
	Error       string `json:"error"`
	Description string `json:"error_description"`
	URI         string `json:"error_uri"`
}

func (r *rig) exchange(code string, changes map[string]string) (int, tokenReply) {
	r.t.Helper()
	got := r.send(http.MethodPost, pathToken, tokenForm(code, changes), formAsJSON)
	return got.status, decodeAs[tokenReply](r, got)
}

func decodeAs[T any](r *rig, got reply) (out T) {
	r.t.Helper()
	if err := json.Unmarshal([]byte(got.body), &out); err != nil {
		r.t.Fatalf("got the body %q, want JSON: %v", got.body, err)
	}
	return out
}

// token signs in and returns an access token with the scopes.
func (r *rig) token(scope string) string {
	r.t.Helper()
	_, got := r.exchange(r.code(map[string]string{"scope": scope}), nil)
	if got.AccessToken == "" {
		r.t.Fatalf("got no token: %+v", got)
	}
	return got.AccessToken
}

func (r *rig) get(path, token string) reply {
	r.t.Helper()
	return r.send(http.MethodGet, path, "", map[string]string{"Authorization": "Bearer " + token})
}
