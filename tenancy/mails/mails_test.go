package mails

import (
	"html"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	nethtml "golang.org/x/net/html"

	"crier/platform/clock"
	"crier/platform/mail"
	"crier/tenancy"
)

var (
	here = Instance{Name: "Crier", URL: "https://crier.example"}
	noon = time.Date(2026, 1, 2, 16, 4, 0, 0, time.FixedZone("UTC+1", 3600))
)

const (
	to    = "ann@example.com"
	link1 = "https://crier.example/one?token=a+b&x=<1>"
	link2 = "https://crier.example/two?token=c"
)

// sample is one message. Its make puts name wherever a tenant's name appears.
type sample struct {
	make  func(i Instance, name string) mail.Message
	links []string
	// names is the minimum number of times that the text must have the name. timed is true if the
	// text must have the time.
	names int
	timed bool
}

// report returns a report with name wherever a tenant's name appears.
func report(kind tenancy.ReportKind, name string) tenancy.Report {
	return tenancy.Report{
		ID: "1", Kind: kind, Channel: name, Platform: "Bluesky", Reason: name, Posts: 1000, Since: noon,
		Post: "0193b2c4-7d10-7a31-9c55-2f0e6b1a4d07", Words: name, PostAt: noon,
		Channels: []tenancy.ReportChannel{{Name: name, Platform: "Bluesky", Posts: 3}}, More: 2,
	}
}

func TestReport_NamesWhatHappenedAndHowOften(t *testing.T) {
	t.Parallel()
	r := report(tenancy.ReportReconnect, "acme")
	r.Reason = "The access was revoked."
	m := here.Report(to, "Acme Inc", r)
	if want := "“acme” (Bluesky) must be reconnected, and 1000 posts could not be published in the meantime"; m.Subject != want {
		t.Errorf("got the subject %q, want %q", m.Subject, want)
	}
	for _, want := range []string{"“acme” (Bluesky)", "“Acme Inc”", "1000 posts could not be published", "The access was revoked.", "The first post is “acme”, dated 2 January 2026, 15:04 UTC."} {
		if !strings.Contains(m.Text, want) {
			t.Errorf("the mail has no %q: %s", want, m.Text)
		}
	}
	m = here.Report(to, "Acme Inc", report(tenancy.ReportPublished, "acme"))
	for _, want := range []string{"“Acme Inc” published 1000 posts", "“acme” (Bluesky): 3", "And on 2 more channels."} {
		if !strings.Contains(m.Text, want) {
			t.Errorf("the mail has no %q: %s", want, m.Text)
		}
	}
}

// samples returns all messages by the names of their methods.
func samples() map[string]sample {
	app := []string{here.URL}
	return map[string]sample{
		"Activation": {links: []string{link1},
			make: func(i Instance, _ string) mail.Message { return i.Activation(to, link1) }},
		"RegisterAgain": {links: []string{link1},
			make: func(i Instance, _ string) mail.Message { return i.RegisterAgain(to, link1) }},
		"AlreadyRegistered": {links: []string{link1, link2},
			make: func(i Instance, _ string) mail.Message { return i.AlreadyRegistered(to, link1, link2) }},
		"ResetPassword": {links: []string{link1},
			make: func(i Instance, _ string) mail.Message { return i.ResetPassword(to, link1, time.Hour) }},
		"Invitation": {names: 3, timed: true, links: []string{link1},
			make: func(i Instance, n string) mail.Message { return i.Invitation(to, n, n, n, link1, noon) }},
		"Review": {names: 5, timed: true, links: []string{link1},
			make: func(i Instance, n string) mail.Message {
				return i.Review(Review{
					To: to, Organization: n, By: n, Note: n, Words: n, Channel: n, Platform: "Bluesky", Link: link1, PublishDate: noon,
					ExpiresAt: noon, Reminder: true,
				})
			}},
		"Review ended": {names: 1, timed: true,
			make: func(i Instance, n string) mail.Message {
				return i.Review(Review{To: to, Organization: n, PublishDate: noon, Ended: true})
			}},
		"Report of a channel": {names: 3, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.Report(to, n, report(tenancy.ReportReconnect, n)) }},
		"Report of failed posts": {names: 3, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.Report(to, n, report(tenancy.ReportFailed, n)) }},
		"Report of missed posts": {names: 3, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.Report(to, n, report(tenancy.ReportMissed, n)) }},
		"Report of unknown outcomes": {names: 3, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.Report(to, n, report(tenancy.ReportUnknown, n)) }},
		"Report of an approval": {names: 3, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.Report(to, n, report(tenancy.ReportApproval, n)) }},
		"Report of published posts": {names: 2, links: app,
			make: func(i Instance, n string) mail.Message { return i.Report(to, n, report(tenancy.ReportPublished, n)) }},
		"ConfirmNewAddress": {links: []string{link1},
			make: func(i Instance, _ string) mail.Message { return i.ConfirmNewAddress(to, link1) }},
		"ConfirmOldAddress": {names: 1, links: []string{link1},
			make: func(i Instance, n string) mail.Message { return i.ConfirmOldAddress(to, n, link1) }},
		"AddressChanged": {names: 1, make: func(i Instance, n string) mail.Message { return i.AddressChanged(to, n) }},
		"NewDevice": {names: 2, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.NewDevice(to, noon, n, n) }},
		"PasswordChanged": {names: 1, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.PasswordChanged(to, noon, n) }},
		"SecondFactorOn": {names: 1, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.SecondFactorOn(to, noon, n) }},
		"SecondFactorOff": {names: 1, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.SecondFactorOff(to, noon, n) }},
		"RecoveryCodesReplaced": {names: 1, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.RecoveryCodesReplaced(to, noon, n) }},
		"IdentityUnlinked": {names: 2, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.IdentityUnlinked(to, n, noon, n) }},
		"IdentityLinked": {names: 2, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.IdentityLinked(to, n, noon, n) }},
		"KeyCreated": {names: 3, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.KeyCreated(to, n, n, n, noon) }},
		"KeyRotated": {names: 3, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.KeyRotated(to, n, n, n, noon) }},
		"KeyRevoked": {names: 3, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.KeyRevoked(to, n, n, n, noon) }},
		"ChannelDisowned": {names: 2, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.ChannelDisowned(to, n, n, noon) }},
		"RoleChanged": {names: 3, links: app,
			make: func(i Instance, n string) mail.Message { return i.RoleChanged(to, n, n, n) }},
		"RemovedFromOrganization": {names: 1,
			make: func(i Instance, n string) mail.Message { return i.RemovedFromOrganization(to, n) }},
		"OwnershipReceived": {names: 2, links: app,
			make: func(i Instance, n string) mail.Message { return i.OwnershipReceived(to, n, n) }},
		"AccountDeletion": {timed: true, links: app,
			make: func(i Instance, _ string) mail.Message { return i.AccountDeletion(to, noon) }},
		"OrganizationDeletion": {names: 2, timed: true, links: app,
			make: func(i Instance, n string) mail.Message { return i.OrganizationDeletion(to, n, n, noon) }},
		"DeletionUndone": {names: 1, make: func(i Instance, n string) mail.Message { return i.DeletionUndone(to, n) }},
		"Impersonated": {names: 1, timed: true,
			make: func(i Instance, n string) mail.Message { return i.Impersonated(to, n, noon) }},
	}
}

