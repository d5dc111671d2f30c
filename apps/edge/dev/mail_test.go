package dev_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/platform/mail"
)

var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const ada = "ada@example.org"

// box holds the mails that crier dev collects.
type box []mail.Stored

func (b box) Messages() []mail.Stored { return b }

func TestMail_ShowsTextOnly(t *testing.T) {
	t.Parallel()
	mails := box{
		{At: day, Message: mail.Message{To: ada, Subject: "<b>Welcome</b>",
			Text: "Follow http://localhost:4000/x?a=1&b=2\nor <script>alert(1)</script> javascript:alert(2)", HTML: "<i>secret html</i>"}},
		{At: day, Message: mail.Message{To: "bo@example.org", Subject: "Second", Text: "Plain."}},
	}
	s := start(t, func(d *edge.Deps) { d.DevMail = mails })
	list := s.call(t, "GET", "/dev/mail", "localhost:4000")
	want(t, list, 200, "&lt;b&gt;Welcome&lt;/b&gt;", "Second", ada)
	link := regexp.MustCompile(`/dev/mail/[0-9a-f]{16}`).FindString(list.body)
	one := s.call(t, "GET", link, "127.0.0.1:4000")
	want(t, one, 200, "&lt;script&gt;alert(1)&lt;/script&gt; javascript:alert(2)",
		`<a href="http://localhost:4000/x?a=1&amp;b=2" rel="noreferrer">http://localhost:4000/x?a=1&amp;b=2</a>`)
	for name, a := range map[string]answer{"the list": list, "a mail": one} {
		if strings.Contains(a.body, "secret html") || strings.Contains(a.body, "<script") || strings.Contains(a.body, "<b>") {
			t.Errorf("%s has markup of the mail: %s", name, a.body)
		}
		if robots := a.header.Get("X-Robots-Tag"); robots != "noindex, nofollow" {
			t.Errorf("%s has X-Robots-Tag %q, want noindex, nofollow", name, robots)
		}
		if policy := a.header.Get("Content-Security-Policy"); policy != "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" {
			t.Errorf("%s has the policy %q", name, policy)
		}
	}
	want(t, s.call(t, "GET", "/dev/mail/0123456789abcdef", "localhost"), 404)
	want(t, start(t, func(d *edge.Deps) { d.DevMail = box{} }).call(t, "GET", "/dev/mail", "localhost"), 200, "No emails yet.")
}

func TestMail_IsVisibleOnThisMachineOnly(t *testing.T) {
	t.Parallel()
	mails := box{{At: day, Message: mail.Message{To: ada, Subject: "Welcome", Text: "Hello."}}}
	s := start(t, func(d *edge.Deps) { d.DevMail = mails })
	for _, host := range []string{"evil.test", "localhost.evil.test", "crier.test", "10.0.0.1", "0.0.0.0"} {
		want(t, s.call(t, "GET", "/dev/mail", host), 404)
	}
	want(t, s.call(t, "GET", "/dev/mail", "localhost", "X-Forwarded-For", "203.0.113.9"), 404)
	want(t, s.call(t, "GET", "/dev/mail", "[::1]:4000"), 200)
	want(t, start(t, nil).call(t, "GET", "/dev/mail", "localhost"), 404)
}
