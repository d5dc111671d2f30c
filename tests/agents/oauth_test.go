package agents

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"crier/tests/call"
)

var (
	signInButton  = regexp.MustCompile(`(?i)^(sign|log) in$|^continue$`)
	approveButton = regexp.MustCompile(`(?i)^(approve|allow|authori[sz]e|grant)`)
	denyButton    = regexp.MustCompile(`(?i)^(deny|cancel|refuse|decline|do not allow|don.t allow)`)
)

// app is a program that asks people for access.
type app struct {
	s        *service
	id       string
	secret   string
	method   string // how it authenticates at the token endpoint
	redirect string
	scope    string
	name     string
	address  string // of the program
}

// metadata is what a program says about itself when it registers.
func metadata(name string, redirects ...string) m {
	return m{
		"client_name": name, "redirect_uris": redirects, "grant_types": []string{"authorization_code", "refresh_token"},
		"response_types": []string{"code"}, "token_endpoint_auth_method": "none",
	}
}

// post sends a form or JSON to an endpoint of the service, without a session.
func (s *service) post(t testing.TB, path, from string, body any, headers ...string) call.Answer {
	t.Helper()
	all := []string{"X-Forwarded-For", from}
	if form, ok := body.(url.Values); ok {
		body = form.Encode()
		all = append(all, "Content-Type", "application/x-www-form-urlencoded")
	}
	a, err := call.Do(t.Context(), browserless(), http.MethodPost, s.base+path, body, append(all, headers...)...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// get sends a request without a credential.
func (s *service) get(t testing.TB, path string, headers ...string) call.Answer {
	t.Helper()
	a, err := call.Do(t.Context(), browserless(), http.MethodGet, s.base+path, nil, append([]string{"X-Forwarded-For", address()}, headers...)...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// registered is the answer to a registration.
type registered struct {
	ID       string   `json:"client_id"`
	Secret   string   `json:"client_secret"`
	Method   string   `json:"token_endpoint_auth_method"`
	Redirect []string `json:"redirect_uris"`
	Scope    string   `json:"scope"`
	Name     string   `json:"client_name"`
}

// register registers a program.
func (s *service) register(t testing.TB, metadata m) *app {
	t.Helper()
	from := address()
	a := s.post(t, "/oauth/register", from, metadata)
	var out registered
	if a.Status != http.StatusCreated || a.Into(&out) != nil || out.ID == "" || len(out.Redirect) == 0 {
		t.Fatalf("registration of %v: got %v, want 201 with a client_id", metadata, a)
	}
	return &app{
		s: s, id: out.ID, secret: out.Secret, method: out.Method, redirect: out.Redirect[0], scope: out.Scope, name: out.Name,
		address: from,
	}
}

// native registers a program that listens on loopback.
func (s *service) native(t testing.TB) *app {
	t.Helper()
	return s.register(t, metadata(unique("Agent "), "http://127.0.0.1:7777/callback"))
}

// request is an authorization request with what the program keeps for the exchange.
type request struct {
	app      *app
	query    url.Values
	verifier string
}

// request returns a good request. change may be nil.
func (a *app) request(change func(url.Values)) request {
	verifier := rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {a.id}, "redirect_uri": {a.redirect}, "state": {rand.Text()},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
		"resource": {a.s.base + "/mcp"},
	}
	if change != nil {
		change(q)
	}
	return request{app: a, query: q, verifier: verifier}
}

func (r request) path() string { return "/oauth/authorize?" + r.query.Encode() }

// browse sends a browser's request, with the session as a cookie.
func (p *person) browse(t testing.TB, method, path string, form url.Values, headers ...string) call.Answer {
	t.Helper()
	a, err := p.tryBrowse(t.Context(), method, path, form, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// tryBrowse is browse for a process that may be killed.
func (p *person) tryBrowse(ctx context.Context, method, path string, form url.Values, headers ...string) (call.Answer, error) {
	cookies := p.cookies
	if p.session != "" {
		cookies = append([]string{"auth=" + p.session}, cookies...)
	}
	all := []string{
		"X-Forwarded-For", p.address, "Accept", "text/html,application/xhtml+xml", "Cookie", strings.Join(cookies, "; "),
		"User-Agent", "Mozilla/5.0",
	}
	var body any
	if form != nil {
		body = form.Encode()
		all = append(all, "Content-Type", "application/x-www-form-urlencoded", "Origin", p.s.base)
	}
	return call.Do(ctx, browserless(), method, p.s.base+path, body, append(all, headers...)...)
}

// consentForm opens the authorize address and returns the form that approves.
func (p *person) consentForm(t testing.TB, r request) *form {
	t.Helper()
	page := p.browse(t, http.MethodGet, r.path(), nil)
	if page.Status != http.StatusOK {
		t.Fatalf("GET %s: got %v, want the consent page", r.path(), page)
	}
	return readForm(t, page.Body, approveButton)
}

// submit presses a button of a form of the page at the request's address.
func (p *person) submit(t testing.TB, r request, f *form, text *regexp.Regexp, headers ...string) call.Answer {
	t.Helper()
	return p.browse(t, http.MethodPost, f.path(t, p.s.base+r.path()), f.values(f.button(text)), headers...)
}

// path returns the path and query to which the form is sent from a page.
func (f *form) path(t testing.TB, page string) string {
	t.Helper()
	from, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	to, err := from.Parse(f.action)
	if err != nil {
		t.Fatal(err)
	}
	return to.RequestURI()
}

// back returns the query that an answer to a consent brings to the program, or nil if the answer
// does not lead there.
func back(t testing.TB, a call.Answer, redirect string) url.Values {
	t.Helper()
	places := append([]string{a.Header.Get("Location")}, leads(t, a.Body)...)
	var sent struct{ Redirect string }
	if json.Unmarshal([]byte(a.Body), &sent) == nil {
		places = append(places, sent.Redirect)
	}
	for _, place := range places {
		if rest, ok := strings.CutPrefix(place, redirect); ok && (strings.HasPrefix(rest, "?") || strings.HasPrefix(rest, "&")) {
			u, err := url.Parse(place)
			if err != nil {
				t.Fatal(err)
			}
			return u.Query()
		}
	}
	return nil
}

// approve approves the request after fill, which may be nil, has changed the form. It returns the
// code.
func (p *person) approve(t testing.TB, r request, fill func(*form)) string {
	t.Helper()
	f := p.consentForm(t, r)
	if fill != nil {
		fill(f)
	}
	a := p.submit(t, r, f, approveButton)
	q := back(t, a, r.query.Get("redirect_uri"))
	if q.Get("code") == "" || q.Get("state") != r.query.Get("state") || q.Get("iss") != p.s.base {
		t.Fatalf("the approval of %s: got %v with %v, want a code, the state and iss %s", r.app.name, a, q, p.s.base)
	}
	return q.Get("code")
}

// tokens are the answer of the token endpoint.
type tokens struct {
	Access  string  `json:"access_token"`
	Refresh string  `json:"refresh_token"`
	Type    string  `json:"token_type"`
	Scope   string  `json:"scope"`
	ID      string  `json:"id"`
	Expires float64 `json:"expires_in"`
}

// exchangeForm is what a program sends for a code.
func (r request) exchangeForm(code string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {r.query.Get("redirect_uri")},
		"code_verifier": {r.verifier}, "resource": {r.app.s.base + "/mcp"},
	}
}

// refreshForm is what a program sends for a refresh token.
func (a *app) refreshForm(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "resource": {a.s.base + "/mcp"}}
}

// token calls the token endpoint, authenticated as the program registered.
func (a *app) token(t testing.TB, form url.Values) call.Answer {
	t.Helper()
	answer, err := a.tryToken(t.Context(), form)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// tryToken is token for a process that may be killed.
func (a *app) tryToken(ctx context.Context, form url.Values) (call.Answer, error) {
	form = maps.Clone(form)
	headers := []string{"X-Forwarded-For", a.address, "Content-Type", "application/x-www-form-urlencoded"}
	switch a.method {
	case "client_secret_basic":
		pair := url.QueryEscape(a.id) + ":" + url.QueryEscape(a.secret)
		headers = append(headers, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	case "client_secret_post":
		form.Set("client_id", a.id)
		form.Set("client_secret", a.secret)
	default:
		form.Set("client_id", a.id)
	}
	return call.Do(ctx, browserless(), http.MethodPost, a.s.base+"/oauth/token", form.Encode(), headers...)
}

// good decodes tokens, and fails the test if the answer has none.
func good(t testing.TB, a call.Answer) (out tokens) {
	t.Helper()
	if err := a.Into(&out); err != nil || out.Access == "" || out.Refresh == "" || !strings.EqualFold(out.Type, "Bearer") || out.Expires <= 0 {
		t.Fatalf("the token endpoint: got %v, want an access and a refresh token", a)
	}
	return out
}

// grant lets the person approve the program and returns its tokens. fill may be nil.
func (p *person) grant(t testing.TB, a *app, fill func(*form)) tokens {
	t.Helper()
	r := a.request(nil)
	return good(t, a.token(t, r.exchangeForm(p.approve(t, r, fill))))
}

// refused returns the OAuth error code of an answer, or "" if it has none.
func refused(a call.Answer) string {
	var out struct{ Error string }
	if json.Unmarshal([]byte(a.Body), &out) != nil {
		return ""
	}
	return out.Error
}

// approvedApp is an entry of /user/approved-apps.
type approvedApp struct {
	id  string
	all string // the whole entry, as JSON
}

// approvedApps returns what the person has approved.
func (p *person) approvedApps(t testing.TB) (out []approvedApp) {
	t.Helper()
	var raw json.RawMessage
	p.want(t, &raw, http.MethodGet, "/user/approved-apps", nil)
	list := []json.RawMessage{}
	if json.Unmarshal(raw, &list) != nil {
		var envelope map[string]json.RawMessage
		decode(t, string(raw), &envelope)
		for _, v := range envelope {
			if json.Unmarshal(v, &list) == nil {
				break
			}
		}
	}
	for _, entry := range list {
		var x struct{ ID string }
		decode(t, string(entry), &x)
		out = append(out, approvedApp{id: x.ID, all: string(entry)})
	}
	return out
}
