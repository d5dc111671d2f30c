package signin

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"crier/platform/fault"
)

// hub responds as in GitHub's documentation, unless a test changes a response.
type hub struct {
	*server
	token, user, emails answer
	form                url.Values
}

type answer struct {
	status int
	body   string
	header string // a name and a value
}

func (a answer) write(w http.ResponseWriter) {
	if name, value, ok := strings.Cut(a.header, ": "); ok {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(a.status)
	_, _ = w.Write([]byte(a.body))
}

func startHub(t *testing.T) *hub {
	t.Helper()
	h := &hub{
		server: newServer(t),
		token:  answer{200, `{"access_token":"` + accessToken + `","scope":"read:user,user:email","token_type":"bearer"}`, ""},
		user:   answer{200, `{"login":"octocat","id":583231,"type":"User","name":"The Octocat","email":null}`, ""},
		emails: answer{200, `[{"email":"second@example.com","verified":true,"primary":false,"visibility":null},
			{"email":"Octocat@Example.com","verified":true,"primary":true,"visibility":"private"}]`, ""},
	}
	h.mux.HandleFunc("POST /login/oauth/access_token", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		h.form = r.PostForm
		if r.Header.Get("Accept") != "application/json" || r.Header.Get("Authorization") != "" {
			h.token = answer{400, "not JSON", ""}
		}
		h.token.write(w)
	})
	authorized := func(a *answer) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+accessToken || r.UserAgent() == "" {
				answer{401, `{"message":"Bad credentials"}`, ""}.write(w)
				return
			}
			a.write(w)
		}
	}
	h.mux.HandleFunc("GET /api/v3/user", authorized(&h.user))
	moved := h.user
	h.mux.HandleFunc("GET /api/v3/user/1", authorized(&moved))
	h.mux.HandleFunc("GET /api/v3/user/emails", authorized(&h.emails))
	return h
}

func (h *hub) open(t *testing.T) *Providers {
	t.Helper()
	return openProviders(t, Config{GitHubURL: h.url + "/", GitHubID: clientID, GitHubSecret: clientSecret}, finishLimit)
}

func TestGitHub_VerifiedAddress(t *testing.T) {
	t.Parallel()
	h := startHub(t)
	p := h.open(t)
	start := begin(t, p, ProviderGitHub)
	u, err := url.Parse(start.URL)
	if err != nil || !strings.HasPrefix(start.URL, h.url+"/login/oauth/authorize?") ||
		u.Query().Get("scope") != "read:user user:email" || u.Query().Get("code_challenge_method") != "S256" ||
		u.Query().Get("state") != start.State || u.Query().Get("redirect_uri") != redirectURI {
		t.Errorf("got the address %s and the error %v, want GitHub's with the documented parameters", start.URL, err)
	}
	for _, iss := range []string{"", h.url, h.url + "/login/oauth"} {
		cb := callback(start, "code-8b2d")
		cb.Issuer = iss
		got, err := p.Finish(t.Context(), ProviderGitHub, cb)
		want := Identity{
			Provider: ProviderGitHub, Issuer: h.url, Subject: "583231", Email: "octocat@example.com", EmailVerified: true,
			Name: "The Octocat",
		}
		if err != nil || got != want {
			t.Errorf("got %+v and the error %v, want %+v", got, err, want)
		}
	}
	want := url.Values{
		"client_id": {clientID}, "client_secret": {clientSecret}, "code": {"code-8b2d"}, "redirect_uri": {redirectURI},
		"code_verifier": {start.Verifier}, "grant_type": {"authorization_code"},
	}
	if h.form.Encode() != want.Encode() {
		t.Errorf("got the form %v, want %v", h.form, want)
	}
}

func TestGitHub_PublicSiteHasItsOwnAPI(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://github.com":   "https://api.github.com",
		"https://ghes.example": "https://ghes.example/api/v3",
	} {
		if got := newGitHub(address, "id", "secret", web{}).api; got != want {
			t.Errorf("got the API %s for %s, want %s", got, address, want)
		}
	}
}

