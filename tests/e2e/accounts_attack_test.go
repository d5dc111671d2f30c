package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"crier/apps/edge"
	"crier/tests/call"
)

// together calls fn n times at once.
func together(n int, fn func(i int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	all.Wait()
}

// guess sends a wrong password for an email address from a client address and returns the status.
func (s *instance) guess(t *testing.T, node int, client, email string) int {
	t.Helper()
	b := s.browse().on(node)
	b.address = client
	return b.ask(t, http.MethodPost, "/auth/login", m{"email": email, "password": "a wrong guess"}).Status
}

func TestAccounts_PasswordSprayingIsThrottled(t *testing.T) {
	t.Parallel()
	s := startInstance(t, nil)
	s.account(t, "owner@example.com")
	const attacker = "203.0.113.7"
	statuses := map[int]int{}
	for i := range 30 { // one client address over many accounts, on both processes
		statuses[s.guess(t, i%2, attacker, fmt.Sprintf("person-%d@example.com", i))]++
	}
	if statuses[http.StatusBadRequest] > 25 || statuses[http.StatusTooManyRequests] < 5 || len(statuses) != 2 {
		t.Errorf("got the statuses %v of one address on 30 accounts, want 429 after about 20", statuses)
	}
	clear(statuses)
	for i := range 20 { // many client addresses over one account
		for range 4 {
			statuses[s.guess(t, i%2, fmt.Sprintf("203.0.114.%d", i), "owner@example.com")]++
		}
	}
	if statuses[http.StatusTooManyRequests] < 15 || len(statuses) != 2 {
		t.Errorf("got the statuses %v of 20 addresses with 4 attempts each, want 429 for the fourth", statuses)
	}
}

func TestAccounts_KnownBrowserPassesDuringAttackFromItsNetwork(t *testing.T) {
	t.Parallel()
	s := common(t)
	owner := s.account(t, "owner@known.example")
	const office = "203.0.113.7"
	for i := range 6 {
		got, want := s.guess(t, i%2, office, "owner@known.example"), http.StatusBadRequest
		if i == 5 {
			want = http.StatusTooManyRequests // for a minute
		}
		if got != want {
			t.Fatalf("attempt %d: got %d, want %d", i, got, want)
		}
	}
	stranger := s.browse()
	stranger.address = office
	right := m{"email": "owner@known.example", "password": password}
	stranger.want(t, http.StatusTooManyRequests, nil, http.MethodPost, "/auth/login", right)
	known := s.browse()
	known.address, known.cookies["device"] = office, owner.cookies["device"]
	for node := range s.nodes {
		if step := known.on(node).login(t, "owner@known.example"); !step.Login {
			t.Errorf("got %+v in a browser that is known, want a session", step)
		}
	}
	if step := s.browse().login(t, "owner@known.example"); !step.Login {
		t.Errorf("got %+v from an address that did not attack, want a session", step)
	}
	var last int
	for range 6 {
		known.address = office
		last = known.ask(t, http.MethodPost, "/auth/login", m{"email": "other@known.example", "password": "a wrong guess"}).Status
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("got %d for the sixth guess at another account in the known browser, want 429", last)
	}
}

func TestAccounts_LongestWaitIsBounded(t *testing.T) {
	t.Parallel()
	s := common(t)
	var last call.Answer
	for range 12 {
		b := s.browse()
		b.address = "203.0.113.8"
		last = b.ask(t, http.MethodPost, "/auth/login", m{"email": "owner@wait.example", "password": "a wrong guess"})
	}
	var body struct{ RetryAfter int }
	if last.Status != http.StatusTooManyRequests || last.Header.Get("Retry-After") == "" {
		t.Fatalf("got %v, want 429 with Retry-After", last)
	}
	last.Status = http.StatusOK
	if err := last.Into(&body); err != nil || body.RetryAfter < 1 || body.RetryAfter > 900 {
		t.Errorf("got retryAfter %d, %v, want 1 to 900 s: a delay and no lock", body.RetryAfter, err)
	}
}

func TestAccounts_PlantedSessionIsReplacedAndDies(t *testing.T) {
	t.Parallel()
	s := common(t)
	attacker := s.account(t, "attacker@planted.example")
	s.account(t, "victim@planted.example")
	planted := attacker.cookies["auth"]
	victim := s.browse()
	victim.cookies["auth"] = planted
	if step := victim.login(t, "victim@planted.example"); !step.Login || victim.cookies["auth"] == planted {
		t.Errorf("got %+v and the session that was planted, want a new one", step)
	}
	if got := victim.on(1).self(t); got.Email != "victim@planted.example" {
		t.Errorf("got the person %s, want the victim", got.Email)
	}
	s.wantSignedOut(t, 1, planted)
	invented := s.browse()
	invented.cookies["auth"] = strings.Repeat("A", 43)
	if step := invented.login(t, "victim@planted.example"); !step.Login || invented.cookies["auth"] == strings.Repeat("A", 43) {
		t.Errorf("got %+v with an invented session, want one of the service", step)
	}
	factor, _ := victim.enroll(t)
	planted = s.signedIn(t, "attacker@planted.example").cookies["auth"]
	fixed := s.browse()
	fixed.cookies["auth"] = planted
	step := fixed.login(t, "victim@planted.example")
	fixed.want(t, http.StatusCreated, nil, http.MethodPost, "/auth/mfa/verify", m{"mfaToken": step.MFAToken, "code": factor.code(t)})
	if fixed.cookies["auth"] == planted {
		t.Error("the planted session stayed after the second factor")
	}
	s.wantSignedOut(t, 0, planted)
}

// signedIn returns a new browser with a session.
func (s *instance) signedIn(t *testing.T, email string) *browser {
	t.Helper()
	b := s.browse()
	if step := b.login(t, email); !step.Login {
		t.Fatalf("log-in of %s: got %+v, want a session", email, step)
	}
	b.self(t)
	return b
}

// ofAccounts returns the built routes that change something for a browser with a session or during
// a sign-in.
func ofAccounts() (out []edge.Route) {
	for _, r := range edge.Routes() {
		credentials := []edge.Credential{"session", "admin", "owner", "person", "instance", "sign-in", "visitor"}
		if r.State == edge.Built && r.Method != http.MethodGet && slices.Contains(credentials, r.Credential) {
			out = append(out, r)
		}
	}
	return out
}

// forgeries holds the headers of requests that pages of other sites can cause. The value "-"
// removes a header.
var forgeries = map[string][]string{
	"another origin":              {"Origin", "https://evil.example"},
	"a subdomain":                 {"Origin", "https://evil.crier.example"},
	"the address as a prefix":     {"Origin", "https://crier.example.evil.example"},
	"the origin over http":        {"Origin", "http://crier.example"},
	"an opaque origin":            {"Origin", "null"},
	"no origin":                   {"Origin", "-"},
	"cross-site":                  {"Origin", "-", "Sec-Fetch-Site", "cross-site"},
	"same-site":                   {"Origin", "-", "Sec-Fetch-Site", "same-site"},
	"typed":                       {"Origin", "-", "Sec-Fetch-Site", "none"},
	"another origin, same-origin": {"Origin", "https://evil.example", "Sec-Fetch-Site", "same-origin"},
}

// forge sends a request like a page of another site.
func (b *browser) forge(t *testing.T, r edge.Route, body any, headers []string, kind string) call.Answer {
	t.Helper()
	path := strings.NewReplacer("{id}", b.id, "{provider}", generic, "{integration}", "sandbox").Replace(r.Path)
	req := b.request(t, r.Method, path, body)
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "-" {
			req.Header.Del(headers[i])
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	return b.send(t, req)
}

// ownForms are the pages that take forms, which only pages of the service itself can send.
var ownForms = map[string]bool{"/device": true, "/oauth/apps": true, "/oauth/sign-in/{page}": true}

func TestAccounts_ForgedRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := common(t)
	ada := s.account(t, "ada@forged.example")
	s.admin(t, "", "grant", "ada@forged.example")
	ada.createKey(t, "Newsletter")
	ada.invite(t, "", "USER", false)
	session, before := ada.cookies["auth"], len(ada.audit(t))
	routes, requests := ofAccounts(), 0
	body := `{"name":"Forged","id":"` + ada.org + `","email":"ada@forged.example","password":"` + password + `","confirm":"DELETE"}`
	for _, r := range routes {
		for name, headers := range forgeries {
			requests++
			if got := ada.forge(t, r, body, headers, "application/json"); got.Status != http.StatusForbidden {
				t.Errorf("%s from %s: got %v, want 403", r, name, got)
			}
		}
		if r.Method == http.MethodDelete { // no form can send it
			continue
		}
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "-"} {
			requests++
			got := ada.forge(t, r, body, []string{"Content-Type", kind}, "")
			if kind == "application/x-www-form-urlencoded" && ownForms[r.Path] && got.Status >= 300 && got.Status < 500 {
				continue // the page reads the form, which holds nothing that it asks for
			}
			if got.Status != http.StatusBadRequest {
				t.Errorf("%s with the type %s: got %v, want 400", r, kind, got)
			}
		}
	}
	if ada.cookies["auth"] != session {
		t.Fatal("a forged request ended or replaced the session")
	}
	if got := len(ada.on(1).audit(t)); got != before {
		t.Errorf("got %d entries in the audit log, want %d: a forged request did something", got, before)
	}
	if len(routes) < 40 {
		t.Errorf("got %d routes, want all that change something", len(routes))
	}
	t.Logf("%d forged requests to %d routes", requests, len(routes))
	header := s.browse()
	switches := m{"sendSuccessEmails": true, "sendFailureEmails": true, "sendStreakEmails": true}
	got := header.ask(t, http.MethodPost, "/user/email-notifications", switches, "auth", session, "Origin", "https://evil.example")
	if got.Status != http.StatusCreated {
		t.Errorf("got %v with the session in the header, want 201: no browser adds it by itself", got)
	}
}