func TestMessages_HaveSameContentInBothForms(t *testing.T) {
	t.Parallel()
	box := mail.NewBox(clock.System{})
	for method, s := range samples() {
		m := s.make(here, "Zoë & Co")
		if err := box.Send(t.Context(), m); err != nil || m.To != to {
			t.Errorf("%s: got %v for a message to %q", method, err, m.To)
		}
		shown, hrefs := page(t, m.HTML)
		for form, content := range map[string]string{"text": m.Text, "HTML": shown} {
			if got := strings.Count(content, "Zoë & Co"); got < s.names {
				t.Errorf("%s: the %s has the name %d times, want at least %d: %s", method, form, got, s.names, content)
			}
			if s.timed != strings.Contains(content, "2 January 2026, 15:04 UTC") {
				t.Errorf("%s: the %s must have the time: %t: %s", method, form, s.timed, content)
			}
			for _, want := range append(s.links, "Hello", "You are receiving this message because", "Crier, "+here.URL) {
				if !strings.Contains(content, want) {
					t.Errorf("%s: the %s has no %q: %s", method, form, want, content)
				}
			}
		}
		for _, want := range append(s.links, here.URL) {
			if !slices.ContainsFunc(hrefs, func(h string) bool { return unescaped(h) == unescaped(want) }) {
				t.Errorf("%s: got the links %q, want %q in them", method, hrefs, want)
			}
		}
	}
}

func TestMessages_MakeHostileNamesHarmless(t *testing.T) {
	t.Parallel()
	hostile := []string{
		"<script>alert(1)</script>", `"><img src=x onerror=alert(1)>`, "https://evil.example/login", "www.evil.example",
		"HTTPS://EVIL.EXAMPLE", "evil。example", "a\r\nBcc: x@evil.example", "a\x00b", "abc\u202Ecba", "\u2066a\u2069\u200F",
		"a\u2028b", "{{.URL}}", "javascript://evil.example", "[x](https://evil.example)", "\xff\xfe", "", " \t\n",
		"=?utf-8?q?=0D=0Ax?=", strings.Repeat("ü", 10_000), strings.Repeat("<", 10_000), strings.Repeat("🎉", 10_000),
	}
	box := mail.NewBox(clock.System{})
	for method, s := range samples() {
		_, want := page(t, s.make(here, "x").HTML)
		for _, name := range hostile {
			m := s.make(here, name)
			if err := box.Send(t.Context(), m); err != nil {
				t.Errorf("%s of %.30q: %v", method, name, err)
			}
			shown, hrefs := page(t, m.HTML)
			if !slices.Equal(hrefs, want) {
				t.Errorf("%s of %.30q: got the links %q, want %q", method, name, hrefs, want)
			}
			for _, content := range []string{m.Subject, m.Text, shown} {
				if bad := harm(content); bad != "" {
					t.Errorf("%s of %.30q: got %q in %.300q", method, name, bad, content)
				}
			}
			if n := len(m.Text); n > 4000 {
				t.Errorf("%s of %.30q: the text has %d bytes, want at most 4000", method, name, n)
			}
		}
	}
}

