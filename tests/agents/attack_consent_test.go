package agents

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"crier/tenancy"
)

func TestAttack_Consent(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	attacks(t, map[string]func(t *testing.T){
		"another site sends the form": func(t *testing.T) {
			for what, headers := range map[string][]string{
				"another origin":        {"Origin", "https://evil.example"},
				"another port":          {"Origin", "http://127.0.0.1:1"},
				"a site that says so":   {"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
				"a sibling":             {"Origin", strings.Replace(s.base, "127.0.0.1", "evil.127.0.0.1.example", 1)},
				"the origin in capital": {"Origin", s.base + ".evil.example"},
			} {
				r := s.native(t).request(nil)
				a := p.submit(t, r, p.consentForm(t, r), approveButton, headers...)
				wantRefusal(t, what, a)
				if back(t, a, r.app.redirect) != nil {
					t.Errorf("%s: got a code", what)
				}
			}
		},
		"the pages are framed": func(t *testing.T) {
			r := s.native(t).request(nil)
			for who, visitor := range map[string]*person{"sign-in": {s: s, address: address()}, "consent": p} {
				a := visitor.browse(t, http.MethodGet, r.path(), nil)
				policy := a.Header.Get("Content-Security-Policy")
				if !strings.Contains(policy, "frame-ancestors 'none'") || !strings.Contains(policy, "default-src 'none'") {
					t.Errorf("the %s page: got the policy %q, want no frames and nothing by default", who, policy)
				}
				if cache := a.Header.Get("Cache-Control"); !strings.Contains(cache, "no-store") {
					t.Errorf("the %s page: got Cache-Control %q, want no-store", who, cache)
				}
			}
		},
		"the form of another session": func(t *testing.T) {
			r := s.native(t).request(nil)
			victim := s.owner(t)
			a := victim.submit(t, r, p.consentForm(t, r), approveButton)
			if back(t, a, r.app.redirect).Get("code") != "" || a.Status >= 500 {
				t.Errorf("got %v, want no code", a)
			}
			if apps := victim.approvedApps(t); len(apps) != 0 {
				t.Errorf("got the approved apps %v, want none", apps)
			}
		},
		"the form of another request": func(t *testing.T) {
			mine, other := s.native(t).request(nil), s.native(t).request(nil)
			f := p.consentForm(t, mine)
			a := p.submit(t, other, f, approveButton)
			q := back(t, a, other.app.redirect)
			if q.Get("state") == other.query.Get("state") && q.Get("code") != "" || a.Status >= 500 {
				t.Errorf("got %v, want no code for the other request", a)
			}
			// Each hidden value on its own is exchanged for the other form's.
			for i, x := range f.fields {
				if x.kind != "hidden" {
					continue
				}
				changed := p.consentForm(t, mine)
				theirs := p.consentForm(t, other)
				if i >= len(theirs.fields) || i >= len(changed.fields) || theirs.fields[i].value == changed.fields[i].value {
					continue
				}
				changed.fields[i].value = theirs.fields[i].value
				a := p.submit(t, mine, changed, approveButton)
				for _, r := range []request{mine, other} {
					if q := back(t, a, r.app.redirect); q.Get("code") != "" && q.Get("state") != mine.query.Get("state") || a.Status >= 500 {
						t.Errorf("the field %s of another form: got %v, want no code", x.name, a)
					}
				}
			}
		},
		"hidden values that lead elsewhere": func(t *testing.T) {
			r := s.native(t).request(nil)
			for i := range p.consentForm(t, r).fields {
				f := p.consentForm(t, r)
				if i >= len(f.fields) || f.fields[i].kind != "hidden" {
					continue
				}
				f.fields[i].value = strings.ReplaceAll(f.fields[i].value, url.QueryEscape(r.app.redirect), url.QueryEscape("https://evil.example/"))
				f.fields[i].value = strings.ReplaceAll(f.fields[i].value, r.app.redirect, "https://evil.example/")
				a := p.submit(t, r, f, approveButton)
				if back(t, a, "https://evil.example/") != nil || a.Status >= 500 {
					t.Errorf("the field %s: got %v, which leads to another host", f.fields[i].name, a)
				}
			}
		},
		"the form is sent twice": func(t *testing.T) {
			r := s.native(t).request(nil)
			f := p.consentForm(t, r)
			if back(t, p.submit(t, r, f, approveButton), r.app.redirect).Get("code") == "" {
				t.Fatal("the first time: got no code")
			}
			if a := p.submit(t, r, f, approveButton); back(t, a, r.app.redirect).Get("code") != "" || a.Status >= 500 {
				t.Errorf("the second time: got %v, want no code", a)
			}
		},
		"a form without its values": func(t *testing.T) {
			r := s.native(t).request(nil)
			f := p.consentForm(t, r)
			pressed := f.button(approveButton)
			for _, form := range []url.Values{{}, {pressed.name: {pressed.value}}} {
				a := p.browse(t, http.MethodPost, f.path(t, s.base+r.path()), form)
				if back(t, a, r.app.redirect).Get("code") != "" || a.Status >= 500 {
					t.Errorf("the form %v: got %v, want no code", form, a)
				}
			}
		},
		"nobody is signed in": func(t *testing.T) {
			r := s.native(t).request(nil)
			f := p.consentForm(t, r)
			a := (&person{s: s, address: address()}).submit(t, r, f, approveButton)
			if back(t, a, r.app.redirect).Get("code") != "" || a.Status >= 500 {
				t.Errorf("got %v, want no code", a)
			}
		},
		"an impersonator approves": func(t *testing.T) {
			operator, victim := s.operator(t), s.owner(t)
			var found []struct{ ID string }
			operator.want(t, &found, http.MethodGet, "/user/impersonate?name="+victim.email, nil)
			a := operator.ask(t, http.MethodPost, "/user/impersonate", m{"id": found[0].ID})
			operator.cookies = []string{"impersonate=" + a.Cookie("impersonate")}
			if a.Cookie("impersonate") == "" {
				operator.cookies = []string{"impersonate=" + found[0].ID}
			}
			r := s.native(t).request(nil)
			page := operator.browse(t, http.MethodGet, r.path(), nil)
			if page.Status == http.StatusOK && bytes.Contains([]byte(page.Body), []byte("<form")) {
				f := operator.consentForm(t, r)
				page = operator.submit(t, r, f, approveButton)
			}
			if back(t, page, r.app.redirect).Get("code") != "" || page.Status >= 500 {
				t.Errorf("got %v, want no code", page)
			}
			if apps := victim.approvedApps(t); len(apps) != 0 {
				t.Errorf("got the approved apps %v, want none", apps)
			}
		},
		"denying": func(t *testing.T) {
			r := s.native(t).request(nil)
			a := p.submit(t, r, p.consentForm(t, r), denyButton)
			q := back(t, a, r.app.redirect)
			if q.Get("error") != "access_denied" || q.Get("state") != r.query.Get("state") || q.Get("iss") != s.base || q.Has("code") {
				t.Errorf("got %v, want access_denied with state and iss", q)
			}
		},
		"a form fills the state": func(t *testing.T) {
			a := s.native(t)
			state := `"><script>alert(1)</script>&code=x#` + strings.Repeat("s", 500)
			r := a.request(func(q url.Values) { q.Set("state", state) })
			answer := p.submit(t, r, p.consentForm(t, r), approveButton)
			if q := back(t, answer, a.redirect); q.Get("state") != state || len(q["code"]) != 1 || strings.Contains(answer.Body, "<script>alert") {
				t.Errorf("got %v with %v, want the state as it was", answer, q)
			}
		},
	})
}

func TestAttack_MetadataDocument(t *testing.T) {
	t.Parallel()
	s, documents := startWithDocuments(t) // its own, because the number of documents is limited
	p := s.owner(t)
	redirect := "https://client.example/callback"
	document := metadata("Documented", redirect)
	text := func(body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(body)) // the service reports what is missing
		}
	}
	fine := documents.publish(t, "/fine/metadata.json", document)
	own := func(path, members string) string {
		return documents.serve(path, text(fmt.Sprintf(`{"client_id": %q, "client_name": "X", "redirect_uris": [%q]%s}`, documents.URL+path, redirect, members)))
	}
	p.consentForm(t, (&app{s: s, id: fine, redirect: redirect}).request(nil))
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	for what, id := range map[string]string{
		"another port of loopback": "https://127.0.0.1:1/metadata.json", "loopback by name": "https://localhost/metadata.json",
		"a private address": "https://10.0.0.1/metadata.json", "the address of a cloud": "https://169.254.169.254/latest/meta-data",
		"IPv6 loopback": "https://[::1]/metadata.json", "an address as a number": "https://2130706433/metadata.json",
		"http": strings.Replace(fine, "https:", "http:", 1), "no path": documents.URL, "the root": documents.URL + "/",
		"a fragment": fine + "#x", "a user": strings.Replace(fine, "https://", "https://user@", 1), "dots": documents.URL + "/fine/../fine/metadata.json",
		"dots that are encoded": documents.URL + "/fine/%2e%2e/fine/metadata.json",
		"nothing there":         documents.URL + "/nothing/metadata.json",
		"a redirect":            documents.serve("/redirect/metadata.json", http.RedirectHandler(fine, http.StatusFound).ServeHTTP),
		"an error":              documents.serve("/error/metadata.json", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }),
		"no JSON":               documents.serve("/text/metadata.json", text("hello")),
		"the id of another":     documents.serve("/other/metadata.json", text(fmt.Sprintf(`{"client_id": %q, "redirect_uris": [%q]}`, fine, redirect))),
		"no id":                 documents.serve("/none/metadata.json", text(fmt.Sprintf(`{"redirect_uris": [%q]}`, redirect))),
		"huge":                  own("/huge/metadata.json", fmt.Sprintf(`, "x": %q`, strings.Repeat("x", 65<<10))),
		"a secret":              own("/secret/metadata.json", `, "token_endpoint_auth_method": "client_secret_basic"`),
		"a script to return to": documents.serve("/script/metadata.json", text(fmt.Sprintf(`{"client_id": %q, "redirect_uris": ["javascript:alert(1)"]}`, documents.URL+"/script/metadata.json"))),
		"slow": documents.serve("/slow/metadata.json", func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}),
	} {
		a := &app{s: s, id: id, redirect: redirect, name: what}
		r := a.request(nil)
		if what == "a script to return to" {
			r.query.Set("redirect_uri", "javascript:alert(1)")
		}
		p.wantNoConsent(t, what, r, "")
	}

	t.Run("a document that changes before the answer", func(t *testing.T) {
		path := "/changing/metadata.json"
		a := &app{s: s, id: documents.publish(t, path, document), method: "none", redirect: redirect, address: address()}
		r := a.request(nil)
		f := p.consentForm(t, r)
		documents.publish(t, path, metadata("Somebody else", "https://evil.example/callback"))
		answer := p.submit(t, r, f, approveButton)
		if back(t, answer, redirect).Get("code") != "" || back(t, answer, "https://evil.example/callback") != nil || answer.Status >= 500 {
			t.Errorf("got %v, want no code", answer)
		}
	})
	t.Run("only the host of a document is verified", func(t *testing.T) {
		host := strings.TrimPrefix(documents.URL, "https://")
		verified := regexp.MustCompile(`(?i)\bverified\b`)
		unverified := regexp.MustCompile(`(?i)(not|un)\s*verified`)
		page := p.browse(t, http.MethodGet, (&app{s: s, id: fine, redirect: redirect}).request(nil).path(), nil).Body
		if !strings.Contains(page, "127.0.0.1") || !verified.MatchString(unverified.ReplaceAllString(page, "")) {
			t.Errorf("the page of a document does not say that %s is verified:\n%s", host, page)
		}
		page = p.browse(t, http.MethodGet, s.register(t, metadata("Claude", "https://claude.ai.evil.example/callback")).request(nil).path(), nil).Body
		if verified.MatchString(unverified.ReplaceAllString(page, "")) || !strings.Contains(page, "claude.ai.evil.example") {
			t.Errorf("the page of a client that registered says that it is verified, or not where the code goes:\n%s", page)
		}
	})
}

