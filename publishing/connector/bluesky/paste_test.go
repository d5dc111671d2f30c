package bluesky

import "testing"

func TestIdentifierOf(t *testing.T) {
	t.Parallel()
	for pasted, want := range map[string]string{
		"alice.test":                           "alice.test",
		"\u202a@alice.test\u202c\u00a0":        "alice.test",
		"https://bsky.app/profile/alice.test/": "alice.test",
		"bsky.app/profile/did:plc:abc":         "did:plc:abc",
		"at://alice.test":                      "alice.test",
		"“Ann\u200b@Example.com”":              "Ann@Example.com",
		"\uff20alice\uff0etest":                "alice.test",
	} {
		if got := identifierOf(pasted); got != want {
			t.Errorf("identifierOf(%+q): got %+q, want %+q", pasted, got, want)
		}
	}
}

func TestAppPassword(t *testing.T) {
	t.Parallel()
	for pasted, want := range map[string]string{
		"abcd-efgh-ijkl-mnop":            "abcd-efgh-ijkl-mnop",
		" abcd–efgh—ijkl‑mnop\u200b\r\n": "abcd-efgh-ijkl-mnop", // a keyboard that autocorrects
		"'abcd-efgh-ijkl-mnop'":          "abcd-efgh-ijkl-mnop",
		// In an account password every character counts.
		" a pass – word ": " a pass – word ",
	} {
		if got := appPassword(pasted); got != want {
			t.Errorf("appPassword(%+q): got %+q, want %+q", pasted, got, want)
		}
	}
}
