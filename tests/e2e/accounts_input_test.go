package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"crier/tenancy/mail"
	"crier/tests/call"
)

// named returns requests that have the text wherever a caller can put a name. b is an owner's
// browser.
func named(text string) []unsafeCall {
	login := m{"email": "ada@example.com", "password": text}
	return []unsafeCall{
		{http.MethodPost, "/auth/register", m{"email": "new@example.com", "password": password, "company": text}},
		{http.MethodPost, "/auth/register", m{"email": "new@example.com", "password": password, "company": "New", "fullname": text}},
		{http.MethodPost, "/auth/register", m{"email": "new" + text + "@example.com", "password": password, "company": "New"}},
		{http.MethodPost, "/auth/register", m{"email": "new@example.com", "password": password, "org": text}},
		{http.MethodPost, "/auth/register", m{"provider": generic, "providerToken": text, "company": "New"}},
		{http.MethodPost, "/auth/login", m{"email": text + "@example.com", "password": password}},
		{http.MethodPost, "/auth/login", login},
		{http.MethodPost, "/auth/forgot", m{"email": text + "@example.com"}},
		{http.MethodPost, "/auth/activate", m{"code": text}},
		{http.MethodPost, "/auth/forgot-return", m{"token": text, "password": password, "repeatPassword": password}},
		{http.MethodPost, "/auth/mfa/verify", m{"mfaToken": text, "code": "123456"}},
		{http.MethodPost, "/auth/confirm-email", m{"token": text}},
		{http.MethodPost, "/auth/restore", m{"token": text}},
		{http.MethodPost, "/user/personal", m{"fullname": text}},
		{http.MethodPost, "/user/setup", m{"company": text, "fullname": text}},
		{http.MethodPost, "/user/organizations", m{"name": text}},
		{http.MethodPost, "/user/change-org", m{"id": text}},
		{http.MethodPost, "/user/join-org", m{"org": text}},
		{http.MethodPost, "/user/change-email", m{"email": text + "@example.com", "password": password}},
		{http.MethodPost, "/user/change-password", m{"oldPassword": text, "newPassword": text}},
		{http.MethodPost, "/user/mfa/confirm", m{"code": text}},
		{http.MethodPut, "/settings/organization", m{"name": text}},
		{http.MethodPost, "/settings/api-keys", m{"name": text}},
		{http.MethodPost, "/user/api-key/rotate", m{"id": text}},
		{http.MethodPost, "/settings/team", m{"email": text + "@example.com", "role": "USER"}},
	}
}

func TestAccounts_InvalidNamesAreRefused(t *testing.T) {
	t.Parallel()
	s := common(t)
	ada := s.account(t, "ada@names.example")
	before := ada.self(t)
	requests := 0
	for what, text := range map[string]string{
		"a name of 1 MB": strings.Repeat("a", 1<<20-300), "a name of more than 1 MB": strings.Repeat("a", 1<<20),
		"NUL": "Ada\x00Byron", "right-to-left override": "Ada\u202egro.elpmaxe",
		"an isolate": "Ada\u2066x", "a line break": "Ada\r\nBcc: all@names.example",
		"escape": "Ada\x1b[2J", "a name of 129 characters": strings.Repeat("ß", 129),
	} {
		for _, c := range named(text) {
			requests++
			visitor := *ada
			visitor.address = s.browse().address // the throttle is not tested here
			if strings.HasPrefix(c.path, "/auth/") {
				visitor.cookies = map[string]string{}
			}
			got := visitor.ask(t, c.method, c.path, c.body)
			switch {
			case got.Status >= 500:
				t.Errorf("%s %s with %s: got %v, want a refusal", c.method, c.path, what, got)
			case got.Status < 300 && !harmless(c.path, got):
				t.Errorf("%s %s with %s: got %v, want 4xx", c.method, c.path, what, got)
			}
			if len(got.Body) > 10_000 || strings.Contains(got.Body, "\u202e") {
				t.Errorf("%s %s with %s: the answer of %d bytes repeats the text", c.method, c.path, what, len(got.Body))
			}
		}
	}
	if after := ada.on(1).self(t); after != before {
		t.Errorf("got %+v, want the person as before, %+v", after, before)
	}
	for _, path := range []string{"/settings/audit?actor=%00", "/user/sessions?id=%00", "/settings/audit?action=%ff"} {
		if got := ada.ask(t, http.MethodGet, path, nil); got.Status >= 500 {
			t.Errorf("GET %s: got %v, want no error of the service", path, got)
		}
	}
	// encoding/json would replace invalid UTF-8 before it is sent.
	for _, c := range named("BYTES") {
		raw, err := json.Marshal(c.body)
		if err != nil {
			t.Fatal(err)
		}
		got := ada.ask(t, c.method, c.path, strings.ReplaceAll(string(raw), "BYTES", "Ada\xff\xc0\x80"))
		if got.Status >= 500 {
			t.Errorf("%s %s with bytes that are no UTF-8: got %v, want no error of the service", c.method, c.path, got)
		}
	}
	for _, m := range s.mail.Messages() {
		if strings.ContainsAny(m.Subject()+m.Text, "\x00\u202e\u2066") || m.Header.Get("Bcc") != "" {
			t.Errorf("a mail to %s has a control character of a name", m.To)
		}
	}
	t.Logf("%d requests", requests)
}

// harmless reports whether a successful response says in its body that the token or id does not
// exist.
func harmless(path string, a call.Answer) bool {
	said := map[string]string{
		"/auth/activate": `"can":false`, "/auth/forgot-return": `"reset":false`, "/user/join-org": `"id":null`,
		"/auth/forgot": `"forgot":true`,
	}
	return said[path] != "" && strings.Contains(a.Body, said[path])
}

