package publishing_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

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
		"a tag that is mentioned stays":         {"C++ <p> tag & a<b", "C++ <p> tag & a<b"},
		"so does a break":                       {"<br makes no line, <br> does", "<br makes no line, <br> does"},
		"an end before its beginning stays":     {"close with </p>, open with <p>", "close with </p>, open with <p>"},
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
		"upper case and breaks count": {"one<BR>two <STRONG>x</STRONG>", "one<br>two <strong>x</strong>"},
		"a leading break is enough":   {" <br/>a < b", " <br/>a &lt; b"},
		"a mentioned tag is not HTML": {"C++ <p> tag & a<b", "C++ <p> tag & a<b"},
		"comparisons stay":            {"<p>a<b and c>d, 1 < 2 <3</p>", "<p>a&lt;b and c&gt;d, 1 &lt; 2 &lt;3</p>"},
		"unknown tags are text":       {"<p>Dear <name>, List<String></p>", "<p>Dear &lt;name&gt;, List&lt;String&gt;</p>"},
		"half a tag is text":          {"<p>x <a href= y</p>", "<p>x &lt;a href= y</p>"},
		"an unended script is text":   {"<p>use <script> & <Title> well</p>", "<p>use &lt;script&gt; &amp; &lt;Title&gt; well</p>"},
		"a doctype goes":              {"<!DOCTYPE html>\n<p>a</p>", "\n<p>a</p>"},
		"half a doctype is text":      {"<p>a</p><!doctype", "<p>a</p>&lt;!doctype"},
		"comments go":                 {"<!--StartFragment--><p>a</p><!-- <b> -->", "<p>a</p>"},
		"odd comments are text":       {"<p>a <! b <? c </ d</p>", "<p>a &lt;! b &lt;? c &lt;/ d</p>"},
		"texts of frames stay":        {"<p>a<iframe>b</iframe><object>c</object></p>", "<p>abc</p>"},
		"HTML stays HTML":             {"<a>x &lt;p&gt; & y</a>", "<p>x &lt;p&gt; &amp; y</p>"},
		"attributes may hold a >":     {`<p title="a>b">c</p>`, "<p>c</p>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := publishing.Sanitize(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestIsHTML_ReadsManyCommentsWithoutAnEndInLinearTime(t *testing.T) {
	t.Parallel()
	if publishing.IsHTML(strings.Repeat("<!--<p>", 200_000)) { // quadratic time is hours
		t.Error("mentioned tags make HTML")
	}
}

// words are what people write, with < in every place that is no tag.
func words(t *rapid.T, more ...string) string {
	known := []string{"a", "p", "br", "<", ">", "<>", "</", "/>", "<3", "a<b", "c>d", "1<2", "<name>", "</name>", "List<String>", "<b", "<script>", "<em>", "<T>", "<!", "<?", "<!-", "\"", "'", "=", ";", "ü", "👩‍👩‍👧", "\n", "  "}
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(known, more...)), 0, 12).Draw(t, "words"), " ")
}

func TestPlainTextComesThroughUnchanged(t *testing.T) {
	t.Parallel()
	opening := regexp.MustCompile(`^\s*<(p|br|strong|a)[ />]`)
	rapid.Check(t, func(t *rapid.T) {
		text := words(t, "<p>", "<br>", "<br/>", "<strong>", `<a href="x">`, "<script>", "<b>", "&amp;", "&")
		if opening.MatchString(text) {
			t.Skip("begins with a tag")
		}
		if publishing.IsHTML(text) || publishing.Sanitize(text) != text || publishing.PlainText(text) != text {
			t.Fatalf("%q became %q, then %q", text, publishing.Sanitize(text), publishing.PlainText(publishing.Sanitize(text)))
		}
	})
}

func TestTextWithinMarkupComesThroughUnchanged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := "x " + words(t) + " x"
		clean := publishing.Sanitize("<p>" + text + "</p>")
		if got := publishing.PlainText(clean); got != text {
			t.Fatalf("%q became %q", text, got)
		}
		if again := publishing.Sanitize(clean); again != clean {
			t.Fatalf("%q became %q the second time", clean, again)
		}
	})
}

func TestBlank(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, " \t\r\n\u00a0\u3000": true, "\u200b\u200c\u200d\u2060\ufeff": true, "\u00ad\u202e\u2066": true, "\u3164\u115f\ufe0f\u2800": true, "\x01\x7f": true,
		"a": false, " . ": false, "👩‍👩‍👧": false, "\u200b!": false, "🏴\U000e0067\U000e007f": false, "ـ": false, "\ufffd": false,
	} {
		if got := publishing.Blank(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
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
		if publishing.IsHTML(s) && !publishing.IsHTML(clean) {
			t.Fatalf("%q is HTML, %q no longer", s, clean)
		}
		if publishing.IsHTML(s) && strings.Contains(strings.ToLower(clean), "<script") {
			t.Fatalf("%q kept a script: %q", s, clean)
		}
		if utf8.ValidString(s) && !utf8.ValidString(plain) {
			t.Fatalf("%q lost its encoding: %q", s, plain)
		}
	})
}
