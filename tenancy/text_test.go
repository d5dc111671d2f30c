package tenancy_test

import (
	"testing"

	"crier/tenancy"
)

func TestStorable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, "plain": true, "äöü 猫 👩‍👩‍👧": true, "\u0001\t\n": true, "\ufffd": true,
		"\x00": false, "a\x00b": false, "\xff": false, "a\xc3": false, "\xed\xa0\x80": false,
	} {
		if got := tenancy.Storable(text); got != want {
			t.Errorf("Storable(%q) is %v, want %v", text, got, want)
		}
	}
}

func TestCleanEmail_NeverReturnsAnotherMailbox(t *testing.T) {
	t.Parallel()
	for email, want := range map[string]string{
		" Ada@Example.ORG ": "ada@example.org", "\u00e9@example.org": "\u00e9@example.org", "\u00c9@example.org": "\u00e9@example.org",
		"x@gma\u0130l.com": "", "\u212aate@example.org": "", "a\u200bda@example.org": "", "a\u00adda@example.org": "", "\u202aada@example.org\u202c\u00a0": "ada@example.org", "a\ufffd@example.org": "",
	} {
		if got, ok := tenancy.CleanEmail(email); got != want || ok != (want != "") {
			t.Errorf("CleanEmail(%q): got %q, %v, want %q", email, got, ok, want)
		}
	}
}

func TestCleanName_IsVisible(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"Ada": true, "\u732b\u732b\u732b": true, "\U0001f469\u200d\U0001f469\u200d\U0001f467": true, "\u0646\u0645\u06cc\u200c\u062e": true,
		"\u200b\u200b\u200b": false, "\u200d\u200d\u200d": false, "\u3164\u3164\u3164": false, "a\u00adbc": false, "abc\ufffd": false, "abc\u202e": false,
		"a\u2028bc": false, "a\u2029bc": false, "\u0301\u0301\u0301": false, "\ufe0f\ufe0f\ufe0f": false, "\u2800\u2800\u2800": false,
		"\u0930\u0935\u093f": true, "e\u0301e\u0301": true, "\u2764\ufe0f\u2764\ufe0f": true, "7\u20e3.": true,
	} {
		if clean, rule := tenancy.CleanName(name, 3, 128); (rule == "") != want || want && clean != name {
			t.Errorf("CleanName(%q): got %q, %q, want to be accepted: %v", name, clean, rule, want)
		}
	}
}