// harm returns a part of s that a mail client would act on.
func harm(s string) string {
	lower := strings.ToLower(s)
	for _, bad := range []string{
		"evil.example", "evil。example", "://evil", "\r", "\x00", "\u202e", "\u2066", "\u2069", "\u200f", "\u2028", "\nbcc:",
	} {
		if strings.Contains(lower, bad) {
			return bad
		}
	}
	return ""
}

// page returns the text of a document and the targets of its links. It fails the test for elements
// and attributes that the layout does not use.
func page(t *testing.T, document string) (text string, hrefs []string) {
	t.Helper()
	root, err := nethtml.Parse(strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	known := strings.Fields("html head meta title body div p a br hr")
	var out strings.Builder
	for n := range root.Descendants() {
		if n.Type == nethtml.TextNode {
			out.WriteString(n.Data)
		}
		if n.Type != nethtml.ElementNode {
			continue
		}
		if !slices.Contains(known, n.Data) {
			t.Errorf("got the element %s in %.500s", n.Data, document)
		}
		for _, a := range n.Attr {
			if a.Key == "href" {
				hrefs = append(hrefs, a.Val)
			}
			if !slices.Contains(strings.Fields("href style name content charset lang"), a.Key) {
				t.Errorf("got the attribute %s in %.500s", a.Key, document)
			}
		}
	}
	return out.String(), hrefs
}

// unescaped undoes the HTML and URL escaping in the links of the tests.
func unescaped(s string) string {
	return strings.NewReplacer("%3c", "<", "%3e", ">").Replace(html.UnescapeString(s))
}

func TestMessages_WorkInDarkModeWithoutImages(t *testing.T) {
	t.Parallel()
	document := here.Activation(to, link1).HTML
	if !strings.Contains(document, `name="color-scheme" content="light dark"`) {
		t.Error("the document does not say that it fits light and dark")
	}
	body := document[strings.Index(document, "<body"):]
	if strings.Count(body, "background") != strings.Count(body, ";color:") {
		t.Errorf("a background without a colour of its text, or the reverse, is not readable in dark mode: %s", body)
	}
	for _, bad := range []string{"<img", "<table", "<style", "url("} {
		if strings.Contains(document, bad) {
			t.Errorf("got %s", bad)
		}
	}
}

func TestName_IsReadable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Ann  O'Neill":              "Ann O'Neill",
		"J.R.R. Tolkien":            "J. R. R. Tolkien",
		"Firefox 128.0 on macOS":    "Firefox 128.0 on macOS",
		"203.0.113.7":               "203.0.113.7",
		"2001:db8::1":               "2001:db8::1",
		".NET, Inc.":                ".NET, Inc.",
		"ann.lee+x@mail.example":    "ann.lee+x@mail.example",
		"ann@mail.example now":      "ann@mail. example now",
		"https://a.example/b":       "https:// a. example/b",
		"עברית":                     "עברית",
		"👩\u200d🚀":                  "👩\u200d🚀",
		"\u200e\u200f":              "nobody",
		strings.Repeat("é", 128):    strings.Repeat("é", 128),
		strings.Repeat("é", 129):    strings.Repeat("é", 127) + "…",
		"a\x00b\x1b[1m\u0085c\r\nd": "ab[1m c d",
	} {
		if got := name(in, "nobody"); got != want || utf8.RuneCountInString(got) > maxName {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestSpan_IsWhole(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "1 minute", time.Second: "1 minute", time.Minute: "1 minute", 61 * time.Second: "2 minutes", 90 * time.Minute: "90 minutes",
		time.Hour: "1 hour", 24 * time.Hour: "24 hours", 25 * time.Hour: "25 hours", 48 * time.Hour: "2 days", 168 * time.Hour: "7 days",
	} {
		if got := span(d); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}

func TestMessage_FooterHasLinksThatEndMails(t *testing.T) {
	t.Parallel()
	from := here
	from.Stop = []StopLink{{Words: "failed posts", URL: link1}, {Words: "published posts", URL: link2}}
	m := from.Report(to, "Acme", report(tenancy.ReportFailed, "Acme"))
	for _, want := range []string{"Stop emails about failed posts: " + link1, "Stop emails about published posts: " + link2} {
		if !strings.Contains(m.Text, want) {
			t.Errorf("got the text %s, want it to have %q", m.Text, want)
		}
	}
	if !strings.Contains(m.HTML, `<a href="`+html.EscapeString(link2)+`">Stop emails about published posts</a>`) {
		t.Errorf("got the page %s, want the links in it", m.HTML)
	}
}
