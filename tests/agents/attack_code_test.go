package agents

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"crier/tests/call"
)

// attacks runs the attacks of one kind, each in its own test.
func attacks(t *testing.T, all map[string]func(t *testing.T)) {
	t.Helper()
	for name, attack := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			attack(t)
		})
	}
}

// wantRefusal fails the test unless the answer has one of the statuses. Without statuses, any 4xx
// will do.
func wantRefusal(t testing.TB, what string, a call.Answer, statuses ...int) {
	t.Helper()
	if a.Status < 400 || a.Status > 499 || len(statuses) > 0 && !slices.Contains(statuses, a.Status) {
		t.Errorf("%s: got %v, want a refusal %v", what, a, statuses)
	}
}

// wantOAuthError fails the test unless the token endpoint refused with the code.
func wantOAuthError(t testing.TB, what string, a call.Answer, codes ...string) {
	t.Helper()
	wantRefusal(t, what, a)
	if !slices.Contains(codes, refused(a)) {
		t.Errorf("%s: got %v, want the error %v", what, a, codes)
	}
}

// wantDead fails the test unless the token is refused everywhere.
func (s *service) wantDead(t testing.TB, what, token string) {
	t.Helper()
	if a := (agent{base: s.base, token: token}).rpc(t, "tools/list", m{}); a.Status != http.StatusUnauthorized {
		t.Errorf("%s: /mcp got %v, want 401", what, a)
	}
	a := rest{base: s.base, credential: token}.ask(t, http.MethodGet, "/is-connected", nil)
	if a.Status != http.StatusUnauthorized {
		t.Errorf("%s: /public/v1 got %v, want 401", what, a)
	}
}

func (s *service) wantAlive(t testing.TB, what, token string) {
	t.Helper()
	if a := (agent{base: s.base, token: token}).rpc(t, "tools/list", m{}); a.Status != http.StatusOK {
		t.Errorf("%s: got %v, want 200", what, a)
	}
}

func TestAttack_Code(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	attacks(t, map[string]func(t *testing.T){
		"a code is replayed": func(t *testing.T) {
			a := s.native(t)
			r := a.request(nil)
			form := r.exchangeForm(p.approve(t, r, nil))
			first := good(t, a.token(t, form))
			wantOAuthError(t, "the second exchange", a.token(t, form), "invalid_grant")
			s.wantDead(t, "the token of a code that was replayed", first.Access)
			wantOAuthError(t, "its refresh token", a.token(t, a.refreshForm(first.Refresh)), "invalid_grant")
		},
		"a stranger cannot end what a replayed code led to": func(t *testing.T) {
			a, stranger := s.native(t), s.native(t)
			r := a.request(nil)
			form := r.exchangeForm(p.approve(t, r, nil))
			first := good(t, a.token(t, form))
			wantOAuthError(t, "another client with the code", stranger.token(t, form), "invalid_grant")
			s.wantAlive(t, "the token after another client sent its code", first.Access)
		},
		"a code is stolen": func(t *testing.T) {
			a, thief := s.native(t), s.native(t)
			r := a.request(nil)
			form := r.exchangeForm(p.approve(t, r, nil))
			wantOAuthError(t, "another client", thief.token(t, form), "invalid_grant")
			own := thief.request(nil)
			form.Set("code_verifier", own.verifier)
			wantOAuthError(t, "another client with its verifier", thief.token(t, form), "invalid_grant")
		},
		"a code without its verifier": func(t *testing.T) {
			for what, change := range map[string]func(url.Values){
				"no verifier":             func(q url.Values) { q.Del("code_verifier") },
				"an empty verifier":       func(q url.Values) { q.Set("code_verifier", "") },
				"another verifier":        func(q url.Values) { q.Set("code_verifier", strings.Repeat("a", 64)) },
				"the challenge":           func(q url.Values) { q.Set("code_verifier", q.Get("challenge")) },
				"two verifiers":           func(q url.Values) { q.Add("code_verifier", strings.Repeat("a", 64)) },
				"another redirect":        func(q url.Values) { q.Set("redirect_uri", "http://127.0.0.1:7777/callback/") },
				"no redirect":             func(q url.Values) { q.Del("redirect_uri") },
				"a redirect on a port":    func(q url.Values) { q.Set("redirect_uri", "http://127.0.0.1:7778/callback") },
				"a foreign resource":      func(q url.Values) { q.Set("resource", "https://evil.example/mcp") },
				"another grant":           func(q url.Values) { q.Set("grant_type", "password") },
				"no grant":                func(q url.Values) { q.Del("grant_type") },
				"a code with one more":    func(q url.Values) { q.Set("code", q.Get("code")+"a") },
				"a code without its last": func(q url.Values) { q.Set("code", q.Get("code")[:len(q.Get("code"))-1]) },
			} {
				a := s.native(t)
				r := a.request(nil)
				form := r.exchangeForm(p.approve(t, r, nil))
				form.Set("challenge", r.query.Get("code_challenge"))
				change(form)
				form.Del("challenge")
				got := a.token(t, form)
				wantOAuthError(t, what, got, "invalid_grant", "invalid_request", "invalid_target", "unsupported_grant_type")
			}
		},
		"a challenge that is missing or plain": func(t *testing.T) {
			a := s.native(t)
			for what, change := range map[string]func(url.Values){
				"no challenge":           func(q url.Values) { q.Del("code_challenge"); q.Del("code_challenge_method") },
				"an empty challenge":     func(q url.Values) { q.Set("code_challenge", "") },
				"no challenge, a method": func(q url.Values) { q.Del("code_challenge") },
				"plain":                  func(q url.Values) { q.Set("code_challenge_method", "plain") },
				"no method":              func(q url.Values) { q.Del("code_challenge_method") },
				"a short challenge":      func(q url.Values) { q.Set("code_challenge", "abc") },
				"two challenges":         func(q url.Values) { q.Add("code_challenge", strings.Repeat("a", 43)) },
				"a token in the answer":  func(q url.Values) { q.Set("response_type", "token") },
				"no response type":       func(q url.Values) { q.Del("response_type") },
				"a foreign resource":     func(q url.Values) { q.Set("resource", "https://evil.example/mcp") },
				"a resource beside ours": func(q url.Values) { q.Set("resource", s.base+"/public") },
				"two resources":          func(q url.Values) { q.Add("resource", "https://evil.example/mcp") },
			} {
				p.wantNoConsent(t, what, a.request(change), a.redirect)
			}
		},
		"the resource may be the base, and its host in capitals": func(t *testing.T) {
			a := s.native(t)
			for _, resource := range []string{s.base, s.base + "/", s.base + "/mcp/", strings.Replace(s.base, "http:", "HTTP:", 1) + "/mcp"} {
				p.consentForm(t, a.request(func(q url.Values) { q.Set("resource", resource) }))
			}
		},
	})
}