func TestGitHub_WithoutAVerifiedPrimaryAddress(t *testing.T) {
	t.Parallel()
	for name, emails := range map[string]answer{
		"none":                    {200, `[]`, ""},
		"primary is not verified": {200, `[{"email":"a@example.com","primary":true,"verified":false}]`, ""},
		"verified is not primary": {200, `[{"email":"a@example.com","primary":false,"verified":true}]`, ""},
		"scope was reduced":       {404, `{"message":"Not Found"}`, ""},
		"not permitted":           {403, `{"message":"Resource not accessible by integration"}`, "X-RateLimit-Remaining: 59"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startHub(t)
			h.emails = emails
			h.user.body = `{"login":"octocat","id":1,"name":null}`
			p := h.open(t)
			got, err := p.Finish(t.Context(), ProviderGitHub, callback(begin(t, p, ProviderGitHub), "code-8b2d"))
			want := Identity{Provider: ProviderGitHub, Issuer: h.url, Subject: "1", Name: "octocat"}
			if err != nil || got != want {
				t.Errorf("got %+v and the error %v, want %+v", got, err, want)
			}
		})
	}
}

func TestGitHub_OtherAnswers(t *testing.T) {
	t.Parallel()
	const refused, away = "The sign-in with GitHub was refused: start again.", "GitHub does not respond correctly"
	failure := func(code string) answer {
		return answer{200, `{"error":"` + code + `","error_description":"code-8b2d","error_uri":"/x"}`, ""}
	}
	for name, c := range map[string]struct {
		change  func(h *hub)
		kind    fault.Kind
		message string
	}{
		"code is refused":        {func(h *hub) { h.token = failure("bad_verification_code") }, fault.Invalid, refused},
		"person is not verified": {func(h *hub) { h.token = failure("unverified_user_email") }, fault.Invalid, "Verify your email"},
		"wrong client secret":    {func(h *hub) { h.token = failure("incorrect_client_credentials") }, fault.Unavailable, "not set up"},
		"wrong redirect address": {func(h *hub) { h.token = failure("redirect_uri_mismatch") }, fault.Unavailable, "not set up"},
		"token is a page":        {func(h *hub) { h.token = answer{200, "<html>", ""} }, fault.Unavailable, away},
		"token is empty":         {func(h *hub) { h.token = answer{200, "{}", ""} }, fault.Unavailable, away},
		"token of another type":  {func(h *hub) { h.token.body = strings.Replace(h.token.body, "bearer", "mac", 1) }, fault.Unavailable, away},
		"token endpoint broken":  {func(h *hub) { h.token.status = 502 }, fault.Unavailable, away},
		"token is not accepted":  {func(h *hub) { h.user.status = 401 }, fault.Invalid, refused},
		"API is broken":          {func(h *hub) { h.user.status = 503 }, fault.Unavailable, away},
		"API redirects":          {func(h *hub) { h.user = answer{302, "", "Location: /api/v3/user/1"} }, fault.Unavailable, away},
		"id is text":             {func(h *hub) { h.user.body = `{"login":"octocat","id":"1"}` }, fault.Unavailable, away},
		"id is a fraction":       {func(h *hub) { h.user.body = `{"login":"octocat","id":1.5}` }, fault.Unavailable, away},
		"id is missing":          {func(h *hub) { h.user.body = `{"login":"octocat"}` }, fault.Unavailable, away},
		"login is missing":       {func(h *hub) { h.user.body = `{"id":1}` }, fault.Unavailable, away},
		"addresses are no list":  {func(h *hub) { h.emails.body = `{"email":"a@example.com"}` }, fault.Unavailable, away},
		"addresses are huge":     {func(h *hub) { h.emails.body = strings.Repeat(" ", 10<<20) + "[]" }, fault.Unavailable, away},
		"rate limit":             {func(h *hub) { h.emails = answer{403, `{}`, "X-RateLimit-Remaining: 0"} }, fault.Unavailable, away},
		"second rate limit":      {func(h *hub) { h.emails = answer{403, `{}`, "Retry-After: 60"} }, fault.Unavailable, away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := startHub(t)
			c.change(h)
			p := h.open(t)
			start := begin(t, p, ProviderGitHub)
			_, err := p.Finish(t.Context(), ProviderGitHub, callback(start, "code-8b2d"))
			wantFault(t, err, c.kind, c.message, "code-8b2d", accessToken, start.Verifier)
			if got := h.requests("token"); got != 1 {
				t.Errorf("got %d token requests, want 1", got)
			}
		})
	}
}

func TestGitHub_CallbackOfAnotherIssuerIsRefused(t *testing.T) {
	t.Parallel()
	h := startHub(t)
	p := h.open(t)
	cb := callback(begin(t, p, ProviderGitHub), "code-8b2d")
	cb.Issuer = googleIssuer
	_, err := p.Finish(t.Context(), ProviderGitHub, cb)
	wantFault(t, err, fault.Invalid, "refused", cb.Code)
	if got := h.requests("token"); got != 0 {
		t.Errorf("got %d token requests, want none", got)
	}
}