func TestAccounts_MailLinksIgnoreRequestHost(t *testing.T) {
	t.Parallel()
	s := common(t)
	ada := s.account(t, "ada@links.example")
	for i, c := range []unsafeCall{
		{http.MethodPost, "/auth/register", m{"email": "new@links.example", "password": password, "company": "New"}},
		{http.MethodPost, "/auth/forgot", m{"email": "ada@links.example"}},
		{http.MethodPost, "/auth/resend-activation", m{"email": "new@links.example"}},
		{http.MethodPost, "/settings/team", m{"email": "friend@links.example", "role": "USER", "sendEmail": true}},
		{http.MethodPost, "/user/change-email", m{"email": "ada.new@links.example", "password": password}},
		{http.MethodGet, "/user/self", nil},
	} {
		req := ada.on(i%2).request(t, c.method, c.path, c.body, "X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "http",
			"Forwarded", `host="evil.example";proto=http`, "X-Original-URL", "https://evil.example/", "X-Host", "evil.example")
		req.Host = "evil.example"
		a := ada.send(t, req)
		if a.Status >= 300 || strings.Contains(fmt.Sprint(a.Header, a.Body), "evil.example") {
			t.Errorf("%s %s: got %v %v, want a success without the host", c.method, c.path, a.Header, a)
		}
	}
	wanted := map[string]string{
		"new@links.example": "Activate", "friend@links.example": "Invitation", "ada.new@links.example": "Confirm",
	}
	for to, subject := range wanted {
		link(t, s.letter(t, to, subject, 1))
	}
	s.letter(t, "ada@links.example", "new password", 1)
	s.letter(t, "ada@links.example", "Allow", 1)
	for _, mail := range s.mail.Messages() {
		all := fmt.Sprint(mail.Header, mail.Text, mail.HTML)
		if strings.Contains(all, "evil.example") {
			t.Errorf("the mail %q to %s has the host of the request", mail.Subject(), mail.To)
		}
		for rest := all; strings.Contains(rest, "://"); {
			at := strings.Index(rest, "://")
			if !strings.HasPrefix(rest[at:], "://crier.example") && !strings.HasPrefix(rest[at:], "://www.w3.org") {
				t.Errorf("the mail %q to %s has another address: %.60q", mail.Subject(), mail.To, rest[at:])
			}
			rest = rest[at+3:]
		}
	}
}

// observed is what a stranger learns from a response, and the work that the service did for it.
type observed struct {
	status         int
	body           string
	header         http.Header
	hashed, queued int
}

// observe sends a request and returns what can be observed. It leaves out headers that differ
// between any two responses.
func (b *browser) observe(t *testing.T, path string, body m) observed {
	t.Helper()
	queued := "select count(*) from jobs.river_job where kind = '" + mail.MailTask + "'"
	hashed, mails := b.hashed(t), b.count(t, queued)
	a := b.ask(t, http.MethodPost, path, body)
	header := maps.Clone(a.Header)
	for _, name := range []string{"Date", "X-Request-Id", "X-Ratelimit-Remaining", "X-Ratelimit-Reset"} {
		header.Del(name)
	}
	// Keep only the length of the token in the cookie.
	if cookies := header.Values("Set-Cookie"); len(cookies) > 0 {
		header["Set-Cookie"] = []string{strings.ReplaceAll(strings.Join(cookies, "\n"), b.cookies["device"],
			fmt.Sprint(len(b.cookies["device"]), " characters"))}
	}
	return observed{
		status: a.Status, body: a.Body, header: header, hashed: b.hashed(t) - hashed, queued: b.count(t, queued) - mails,
	}
}

func TestAccounts_ResponsesHideKnownAddresses(t *testing.T) {
	t.Parallel()
	s := startInstance(t, nil)
	s.account(t, "known@example.com")
	withMFA := s.account(t, "factor@example.com")
	withMFA.enroll(t)
	s.admin(t, password+"\n", "create", "unverified@example.com", "--password-stdin")
	pending := s.browse()
	pending.register(t, "pending@example.com", m{"company": "Pending"})
	s.letter(t, "pending@example.com", "Activate", 1)
	ada := s.account(t, "ada@example.com")
	for _, c := range []struct {
		path           string
		body           m
		session        bool
		hashed, queued int
	}{
		{path: "/auth/login", body: m{"password": "a wrong guess"}, hashed: 1},
		{path: "/auth/register", body: m{"password": password, "company": "New", "fullname": "New"}, hashed: 1, queued: 1},
		{path: "/auth/forgot", body: m{}, queued: 1},
		{path: "/auth/resend-activation", body: m{}, queued: 1},
		{path: "/user/change-email", body: m{"password": password}, session: true, hashed: 1, queued: 2},
	} {
		var first observed
		for i, email := range []string{"unknown@example.com", "known@example.com", "factor@example.com",
			"unverified@example.com", "pending@example.com", "KNOWN@Example.com"} {
			b := s.browse().on(i % 2)
			if c.session {
				b.cookies = ada.cookies
			}
			got := b.observe(t, c.path, with(c.body, m{"email": email}))
			if i == 0 {
				first = got
				if got.hashed != c.hashed || got.queued != c.queued || got.status >= 500 || len(got.body) == 0 {
					t.Errorf("%s for an unknown address: got %+v, want %d hashed and %d queued", c.path, got, c.hashed, c.queued)
				}
				continue
			}
			if fmt.Sprint(got) != fmt.Sprint(first) {
				t.Errorf("%s for %s: got\n%+v\nwant the same as for an unknown address,\n%+v", c.path, email, got, first)
			}
		}
	}
}
