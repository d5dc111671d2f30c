package passwords_test

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"crier/tenancy/passwords"
)

func TestCommon_FindsListedPasswords(t *testing.T) {
	t.Parallel()
	for name, password := range map[string]string{
		"the first of the list":      "password",
		"the last of the list":       "18051978",
		"a word with a digit":        "password1",
		"capitals":                   "PASSWORD1",
		"some capitals":              "PassWord123",
		"a capital outside of ASCII": "\u212aimberly", // the Kelvin sign, whose lower case is "k"
		"digits in sequence":         "12345678",
		"digits in reverse":          "987654321",
		"one digit repeated":         "00000000",
		"keys in sequence":           "qwertyuiop",
		"a symbol":                   "p@ssw0rd",
		"spaces before and after":    "  iloveyou \t",
		"a space outside of ASCII":   "iloveyou\u00a0",
		"a line feed after":          "iloveyou\n",
	} {
		if !passwords.Common(password) {
			t.Errorf("%s: Common(%q) is false, want true", name, password)
		}
	}
}

func TestCommon_FindsNoOtherPasswords(t *testing.T) {
	t.Parallel()
	for name, password := range map[string]string{
		"a random one":               rand.Text()[:16],
		"a fixed one":                "kJ8#vQ2pLx9!mZ4w",
		"an empty one":               "",
		"spaces":                     "        ",
		"a line feed":                "\n",
		"a common one that is short": "1234567",
		"the start of a listed one":  "q1w2e3r4t",
		"more than a listed one":     "q1w2e3r4t5, then more",
		"a space inside":             "pass word1",
		"two lines of the list":      "password\n12345678",
		"no UTF-8":                   "password1\xff",
	} {
		if passwords.Common(password) {
			t.Errorf("%s: Common(%q) is true, want false", name, password)
		}
	}
}

// TestList_HoldsComparablePasswords checks that every line is in lower case without spaces around
// it, because Common finds no other lines.
func TestList_HoldsComparablePasswords(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("common.txt")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		password, ended := strings.CutSuffix(line, "\n")
		if !ended || password != strings.ToLower(strings.TrimSpace(password)) || utf8.RuneCountInString(password) < 8 {
			t.Errorf("line %d is %q, want at least 8 characters in lower case without spaces and a line feed", number, line)
		}
		if seen[password] != 0 {
			t.Errorf("line %d repeats %q of line %d, want each password once", number, password, seen[password])
		}
		seen[password] = number
	}
	if number != 10_000 {
		t.Errorf("the list has %d passwords, want 10000", number)
	}
}

func BenchmarkCommon(b *testing.B) {
	for b.Loop() {
		passwords.Common("kJ8#vQ2pLx9!mZ4w")
	}
}
