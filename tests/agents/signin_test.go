package agents

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"crier/tenancy"
	"crier/tests/call"
)

// visit sends a browser's request, keeps the cookies and follows redirects within the service. It
// returns the last answer with its address.
func (p *person) visit(t testing.TB, method, path string, form url.Values) (call.Answer, string) {
	t.Helper()
	for range 10 {
		a := p.browse(t, method, path, form)
		for _, c := range (&http.Response{Header: a.Header}).Cookies() {
			p.cookies = slices.DeleteFunc(p.cookies, func(x string) bool { return strings.HasPrefix(x, c.Name+"=") })
			if c.MaxAge >= 0 && c.Value != "" {
				p.cookies = append(p.cookies, c.Name+"="+c.Value)
			}
		}
		to := a.Header.Get("Location")
		if a.Status < 300 || a.Status > 399 || to == "" {
			return a, p.s.base + path
		}
		from, err := url.Parse(p.s.base + path)
		if err != nil {
			t.Fatal(err)
		}
		next, err := from.Parse(to)
		if err != nil || next.Scheme+"://"+next.Host != p.s.base {
			t.Fatalf("%s %s leads to %s", method, path, to)
		}
		method, path, form = http.MethodGet, next.RequestURI(), nil
	}
	t.Fatalf("%s redirects without end", path)
	return call.Answer{}, ""
}

var (
	anyButton  = regexp.MustCompile(`.`)
	codeLabel  = regexp.MustCompile(`(?i)code`)
	secretText = regexp.MustCompile(`\b[A-Z2-7]{4}(?:[ -]?[A-Z2-7]{2,4}){3,15}\b`)
)

// signInOnPages signs a browser without a session in, step by step, until it can approve. secret is
// the person's second factor; if it is "", the pages may enrol one. It returns the secret.
func (p *person) signInOnPages(t testing.TB, r request, email, secret string) string {
	t.Helper()
	page, at := p.visit(t, http.MethodGet, r.path(), nil)
	last := int64(0)
	for range 6 {
		if page.Status != http.StatusOK {
			t.Fatalf("%s: got %v, want a page", at, page)
		}
		if readsApprove(page.Body) {
			return secret
		}
		if !strings.Contains(page.Body, "<form") { // a page that only leads on
			links := leads(t, page.Body)
			page, at = p.visit(t, http.MethodGet, links[len(links)-1], nil)
			continue
		}
		f := readForm(t, page.Body, anyButton)
		pressed := &f.buttons[0]
		switch {
		case f.has(regexp.MustCompile(`(?i)password`)):
			f.fill(t, regexp.MustCompile(`(?i)e-?mail`), email)
			f.fill(t, regexp.MustCompile(`(?i)password`), password)
			pressed = f.button(signInButton)
		case f.has(codeLabel):
			if secret == "" {
				secret = strings.NewReplacer(" ", "", "-", "").Replace(secretText.FindString(page.Body))
			}
			await(t, "the step of the next code", func() bool { return last <= time.Now().Unix()/30 }, func() string { return "no new step" })
			last = max(last+1, time.Now().Unix()/30)
			code, err := totp.GenerateCode(secret, time.Unix(last*30, 0))
			if err != nil {
				t.Fatalf("the page shows no secret: %v in\n%s", err, page.Body)
			}
			f.fill(t, codeLabel, code)
		}
		page, at = p.visit(t, http.MethodPost, f.path(t, at), f.values(pressed))
	}
	t.Fatalf("after six steps there is no button that approves: %v", page)
	return ""
}

func (f *form) has(label *regexp.Regexp) bool {
	return slices.ContainsFunc(f.fields, func(x field) bool { return x.kind != "hidden" && label.MatchString(x.label) })
}

