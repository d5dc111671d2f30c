package tenancy_test

import (
	"testing"

	"crier/tenancy"
)

func TestMailbox_IsTheSameForAllItsAddresses(t *testing.T) {
	t.Parallel()
	for email, want := range map[string]string{
		"ada@example.com":                 "ada@example.com",
		" Ada+1@Example.com":              "ada@example.com",
		"ada+a+b@example.com":             "ada@example.com",
		"a.d.a@example.com":               "a.d.a@example.com",
		"A.d.a+news@googlemail.com":       "ada@gmail.com",
		"ada@gmail.com":                   "ada@gmail.com",
		"+1@example.com":                  "+1@example.com",
		"ada@sub.example.com":             "ada@sub.example.com",
		"victim+anything@victim.example ": "victim@victim.example",
	} {
		if got := tenancy.Mailbox(email); got != want {
			t.Errorf("%q: got %q, want %q", email, got, want)
		}
	}
}