// TestAttack_DocumentFlood checks that a visitor who makes the service fetch many documents does
// not keep others from connecting.
func TestAttack_DocumentFlood(t *testing.T) {
	t.Parallel()
	const redirect = "https://client.example/callback"
	attacks(t, map[string]func(t *testing.T){
		"of one host": func(t *testing.T) {
			s, documents := startWithDocuments(t)
			s.flood(t, documents, redirect, func(i int) string { return fmt.Sprintf("%s/nothing/%d/metadata.json", documents.URL, i) })
		},
		"of many hosts": func(t *testing.T) {
			s, documents := startWithDocuments(t)
			s.flood(t, documents, redirect, func(i int) string { return fmt.Sprintf("https://10.0.0.%d/metadata.json", i+1) })
		},
	})
}

// flood asks for 150 documents from one address, and then for a good one from another. How many
// requests one address may make is set by APP_LIMIT, which is high in these tests.
func (s *service) flood(t *testing.T, documents *documents, redirect string, id func(i int) string) {
	t.Helper()
	visitor := &person{s: s, address: address()}
	stopped := 0
	for i := range 150 {
		answer := visitor.browse(t, http.MethodGet, (&app{s: s, id: id(i), redirect: redirect}).request(nil).path(), nil)
		wantRefusal(t, "a document that does not exist", answer)
		if answer.Status == http.StatusTooManyRequests {
			stopped++
		}
	}
	fine := documents.publish(t, "/fine/metadata.json", metadata("Documented", redirect))
	answer := s.owner(t).browse(t, http.MethodGet, (&app{s: s, id: fine, redirect: redirect}).request(nil).path(), nil)
	if answer.Status != http.StatusOK {
		t.Errorf("another person's client after the flood, of which %d were stopped: got %d, want the consent page", stopped, answer.Status)
	}
}

