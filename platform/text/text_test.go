package text_test

import (
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"crier/platform/text"
)

func TestCut_KeepsCharactersWhole(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		n        int
		cut      string
		cutBytes string
		shorten  string
	}{
		{name: "a short text stays", in: "abc", n: 3, cut: "abc", cutBytes: "abc", shorten: "abc"},
		{name: "a long one is cut", in: "abcd", n: 3, cut: "abc", cutBytes: "abc", shorten: "ab…"},
		{name: "an empty one stays", in: "", n: 3},
		{name: "characters of two bytes", in: "ééé", n: 3, cut: "ééé", cutBytes: "é", shorten: "ééé"},
		{name: "characters of four bytes", in: "😀😀😀😀", n: 3, cut: "😀😀😀", cutBytes: "", shorten: "😀😀…"},
		{name: "a character after others", in: "a😀b", n: 3, cut: "a😀b", cutBytes: "a", shorten: "a😀b"},
		{name: "bytes that are no character", in: "\x80\x80\x80\x80\x80\x80", n: 5, cut: "\x80\x80\x80\x80\x80",
			cutBytes: "\x80\x80\x80\x80\x80", shorten: "\x80\x80\x80\x80…"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := text.Cut(tt.in, tt.n); got != tt.cut {
				t.Errorf("Cut: got %q, want %q", got, tt.cut)
			}
			if got := text.CutBytes(tt.in, tt.n); got != tt.cutBytes {
				t.Errorf("CutBytes: got %q, want %q", got, tt.cutBytes)
			}
			if got := text.Shorten(tt.in, tt.n); got != tt.shorten {
				t.Errorf("Shorten: got %q, want %q", got, tt.shorten)
			}
		})
	}
}

func TestCut_ReturnsBeginnings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.String().Draw(t, "text")
		n := rapid.IntRange(0, 20).Draw(t, "n")
		got := text.Cut(in, n)
		if want := min(n, utf8.RuneCountInString(in)); !strings.HasPrefix(in, got) || utf8.RuneCountInString(got) != want {
			t.Fatalf("Cut returns %q, want the first %d characters", got, want)
		}
		got = text.CutBytes(in, n)
		if !strings.HasPrefix(in, got) || len(got) > n || !utf8.ValidString(got) || len(in) > n && len(got) <= n-utf8.UTFMax {
			t.Fatalf("CutBytes returns %q, want whole characters of at most %d bytes", got, n)
		}
	})
}

func TestLine_ReturnsStorableText(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in    string
		limit int
		want  string
	}{
		"plain words stay":                {in: "Grüße, 世界 👩‍👧", limit: 100, want: "Grüße, 世界 👩‍👧"},
		"U+0000 is left out":              {in: "a\x00b\x00", limit: 100, want: "ab"},
		"control characters as well":      {in: "a\x1b[31mb\x7f\u0080\u009fc", limit: 100, want: "a[31mbc"},
		"white space becomes one space":   {in: " \t a\r\n\u0085\u2028b \n", limit: 100, want: "a b"},
		"directions are left out":         {in: "a\u202Eb\u2066c\u200Fd", limit: 100, want: "abcd"},
		"no-width characters as well":     {in: "a\u200Bb\uFEFFc\u2060", limit: 100, want: "abc"},
		"invalid UTF-8 is left out":       {in: "a\xff\xc3b\xed\xa0\x80", limit: 100, want: "ab"},
		"the replacement character stays": {in: "a\uFFFDb", limit: 100, want: "a\uFFFDb"},
		"a cut does not split":            {in: "aéé", limit: 4, want: "aé"},
		"a cut leaves no space":           {in: "a b", limit: 2, want: "a"},
		"a limit of 0 leaves nothing":     {in: "a", limit: 0, want: ""},
	} {
		if got := text.Line(tc.in, tc.limit); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func FuzzLine(f *testing.F) {
	f.Add("a\x00\xff \n\u0085é👩‍👧", 5)
	f.Add("\uFFFD\xed\xa0\x80", 100)
	f.Fuzz(func(t *testing.T, words string, limit int) {
		got := text.Line(words, limit)
		if len(got) > max(limit, 0) || !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Fatalf("%q with a limit of %d: got %q, want clean text within the limit", words, limit, got)
		}
		if again := text.Line(got, limit); again != got {
			t.Fatalf("cleaning twice: got %q, want %q", again, got)
		}
	})
}

func TestHidden_FindsInvisibleCharacters(t *testing.T) {
	t.Parallel()
	for _, r := range "\u061C\u200B\u200E\u202E\u2060\u2066\uFEFF" {
		if !text.Hidden(r) {
			t.Errorf("%U is not hidden", r)
		}
	}
	for _, r := range "a é\u00AD\u200C\u200D\uFE0F" {
		if text.Hidden(r) {
			t.Errorf("%U is hidden", r)
		}
	}
}

func TestCount_AddsTheNoun(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		0: "0 posts", 1: "1 post", 2: "2 posts", math.MaxInt: "9223372036854775807 posts",
	} {
		if got := text.Count(n, "post"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestList_JoinsItems(t *testing.T) {
	t.Parallel()
	for want, items := range map[string][]string{
		"": nil, "A": {"A"}, "A and B": {"A", "B"}, "A, B and C": {"A", "B", "C"},
	} {
		if got := text.List(items); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