// wantNoConsent fails the test if the authorize address answers with a form that approves, or leads
// anywhere but to redirect with an error. An empty redirect means that it may not lead anywhere.
func (p *person) wantNoConsent(t testing.TB, what string, r request, redirect string) {
	t.Helper()
	p.wantNoConsentAt(t, what, r.path(), redirect)
}

func (p *person) wantNoConsentAt(t testing.TB, what, path, redirect string) {
	t.Helper()
	a := p.browse(t, http.MethodGet, path, nil)
	if a.Status >= 500 {
		t.Errorf("%s: got %v, want no 5xx", what, a)
	}
	if redirect != "" {
		if q := back(t, a, redirect); q != nil {
			if q.Get("error") == "" || q.Has("code") || q.Get("iss") != p.s.base {
				t.Errorf("%s: got %v back, want an error with iss", what, q)
			}
			return
		}
	}
	places := append(leads(t, a.Body), a.Header.Get("Location"))
	for _, place := range places {
		if u, err := url.Parse(place); err != nil || u.Host != "" && !strings.HasPrefix(place, p.s.base) || u.Scheme != "" && u.Scheme != "http" {
			t.Errorf("%s: the answer leads to %s", what, place)
		}
	}
	if a.Status < 400 {
		t.Errorf("%s: got %v, want an error page", what, a)
	}
}

func TestAttack_Redirect(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	a := s.register(t, metadata(unique("Web "), "https://client.example/callback", "http://127.0.0.1:7777/callback", "myapp://agent/callback"))
	for _, redirect := range []string{
		"https://client.example/callbac", "https://client.example/callbackk", "https://client.example/callback/", "https://client.example/Callback",
		"https://client.example/callback?x=1", "https://client.example/callback#x", "https://client.example:444/callback",
		"https://client.example.evil.example/callback", "https://client.example@evil.example/callback", "https://evil.example/callback",
		"http://client.example/callback", "https://client.example/callback/../evil", "https://client.example//callback",
		"https%3A%2F%2Fclient.example%2Fcallback", "https://client.example/%63allback", "https://client.example/callback%00",
		"https://client.example/callback\r\nLocation: https://evil.example", `https://client.example\@evil.example/callback`,
		"http://127.0.0.1:7777/callback2", "http://localhost:7777/callback", "http://127.0.0.2:7777/callback", "https://127.0.0.1:7777/callback",
		"http://127.0.0.1.evil.example:7777/callback", "http://127.0.0.1:7777@evil.example/callback", "http://0.0.0.0:7777/callback",
		"myapp://agent/callback2", "myapp://evil/callback", "MYAPP2://agent/callback", "javascript:alert(1)", "//evil.example/callback", "/callback", " ",
	} {
		p.wantNoConsent(t, "the redirect "+redirect, a.request(func(q url.Values) { q.Set("redirect_uri", redirect) }), "")
	}
	r := a.request(nil)
	p.wantNoConsentAt(t, "two redirects", r.path()+"&redirect_uri=https%3A%2F%2Fevil.example%2F", "")
	p.wantNoConsentAt(t, "the same redirect twice", r.path()+"&redirect_uri="+url.QueryEscape(a.redirect), "")
	p.wantNoConsentAt(t, "two clients", r.path()+"&client_id="+s.native(t).id, "")
	for _, id := range []string{"", "ccl_unknown", "https://127.0.0.1:1/x", "'; drop table oauth_client; --", strings.Repeat("a", 5000), "ccl_\x00"} {
		p.wantNoConsent(t, "the client "+id[:min(len(id), 40)], a.request(func(q url.Values) { q.Set("client_id", id) }), "")
	}
	p.wantNoConsent(t, "no redirect", a.request(func(q url.Values) { q.Del("redirect_uri") }), "")

	for _, redirect := range []string{"http://127.0.0.1:1/callback", "http://127.0.0.1/callback", "myapp://agent/callback"} {
		p.consentForm(t, a.request(func(q url.Values) { q.Set("redirect_uri", redirect) }))
	}
}

