package publishing_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"crier/publishing"
)

func TestPlainText(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"plain text stays byte for byte":        {" a < b && c > d \n\n ü 👩‍👩‍👧 ", " a < b && c > d \n\n ü 👩‍👩‍👧 "},
		"text that only looks like a tag stays": {"x <script> y <b>z", "x <script> y <b>z"},
		"paragraphs become lines":               {"<p>one</p><p>two</p>", "one\ntwo"},
		"breaks become lines":                   {"<p>one<br>two</p>", "one\ntwo"},
		"lists get dashes":                      {"<p>do:</p><ul><li>a</li><li>b</li></ul>", "do:\n- a\n- b\n"[:len("do:\n- a\n- b")]},
		"a link keeps its address":              {`<p><a href="https://example.com">here</a></p>`, "here (https://example.com)"},
		"a link that shows its address":         {`<p><a href="https://example.com">https://example.com</a></p>`, "https://example.com"},
		"entities are text":                     {"<p>a &amp; b &lt;c&gt;</p>", "a & b <c>"},
		"inline markup goes":                    {"<p>a <strong>b</strong> <u>c</u></p>", "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := publishing.PlainText(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSanitize(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"plain text is not touched":   {"<script>alert(1)</script>", "<script>alert(1)</script>"},
		"scripts go":                  {"<p>a<script>alert(1)</script></p>", "<p>a</p>"},
		"handlers go":                 {`<p onclick="x()">a</p>`, "<p>a</p>"},
		"odd schemes go":              {`<p><a href="javascript:x()">a</a></p>`, "<p>a</p>"},
		"the subset stays":            {"<h1>a</h1><ul><li><strong>b</strong></li></ul>", "<h1>a</h1><ul><li><strong>b</strong></li></ul>"},
		"what is outside it loses it": {"<p><em>a</em></p>", "<p>a</p>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := publishing.Sanitize(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func FuzzContent(f *testing.F) {
	for _, s := range []string{"", "plain", "<p>", "<p>a</p>", "<ul><li>x", `<a href="x`, "<p><p><p>", "\x00<p>", "<p>\xff</p>", "<br/><br />"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		clean := publishing.Sanitize(s)
		plain := publishing.PlainText(clean)
		if !publishing.IsHTML(s) && (clean != s || plain != s) {
			t.Fatalf("plain text %q became %q, %q", s, clean, plain)
		}
		if publishing.IsHTML(s) && strings.Contains(strings.ToLower(clean), "<script") {
			t.Fatalf("%q kept a script: %q", s, clean)
		}
		if utf8.ValidString(s) && !utf8.ValidString(plain) {
			t.Fatalf("%q lost its encoding: %q", s, plain)
		}
	})
}
