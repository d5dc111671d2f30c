package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"crier/tests/call"
)

// browser is the browser of a person, with or without an account.
type browser struct {
	*instance
	node    int    // the process that gets the next request
	address string // the client's address, as the proxy reports it
	cookies map[string]string
	// email, id and org belong to the person who is signed in. self sets id and org.
	email, id, org string
}

// addresses counts the browsers, to give each a different address.
var addresses atomic.Int64

// browse returns a browser with an unused address and no cookies.
func (s *instance) browse() *browser {
	n := addresses.Add(1)
	return &browser{instance: s, address: fmt.Sprintf("198.51.%d.%d", n/250, n%250+1), cookies: map[string]string{}}
}

// on returns the same browser on another process. Both share the cookies.
func (b *browser) on(node int) *browser {
	other := *b
	other.node = node
	return &other
}

// request returns the request that ask sends.
func (b *browser) request(t *testing.T, method, path string, body any, headers ...string) *http.Request {
	t.Helper()
	all := []string{"X-Forwarded-For", b.address, "User-Agent", "Firefox", "Origin", instanceURL}
	req, err := call.Request(t.Context(), method, "http://"+b.nodes[b.node].address+path, body, append(all, headers...)...)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for name := range b.cookies {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		req.AddCookie(&http.Cookie{Name: name, Value: b.cookies[name]})
	}
	return req
}

// ask sends a request like a page of the instance, and keeps the cookies of the response.
func (b *browser) ask(t *testing.T, method, path string, body any, headers ...string) call.Answer {
	t.Helper()
	return b.send(t, b.request(t, method, path, body, headers...))
}

func (b *browser) send(t *testing.T, req *http.Request) call.Answer {
	t.Helper()
	a, err := call.Send(fresh(), req)
	if err != nil {
		t.Fatal(err)
	}
	b.heard.add(req.Method+" "+req.URL.Path, a)
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		if c.MaxAge < 0 || c.Value == "" {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	return a
}

// want is like ask but requires the status. It decodes the response into out, unless out is nil.
func (b *browser) want(t *testing.T, status int, out any, method, path string, body any) call.Answer {
	t.Helper()
	a := b.ask(t, method, path, body)
	if a.Status != status {
		t.Fatalf("%s %s of %s: got %v, want %d", method, path, b.email, a, status)
	}
	if out != nil {
		if err := a.Into(out); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return a
}

// withKey calls the public API of a process with a key and returns the status.
func (s *instance) withKey(t *testing.T, node int, key string) int {
	t.Helper()
	a, err := call.Do(t.Context(), fresh(), http.MethodGet, "http://"+s.nodes[node].address+"/public/v1/is-connected", nil,
		"Authorization", key)
	if err != nil {
		t.Fatal(err)
	}
	s.heard.add("GET /public/v1/is-connected", a)
	return a.Status
}

// signInAnswer holds the members of the responses to the steps of a sign-in.
type signInAnswer struct {
	Register, Activate, Login, Can, Linked bool
	Token, MFAToken, RestoreToken, Until   string
	MFARequired, MFAEnrollmentRequired     bool
	DeletionRequested                      bool
	RecoveryCodes                          []string
}

// selfAnswer is the response of GET /user/self.
type selfAnswer struct {
	ID, Email, Name, OrgID, Role, Access, Timezone, Tier string
	Verified, Admin, Impersonate                         bool
}

// account registers an address, follows the link in the mail and returns the browser, which is
// signed in.
func (s *instance) account(t *testing.T, email string) *browser {
	t.Helper()
	b := s.browse()
	b.register(t, email, m{"company": "Of " + email, "fullname": "Person"})
	b.activate(t, email, 1)
	return b
}

// register registers an address with the tests' password, on the browser's process.
func (b *browser) register(t *testing.T, email string, more m) {
	t.Helper()
	body := m{"provider": "LOCAL", "email": email, "password": password}
	for name, value := range more {
		body[name] = value
	}
	var out signInAnswer
	b.want(t, http.StatusCreated, &out, http.MethodPost, "/auth/register", body)
	if !out.Activate || b.cookies["auth"] != "" {
		t.Fatalf("registration of %s: got %+v, want activate and no session", email, out)
	}
}

// activate follows the link in the nth registration mail to an address.
func (b *browser) activate(t *testing.T, email string, nth int) {
	t.Helper()
	code := link(t, b.letter(t, email, "Activate your account", nth))
	var out signInAnswer
	b.want(t, http.StatusCreated, &out, http.MethodPost, "/auth/activate", m{"code": code})
	if !out.Can || !out.Login || b.cookies["auth"] == "" {
		t.Fatalf("activation of %s: got %+v, want a session", email, out)
	}
	b.email = email
	b.self(t)
}

// self returns the person of the session and stores the ids.
func (b *browser) self(t *testing.T) (out selfAnswer) {
	t.Helper()
	b.want(t, http.StatusOK, &out, http.MethodGet, "/user/self", nil)
	b.id, b.org = out.ID, out.OrgID
	return out
}

// login logs in with an address and the tests' password.
func (b *browser) login(t *testing.T, email string) (out signInAnswer) {
	t.Helper()
	b.want(t, http.StatusCreated, &out, http.MethodPost, "/auth/login", m{"email": email, "password": password})
	b.email = email
	return out
}

// enroll enables a second factor and returns it with its recovery codes.
func (b *browser) enroll(t *testing.T) (*device, []string) {
	t.Helper()
	var begun struct{ Secret, OtpauthURL string }
	b.want(t, http.StatusCreated, &begun, http.MethodPost, "/user/mfa/begin", m{"password": password})
	d := &device{secret: begun.Secret}
	var done signInAnswer
	b.want(t, http.StatusCreated, &done, http.MethodPost, "/user/mfa/confirm", m{"code": d.code(t)})
	if len(done.RecoveryCodes) != 10 {
		t.Fatalf("got %d recovery codes, want 10", len(done.RecoveryCodes))
	}
	return d, done.RecoveryCodes
}

// createKey creates an API key and returns it with its id.
func (b *browser) createKey(t *testing.T, name string) (key, id string) {
	t.Helper()
	var made struct{ ID, Key string }
	b.want(t, http.StatusCreated, &made, http.MethodPost, "/settings/api-keys", m{"name": name})
	return made.Key, made.ID
}

// invite invites an address, or anybody if email is "". It returns the token of the link and the id
// of the invitation.
func (b *browser) invite(t *testing.T, email, role string, send bool) (token, id string) {
	t.Helper()
	var made struct{ ID, URL string }
	b.want(t, http.StatusCreated, &made, http.MethodPost, "/settings/team", m{"email": email, "role": role, "sendEmail": send})
	token, ok := strings.CutPrefix(made.URL, frontendURL+"/#org=")
	if !ok {
		t.Fatalf("got the link %s, want one of the dashboard", made.URL)
	}
	return token, made.ID
}

// join uses an invitation and returns the id of the organization, or "" if it is null.
func (b *browser) join(t *testing.T, token string) string {
	t.Helper()
	var out struct{ ID *string }
	b.want(t, http.StatusCreated, &out, http.MethodPost, "/user/join-org", m{"org": token})
	if out.ID == nil {
		return ""
	}
	return *out.ID
}

// audit returns the entries in the audit log of the organization.
func (b *browser) audit(t *testing.T) (out []auditEntry) {
	t.Helper()
	b.want(t, http.StatusOK, &out, http.MethodGet, "/settings/audit?limit=1000", nil)
	return out
}

// auditEntry is an entry in the audit log.
type auditEntry struct{ Action, Actor, Behind, Subject, Via, Address string }