func TestAttack_Registration(t *testing.T) {
	t.Parallel()
	s := common(t)
	for _, redirect := range []string{
		"javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "file:///etc/passwd", "intent://x#Intent;scheme=http;end",
		"vbscript:x", "blob:https://x/y", "about:blank", "http://client.example/callback", "http://localhost.evil.example/", "http://127.0.0.2/",
		"http://user@localhost/callback", "https://user:secret@client.example/", "https://client.example/#fragment", "/callback", "callback",
		"", "https://", "http://", "ws://client.example/", "ftp://client.example/", "filesystem:https://x/", "view-source:https://x/", "https://*/callback",
		"https://client.example/ x", "https://client.example/\r\nx", "https://client.example/\x00",
	} {
		a := s.post(t, "/oauth/register", address(), metadata("Evil", redirect))
		wantOAuthError(t, "the redirect "+redirect, a, "invalid_redirect_uri", "invalid_client_metadata")
	}
	many := metadata("Many")
	list := []string{}
	for i := range 11 {
		list = append(list, "https://client.example/"+strings.Repeat("a", i+1))
	}
	many["redirect_uris"] = list
	for what, body := range map[string]any{
		"no redirects": metadata("None"), "eleven redirects": many, "no object": []any{}, "no JSON": "redirect_uris=https://x/",
		"null": "null", "nothing": "", "redirects that are numbers": m{"redirect_uris": []int{1}}, "one redirect": m{"redirect_uris": "https://x/"},
		"17 KiB": metadata(strings.Repeat("x", 17<<10), "https://client.example/"), "1 MB": metadata(strings.Repeat("x", 1<<20), "https://client.example/"),
		"an unknown method": withMember(metadata("Evil", "https://client.example/"), "token_endpoint_auth_method", "magic"),
		"the wrong grant":   withMember(metadata("Evil", "https://client.example/"), "grant_types", []string{"password"}),
	} {
		wantRefusal(t, what, s.post(t, "/oauth/register", address(), body), 400, 413, 415, 422)
	}
	t.Run("names on the page are text in one direction", func(t *testing.T) {
		p := s.owner(t)
		for _, name := range []string{
			"\u202eelpmaxe\u202d", "A\u200bB\u2066C\u2069", "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "Crier\n\nApproved by your administrator",
		} {
			answer := s.post(t, "/oauth/register", address(), metadata(name, "https://client.example/callback"))
			if answer.Status != http.StatusCreated {
				wantRefusal(t, "the name "+name, answer, 400)
				continue
			}
			var made registered
			decode(t, answer.Body, &made)
			a := &app{s: s, id: made.ID, method: "none", redirect: made.Redirect[0], address: address()}
			page := p.browse(t, http.MethodGet, a.request(nil).path(), nil)
			for _, raw := range []string{"\u202e", "\u202d", "\u2066", "\u2069", "\u200b", "<script>alert", "<img src=x"} {
				if strings.Contains(page.Body, raw) {
					t.Errorf("the name %q: the page contains %q", name, raw)
				}
			}
		}
	})
	t.Run("a flood from one address is stopped", func(t *testing.T) {
		from := address()
		for i := range 2000 {
			a := s.post(t, "/oauth/register", from, metadata(unique("Flood "), "https://client.example/callback"))
			if a.Status == http.StatusTooManyRequests {
				return
			}
			if a.Status != http.StatusCreated {
				t.Fatalf("registration %d: got %v, want 201 or 429", i, a)
			}
		}
		t.Error("2,000 clients registered from one address")
	})
}

