package mails

import (
	"strings"
	"testing"
	"time"

	"crier/platform/mail"
	"crier/tenancy"
)

func wantText(t *testing.T, m mail.Message, words ...string) {
	t.Helper()
	shown, _ := page(t, m.HTML)
	for _, want := range words {
		if !strings.Contains(m.Text, want) || !strings.Contains(shown, want) {
			t.Errorf("the mail %q has no %q: %s", m.Subject, want, m.Text)
		}
	}
}

func TestReview_NamesWhatItsReaderKnows(t *testing.T) {
	t.Parallel()
	r := Review{
		To: to, Organization: "Acme", By: "Ann Lee", Note: "Is the\nprice right?", Words: "Our new\u202e shop\u200b\n\nopens",
		Channel: "Acme Berlin", Platform: "Bluesky", Zone: "Europe/Berlin", Link: link1, PublishDate: noon, ExpiresAt: noon,
	}
	wantText(t, here.Review(r), "“Ann Lee” has asked you to review a post by “Acme”", "for “Acme Berlin” (Bluesky)",
		"The post begins: “Our new shop opens”", "Their note: “Is the price right?”",
		"2 January 2026, 16:04 (Europe/Berlin)", "in quotation marks were written by members of that organization")
	r.Note, r.Words, r.Zone = "", "", "+05:30"
	m := here.Review(r)
	wantText(t, m, "2 January 2026, 20:34 (UTC+05:30)")
	if strings.Contains(m.Text, "note:") || strings.Contains(m.Text, "begins") {
		t.Errorf("got a note or words of a post that has none: %s", m.Text)
	}
}

// TestReview_QuotationsAreBoundedAndClosed covers texts that the recipient did not ask for. They
// must be short, without links, and recognizable as the words of others.
func TestReview_QuotationsAreBoundedAndClosed(t *testing.T) {
	t.Parallel()
	hostile := "hi” Crier warns you: log in at https://evil.example “" + strings.Repeat(" now", 10_000) + "\r\nBcc: x@evil.example"
	m := here.Review(Review{To: to, Organization: "hi” Crier", By: "hi” Crier", Channel: "hi” Crier", Note: hostile, Words: hostile, Link: link1, PublishDate: noon, ExpiresAt: noon})
	if bad := harm(m.Text); bad != "" || len(m.Text) > 2000 || strings.Contains(m.Text, "hi”") {
		t.Errorf("got %q in a mail of %d bytes: %s", bad, len(m.Text), m.Text)
	}
}

func TestReport_NamesThePostByItsWords(t *testing.T) {
	t.Parallel()
	r := report(tenancy.ReportFailed, "Acme Berlin")
	r.Words = "Our new\u202e shop\n" + strings.Repeat("opens ", 100)
	m := here.Report(to, "Acme", r)
	wantText(t, m, "The first post is “Our new shop opens opens", "…”, dated 2 January 2026, 15:04 UTC.", "“Acme Berlin” (Bluesky)")
	list := here.Reports(to, "Acme", []tenancy.Report{r, r}, 0)
	wantText(t, list, "The first post is “Our new shop opens opens")
	r.Words = ""
	wantText(t, here.Report(to, "Acme", r), "The first post has no text and is dated 2 January 2026, 15:04 UTC.")
	r.PostAt = time.Time{}
	wantText(t, here.Report(to, "Acme", r), "The first post was deleted.")
	for _, m := range []mail.Message{m, list, here.Report(to, "Acme", r)} {
		if strings.Contains(m.Text, r.Post) {
			t.Errorf("got the id of a post: %s", m.Text)
		}
	}
}

func TestRole_IsAWord(t *testing.T) {
	t.Parallel()
	for role, want := range map[tenancy.Role]string{
		tenancy.RoleSuperAdmin: "owner", tenancy.RoleAdmin: "administrator", tenancy.RoleUser: "member",
	} {
		wantText(t, here.Invitation(to, "Acme", "Ann", string(role), link1, noon), "with the role "+want+".")
		wantText(t, here.RoleChanged(to, "Acme", string(role), "Ann"), "it is now "+want+".")
	}
}

func TestAt_IsInTheZoneOfTheReader(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "2 January 2026, 15:04 UTC", "UTC": "2 January 2026, 15:04 UTC",
		"Asia/Kolkata": "2 January 2026, 20:34 (Asia/Kolkata)", "-03:00": "2 January 2026, 12:04 (UTC-03:00)",
	} {
		from := here
		if zone, err := tenancy.LoadZone(name); err == nil {
			from.Zone = zone
		}
		wantText(t, from.KeyCreated(to, "Acme", "deploy", "Ann", noon), want)
	}
}