func TestAttack_Person(t *testing.T) {
	t.Parallel()
	s := common(t)
	other := s.second(t)
	attacks(t, map[string]func(t *testing.T){
		"a member who was removed": func(t *testing.T) {
			owner := s.owner(t)
			member := owner.colleague(t, tenancy.RoleUser)
			a := s.native(t)
			got := member.grant(t, a, nil)
			owner.want(t, nil, http.MethodDelete, "/settings/team/"+member.self(t), nil)
			checkRefusedSoon(t, s.base, got.Access)
			checkRefusedSoon(t, other, got.Access)
			wantOAuthError(t, "the refresh token of a removed member", a.token(t, a.refreshForm(got.Refresh)), "invalid_grant")
		},
		"a member without the factor that is required": func(t *testing.T) {
			owner := s.owner(t)
			member := owner.colleague(t, tenancy.RoleAdmin)
			a := s.native(t)
			got := member.grant(t, a, nil)
			code := owner.enroll(t)
			owner.want(t, nil, http.MethodPut, "/user/mfa/policy", m{"required": true, "password": password, "code": code()})
			await(t, "the refusal of a person without a factor", func() bool {
				return (agent{base: other, token: got.Access}).rpc(t, "tools/list", m{}).Status >= 400
			}, func() string { return "a success" })
			answer := rest{base: s.base, credential: got.Access}.ask(t, http.MethodGet, "/posts?startDate="+in(0)+"&endDate="+tomorrow(), nil)
			wantRefusal(t, "REST", answer, http.StatusUnauthorized, http.StatusForbidden)
		},
		"a USER reaches no more with a token": func(t *testing.T) {
			owner := s.owner(t)
			member := owner.colleague(t, tenancy.RoleUser)
			got := member.grant(t, s.native(t), nil)
			c := owner.connect(t)
			for _, route := range []string{
				"GET /settings/team", "POST /settings/team", "GET /settings/api-keys", "POST /settings/api-keys", "GET /settings/audit", "GET /user/self",
				"GET /user/approved-apps", "PUT /settings/organization", "POST /user/change-password", "GET /user/impersonate", "POST /user/oauth-app",
				"POST /webhooks", "DELETE /webhooks/x", "POST /settings/delete-organization", "GET /approvals", "PUT /settings/pause",
			} {
				method, path, _ := strings.Cut(route, " ")
				for _, header := range []string{"auth", "Authorization"} {
					value := got.Access
					if header == "Authorization" {
						value = "Bearer " + value
					}
					p := &person{s: s, address: address()}
					wantRefusal(t, route+" with the token in "+header, p.ask(t, method, path, m{}, header, value), 401, 403)
				}
			}
			for _, route := range []string{
				"POST /webhooks", "GET /webhooks", "DELETE /webhooks/" + c.id, "POST /webhooks/" + c.id + "/rotate-secret", "DELETE /integrations/" + c.id,
				"POST /connectors/sandbox/authorize", "GET /social/sandbox-oauth",
			} {
				method, path, _ := strings.Cut(route, " ")
				answer := rest{base: s.base, credential: got.Access}.ask(t, method, path, m{})
				wantRefusal(t, route, answer, http.StatusForbidden)
			}
		},
	})
}

// enroll enables a second factor and returns a function that returns an unused code.
func (p *person) enroll(t testing.TB) func() string {
	t.Helper()
	var begun struct{ Secret string }
	p.want(t, &begun, http.MethodPost, "/user/mfa/begin", m{"password": password})
	last := int64(0)
	code := func() string {
		t.Helper()
		await(t, "the step of the next code", func() bool { return last <= time.Now().Unix()/30 }, func() string { return "no new step" })
		last = max(last+1, time.Now().Unix()/30)
		text, err := totp.GenerateCode(begun.Secret, time.Unix(last*30, 0))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	p.want(t, nil, http.MethodPost, "/user/mfa/confirm", m{"code": code()})
	return code
}