func withMember(body m, name string, value any) m {
	body[name] = value
	return body
}

func TestAttack_Refresh(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	attacks(t, map[string]func(t *testing.T){
		"a refresh token may be repeated until its successor was used": func(t *testing.T) {
			a := s.native(t)
			first := p.grant(t, a, nil)
			second := good(t, a.token(t, a.refreshForm(first.Refresh)))
			repeated := good(t, a.token(t, a.refreshForm(first.Refresh)))
			s.wantAlive(t, "the token of the repetition", repeated.Access)
			wantOAuthError(t, "the successor that a repetition voided", a.token(t, a.refreshForm(second.Refresh)), "invalid_grant")
		},
		"a refresh token that is used after its successor ends the family": func(t *testing.T) {
			a := s.native(t)
			first := p.grant(t, a, nil)
			second := good(t, a.token(t, a.refreshForm(first.Refresh)))
			third := good(t, a.token(t, a.refreshForm(second.Refresh)))
			wantOAuthError(t, "the first token", a.token(t, a.refreshForm(first.Refresh)), "invalid_grant")
			wantOAuthError(t, "the third token", a.token(t, a.refreshForm(third.Refresh)), "invalid_grant")
			s.wantDead(t, "the newest access token", third.Access)
		},
		"a family does not end the other installations": func(t *testing.T) {
			a := s.native(t)
			laptop, phone := p.grant(t, a, nil), p.grant(t, a, nil)
			second := good(t, a.token(t, a.refreshForm(laptop.Refresh)))
			good(t, a.token(t, a.refreshForm(second.Refresh)))
			wantOAuthError(t, "the first token", a.token(t, a.refreshForm(laptop.Refresh)), "invalid_grant")
			s.wantAlive(t, "the token of the other installation", phone.Access)
			if apps := p.approvedApps(t); len(apps) == 0 {
				t.Error("the grant is gone")
			}
		},
		"another client sends it": func(t *testing.T) {
			a, thief := s.native(t), s.native(t)
			got := p.grant(t, a, nil)
			wantOAuthError(t, "another client", thief.token(t, thief.refreshForm(got.Refresh)), "invalid_grant")
			good(t, a.token(t, a.refreshForm(got.Refresh)))
		},
		"it is sent as what it is not": func(t *testing.T) {
			a := s.native(t)
			got := p.grant(t, a, nil)
			s.wantDead(t, "a refresh token as an access token", got.Refresh)
			wantOAuthError(t, "an access token as a refresh token", a.token(t, a.refreshForm(got.Access)), "invalid_grant")
			wantOAuthError(t, "a refresh for another resource", a.token(t, withValue(a.refreshForm(got.Refresh), "resource", "https://evil.example/mcp")), "invalid_target", "invalid_grant")
		},
		"it asks for more": func(t *testing.T) {
			a := s.native(t)
			r := a.request(func(q url.Values) { q.Set("scope", "mcp:read") })
			got := good(t, a.token(t, r.exchangeForm(p.approve(t, r, nil))))
			answer := a.token(t, withValue(a.refreshForm(got.Refresh), "scope", "mcp:read mcp:write"))
			var more tokens
			if answer.Into(&more) == nil && strings.Contains(more.Scope, "mcp:write") || answer.Status >= 500 {
				t.Errorf("got %v, want no mcp:write", answer)
			}
		},
		"revoking ends the family, and only with the client's credentials": func(t *testing.T) {
			a, other := s.native(t), s.native(t)
			got := p.grant(t, a, nil)
			s.post(t, "/oauth/revoke", other.address, url.Values{"token": {got.Refresh}, "client_id": {other.id}})
			s.wantAlive(t, "the token after another client revoked it", got.Access)
			for _, token := range []string{got.Refresh, got.Refresh, "crt_unknown"} {
				if answer := s.post(t, "/oauth/revoke", a.address, url.Values{"token": {token}, "client_id": {a.id}}); answer.Status != http.StatusOK {
					t.Errorf("revoke: got %v, want 200", answer)
				}
			}
			s.wantDead(t, "the access token of a family that was revoked", got.Access)
			wantOAuthError(t, "the refresh token", a.token(t, a.refreshForm(got.Refresh)), "invalid_grant")
		},
		"tokens of nobody": func(t *testing.T) {
			jwt := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
				base64.RawURLEncoding.EncodeToString([]byte(`{"iss":"https://evil.example","aud":"`+s.base+`/mcp"}`)) + "."
			for _, token := range []string{"cra_" + strings.Repeat("a", 43), "cra_", "x", jwt, strings.Repeat("a", 8000), "crier_" + strings.Repeat("0", 40)} {
				s.wantDead(t, "the token "+token[:min(len(token), 20)], token)
			}
		},
	})
}

func withValue(form url.Values, name, value string) url.Values {
	form.Set(name, value)
	return form
}
