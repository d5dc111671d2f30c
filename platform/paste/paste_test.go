package paste_test

import (
	"testing"

	"crier/platform/paste"
)

func TestWord(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                                  "",
		"alice.test":                        "alice.test",
		"\u202aalice.test\u202c":            "alice.test", // from a profile
		"alice.test\u200b\ufeff\u00a0 \r\n": "alice.test",
		"abcd–efgh—ijkl‑mnop":               "abcd-efgh-ijkl-mnop", // a keyboard that autocorrects
		"abcd\u2212efgh\ufe58":              "abcd-efgh-",
		"123 456":                           "123456",
		"１２３４５６":                            "123456",
		"ａｌｉｃｅ＠ｅｘａｍｐｌｅ．ｃｏｍ":                "alice@example.com",
		"https://a\u00adb.example/\u2060x": "https://ab.example/x",
		"müller.example/日本":                "müller.example/日本",
		"a\ufe0fb\u200dc":                  "abc",
		"“crier_abc”":                      "crier_abc",
		"<https://a.example/x>":            "https://a.example/x",
		"alice。test":                       "alice.test",
		"\x7fa\x00b":                       "ab",
		"it's":                             "it's",
	} {
		if got := paste.Word(in); got != want {
			t.Errorf("Word(%+q): got %+q, want %+q", in, got, want)
		}
	}
}

func TestTrim(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "\u202a\u200b ada@example.org\u202c\u00a0\ufeff\n": "ada@example.org", "a\u202eb": "a\u202eb", "a b": "a b",
	} {
		if got := paste.Trim(in); got != want {
			t.Errorf("Trim(%+q): got %+q, want %+q", in, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                          "",
		"\u00a0 Ann – Lee \r\n":     "Ann – Lee",
		"\u2066Ann\u2069 \u200bLee": "Ann Lee",
		"👩\u200d👩\u200d👧 می\u200cخواهم": "👩\u200d👩\u200d👧 می\u200cخواهم",
		"a\x00b\x07": "a\x00b\x07",
	} {
		if got := paste.Line(in); got != want {
			t.Errorf("Line(%+q): got %+q, want %+q", in, got, want)
		}
	}
}
