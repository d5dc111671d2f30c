package agents

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/call"
)

// person is somebody who is signed in, in one organization.
type person struct {
	s         *service
	email     string
	session   string
	principal tenancy.Principal
	address   string
	cookies   []string // sent with each request, besides the session
}

// owner creates an organization and signs its owner in.
func (s *service) owner(t testing.TB) *person {
	t.Helper()
	email := unique("owner-") + "@crier.test"
	p, err := s.accounts.CreateOwner(t.Context(), registration.NewOwner{
		Email: email, Name: "Owner", Password: password, Organization: "Of " + email,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.signIn(t, email, p)
}

// operator creates an administrator of the instance and signs them in.
func (s *service) operator(t testing.TB) *person {
	t.Helper()
	email := unique("operator-") + "@crier.test"
	p, err := s.accounts.CreateOwner(t.Context(), registration.NewOwner{
		Email: email, Name: "Operator", Password: password, Organization: "Of " + email, Instance: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.signIn(t, email, p)
}

func (s *service) signIn(t testing.TB, email string, principal tenancy.Principal) *person {
	t.Helper()
	p := &person{s: s, email: email, address: address(), principal: principal}
	a := p.ask(t, http.MethodPost, "/auth/login", m{"provider": "LOCAL", "email": email, "password": password})
	p.session = a.Cookie("auth")
	if a.Status != http.StatusCreated || p.session == "" {
		t.Fatalf("sign-in: got %v, want a session", a)
	}
	return p
}

// colleague adds a member to the person's organization and signs them in.
func (p *person) colleague(t testing.TB, role tenancy.Role) *person {
	t.Helper()
	_, link, err := p.s.accounts.Invite(t.Context(), p.principal, tenancy.NewInvitation{Role: role})
	if err != nil {
		t.Fatal(err)
	}
	email := unique("colleague-") + "@crier.test"
	in, err := p.s.accounts.Register(t.Context(), tenancy.Registration{
		Email: email, Name: "Colleague", Password: password, Invitation: link,
		From: tenancy.Source{Client: "203.0.113.9", Site: "203.0.113.9"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &person{s: p.s, email: email, session: in.Session, address: address()}
	c.principal.Org = p.principal.Org
	return c
}

// key creates an API key of the person's organization.
func (p *person) key(t testing.TB) string {
	t.Helper()
	key, _, err := p.s.accounts.CreateKey(t.Context(), p.principal, tenancy.NewKey{Name: unique("key-")})
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// ask sends a request with the person's session, as the dashboard does.
func (p *person) ask(t testing.TB, method, path string, body any, headers ...string) call.Answer {
	t.Helper()
	all := []string{"X-Forwarded-For", p.address, "Origin", p.s.base, "auth", p.session}
	a, err := call.Do(t.Context(), browserless(), method, p.s.base+path, body, append(all, headers...)...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// want is like ask but requires a success. It decodes the response into out, unless out is nil.
func (p *person) want(t testing.TB, out any, method, path string, body any) {
	t.Helper()
	if err := p.ask(t, method, path, body).Into(out); err != nil {
		t.Fatalf("%s %s: got %v, want a success", method, path, err)
	}
}

// self returns the id of the person.
func (p *person) self(t testing.TB) string {
	t.Helper()
	var out struct{ ID string }
	p.want(t, &out, http.MethodGet, "/user/self", nil)
	return out.ID
}

// channel is a connected account of the sandbox.
type channel struct{ id, account string }

// connect connects a new account of the sandbox.
func (p *person) connect(t testing.TB) channel {
	t.Helper()
	var begun struct{ URL string }
	p.want(t, &begun, http.MethodGet, "/integrations/social/sandbox?refresh=&externalUrl=&redirectUrl=&onboarding=", nil)
	account := unique("account-")
	fields, err := json.Marshal(map[string]string{
		"service": p.s.sandbox.URL, "name": account, "password": password, "grade": "A",
	})
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ ID string }
	p.want(t, &made, http.MethodPost, "/integrations/social-connect/sandbox", m{
		"state": begun.URL, "code": base64.StdEncoding.EncodeToString(fields), "timezone": "0",
	})
	return channel{id: made.ID, account: account}
}

// published returns how many posts the sandbox has published on the channel.
func (s *service) published(t testing.TB, c channel) int {
	t.Helper()
	all, err := s.sandbox.Posts(t.Context(), c.account)
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// rest is a caller of the public API with a key or a token.
type rest struct {
	base, credential string
}

func (r rest) ask(t testing.TB, method, path string, body any) call.Answer {
	t.Helper()
	a, err := call.Do(t.Context(), browserless(), method, r.base+"/public/v1"+path, body,
		"Authorization", r.credential, "X-Forwarded-For", "203.0.113.7")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (r rest) want(t testing.TB, out any, method, path string, body any) {
	t.Helper()
	if err := r.ask(t, method, path, body).Into(out); err != nil {
		t.Fatalf("%s %s: got %v, want a success", method, path, err)
	}
}

// tomorrow returns a time of the next day, as the API writes it.
func tomorrow() string { return in(24 * time.Hour) }

func in(d time.Duration) string {
	return time.Now().Add(d).UTC().Truncate(time.Second).Format(time.RFC3339)
}

// postBody is the body of POST /posts for one channel.
func postBody(kind, date, channel, text string) m {
	return m{
		"type": kind, "date": date, "shortLink": false, "tags": []any{},
		"posts": []m{{"integration": m{"id": channel}, "value": []m{{"content": text, "image": []any{}}}}},
	}
}

// create creates a post and returns its id.
func (r rest) create(t testing.TB, kind, date, channel, text string) string {
	t.Helper()
	var made []struct{ PostID string }
	r.want(t, &made, http.MethodPost, "/posts", postBody(kind, date, channel, text))
	return made[0].PostID
}

// state returns the state of a post, such as DRAFT.
func (r rest) state(t testing.TB, post string) string {
	t.Helper()
	var out struct{ State string }
	r.want(t, &out, http.MethodGet, "/posts/"+post, nil)
	return strings.ToUpper(out.State)
}