// TestClients_SignIn checks the ways into the consent page.
func TestClients_SignIn(t *testing.T) {
	t.Parallel()
	s := common(t)
	attacks(t, map[string]func(t *testing.T){
		"with a password": func(t *testing.T) {
			p := s.owner(t)
			r := s.native(t).request(nil)
			visitor := &person{s: s, address: address()}
			visitor.signInOnPages(t, r, p.email, "")
			good(t, r.app.token(t, r.exchangeForm(visitor.approve(t, r, nil))))
		},
		"with a second factor": func(t *testing.T) {
			p := s.owner(t)
			var begun struct{ Secret string }
			p.want(t, &begun, http.MethodPost, "/user/mfa/begin", m{"password": password})
			code, err := totp.GenerateCode(begun.Secret, time.Now().Add(-30*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			p.want(t, nil, http.MethodPost, "/user/mfa/confirm", m{"code": code})
			visitor := &person{s: s, address: address()}
			visitor.signInOnPages(t, s.native(t).request(nil), p.email, begun.Secret)
		},
		"with a factor that the organization requires": func(t *testing.T) {
			owner := s.owner(t)
			member := owner.colleague(t, tenancy.RoleUser)
			code := owner.enroll(t)
			owner.want(t, nil, http.MethodPut, "/user/mfa/policy", m{"required": true, "password": password, "code": code()})
			visitor := &person{s: s, address: address()}
			if secret := visitor.signInOnPages(t, s.native(t).request(nil), member.email, ""); secret == "" {
				t.Error("the person was not asked to enrol a factor")
			}
		},
	})
}

// TestAttack_SignIn checks that the sign-in page reveals nothing without the password and leads
// nowhere else.
func TestAttack_SignIn(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	r := s.native(t).request(nil)
	open := func() (*person, *form, string) {
		visitor := &person{s: s, address: address()}
		page, at := visitor.visit(t, http.MethodGet, r.path(), nil)
		f := readForm(t, page.Body, signInButton)
		f.fill(t, regexp.MustCompile(`(?i)e-?mail`), p.email)
		f.fill(t, regexp.MustCompile(`(?i)password`), password)
		return visitor, f, at
	}
	visitor, f, at := open()
	f.fill(t, regexp.MustCompile(`(?i)password`), "wrong "+password)
	if page, _ := visitor.visit(t, http.MethodPost, f.path(t, at), f.values(f.button(signInButton))); readsApprove(page.Body) || page.Status >= 500 || strings.Contains(page.Body, password) {
		t.Errorf("a wrong password: got %v, want the sign-in page without the password", page)
	}
	_, f, at = open()
	for i, x := range f.fields {
		if x.kind != "hidden" {
			continue
		}
		for _, evil := range []string{"https://evil.example/", "//evil.example/", `/\evil.example/`, "javascript:alert(1)", "/oauth/authorize?x=1\r\nLocation: https://evil.example/"} {
			visitor, changed, _ := open()
			changed.fields[i].value = evil
			a := visitor.browse(t, http.MethodPost, changed.path(t, at), changed.values(changed.button(signInButton)))
			to, err := url.Parse(a.Header.Get("Location"))
			if err != nil || to.Host != "" && "http://"+to.Host != s.base || strings.HasPrefix(to.Path, `/\`) || a.Status >= 500 {
				t.Errorf("the field %s as %q: got %d to %s", x.name, evil, a.Status, a.Header.Get("Location"))
			}
			for _, place := range leads(t, a.Body) {
				if strings.Contains(place, "evil.example") || strings.HasPrefix(place, "javascript:") {
					t.Errorf("the field %s as %q: the page leads to %s", x.name, evil, place)
				}
			}
		}
	}
	visitor, f, at = open()
	a := visitor.browse(t, http.MethodPost, f.path(t, at), f.values(f.button(signInButton)), "Origin", "https://evil.example")
	if a.Cookie("auth") != "" || a.Status < 400 || a.Status >= 500 {
		t.Errorf("another site signs a person in: got %v, want a refusal", a)
	}
}
