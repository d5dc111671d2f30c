package publishing_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"crier/publishing"
)

func TestContent_Plain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"plain text stays byte for byte":        {in: " a < b && c > d \n\n ü 👩‍👩‍👧 ", want: " a < b && c > d \n\n ü 👩‍👩‍👧 "},
		"text that only looks like a tag stays": {in: "x <script> y <b>z", want: "x <script> y <b>z"},
		"paragraphs become lines":               {in: "<p>one</p><p>two</p>", want: "one\ntwo"},
		"breaks become lines":                   {in: "<p>one<br>two</p>", want: "one\ntwo"},
		"lists get dashes":                      {in: "<p>do:</p><ul><li>a</li><li>b</li></ul>", want: "do:\n- a\n- b\n"[:len("do:\n- a\n- b")]},
		"a link keeps its address":              {in: `<p><a href="https://example.com">here</a></p>`, want: "here (https://example.com)"},
		"a link that shows its address":         {in: `<p><a href="https://example.com">https://example.com</a></p>`, want: "https://example.com"},
		"entities are text":                     {in: "<p>a &amp; b &lt;c&gt;</p>", want: "a & b <c>"},
		"inline markup goes":                    {in: "<p>a <strong>b</strong> <u>c</u></p>", want: "a b c"},
		"a tag that is mentioned stays":         {in: "C++ <p> tag & a<b", want: "C++ <p> tag & a<b"},
		"so does a break":                       {in: "<br makes no line, <br> does", want: "<br makes no line, <br> does"},
		"an end before its beginning stays":     {in: "close with </p>, open with <p>", want: "close with </p>, open with <p>"},
		"blocks of other HTML": {
			in:   "<p>Intro</p><div>one</div><div>two</div><table><tr><td>a</td><td>b</td></tr></table><h4>Head</h4><pre>x</pre>end",
			want: "Intro\none\ntwo\na b\nHead\nx\nend",
		},
		"blocks around others":  {in: "<div><div><p>a</p></div><section>b</section></div><p>c</p>", want: "a\nb\nc"},
		"a quotation in a text": {in: "<p>a</p>b<blockquote>c</blockquote>d", want: "a\nb\nc\nd"},
		"markup with layout": {
			in:   "<h1>Title</h1>\n<p>\n  Some text\n  and more.\n</p>\n<ul>\n  <li>a</li>\n  <li>b <strong>c</strong>\n d</li>\n</ul>\n",
			want: "Title\nSome text and more.\n- a\n- b c d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := plain(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestReadContent_KeepsTheSubset(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"plain text is not touched":   {in: "<script>alert(1)</script>", want: "<script>alert(1)</script>"},
		"scripts go":                  {in: "<p>a<script>alert(1)</script></p>", want: "<p>a</p>"},
		"handlers go":                 {in: `<p onclick="x()">a</p>`, want: "<p>a</p>"},
		"other schemes are removed":   {in: `<p><a href="javascript:x()">a</a></p>`, want: "<p>a</p>"},
		"the subset stays":            {in: "<h1>a</h1><ul><li><strong>b</strong></li></ul>", want: "<h1>a</h1><ul><li><strong>b</strong></li></ul>"},
		"list numbers stay":           {in: `<ol start="3" type="a"><li value="5">a</li></ol>`, want: `<ol type="a" start="5"><li>a</li></ol>`},
		"other elements are removed":  {in: "<p><em>a</em></p>", want: "<p>a</p>"},
		"bold by another element":     {in: `<b>a</b> <span style="font-weight: 700">b</span>`, want: "<p><strong>a</strong> <strong>b</strong></p>"},
		"bare text gets a paragraph":  {in: "one<BR>two <STRONG>x</STRONG>", want: "<p>one<br>two <strong>x</strong></p>"},
		"a leading break is enough":   {in: " <br/>a < b", want: "<p><br>a &lt; b</p>"},
		"a leading div is, too":       {in: "<div>a</div><div>b</div>", want: "<p>a</p><p>b</p>"},
		"a mentioned tag is not HTML": {in: "C++ <p> tag & a<b", want: "C++ <p> tag & a<b"},
		"nor is a leading script":     {in: "<script> is a tag", want: "<script> is a tag"},
		"nor a leading picture":       {in: "<img src=x onerror=y>a", want: "<img src=x onerror=y>a"},
		"comparisons stay":            {in: "<p>a<b and c>d, 1 < 2 <3</p>", want: "<p>a&lt;b and c&gt;d, 1 &lt; 2 &lt;3</p>"},
		"unknown tags are text":       {in: "<p>Dear <name>, List<String></p>", want: "<p>Dear &lt;name&gt;, List&lt;String&gt;</p>"},
		"half a tag is text":          {in: "<p>x <a href= y</p>", want: "<p>x &lt;a href= y</p>"},
		"an unended script is text":   {in: "<p>use <script> & <Title> well</p>", want: "<p>use &lt;script&gt; &amp; &lt;Title&gt; well</p>"},
		"a doctype goes":              {in: "<!DOCTYPE html>\n<p>a</p>", want: "<p>a</p>"},
		"half a doctype is text":      {in: "<p>a</p><!doctype", want: "<p>a</p><p>&lt;!doctype</p>"},
		"comments go":                 {in: "<!--StartFragment--><p>a</p><!-- <b> -->", want: "<p>a</p>"},
		"unclosed comments are text":  {in: "<p>a <! b <? c </ d</p>", want: "<p>a &lt;! b &lt;? c &lt;/ d</p>"},
		"what is not drawn goes":      {in: "<p>a<iframe>b</iframe><object>c</object></p>", want: "<p>ac</p>"},
		"HTML stays HTML":             {in: "<a>x &lt;p&gt; & y</a>", want: "<p>x &lt;p&gt; &amp; y</p>"},
		"attributes may hold a >":     {in: `<p title="a>b">c</p>`, want: "<p>c</p>"},

		"what is open is closed": {
			in:   `<a href="https://evil.test/">Sign in again<ul><li>x`,
			want: `<p><a href="https://evil.test/">Sign in again</a></p><ul><li><a href="https://evil.test/">x</a></li></ul>`,
		},
		"stray end tags end the line":     {in: "<p>a</u></strong></p>b</p>c", want: "<p>a</p><p>b</p><p>c</p>"},
		"a paragraph ends before a block": {in: "<p>a<p><u>b</u><h1>c</h1>d", want: "<p>a</p><p><u>b</u></p><h1>c</h1><p>d</p>"},
		"a list item ends before the next": {
			in:   "<ul><li>a<ul><li>b</ul><li>c</ul>d",
			want: "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul><p>d</p>",
		},
		"crossed emphasis is nested":            {in: "<p><strong>a<u>b</strong>c</u></p>", want: "<p><strong>a<u>b</u></strong><u>c</u></p>"},
		"an element that closes itself is open": {in: `<p/>a<a href="https://example.com/"/>b`, want: `<p>a<a href="https://example.com/">b</a></p>`},
		"the end of a break is a break":         {in: "<p>a</br>b</p>", want: "<p>a<br>b</p>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := clean(c.in); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if got := clean(clean(c.in)); got != c.want {
				t.Errorf("sent again: got %q, want %q", got, c.want)
			}
		})
	}
}

func TestReadContent_KeepsOnlyLinksToPagesAndMail(t *testing.T) {
	t.Parallel()
	for href, kept := range map[string]bool{
		"https://example.com/a?b=c": true, "http://example.com": true, "HTTPS://example.com": true, "mailto:ann@example.com": true,
		"javascript:x()": false, "JaVaScRiPt:x()": false, " javascript:x()": false, "java&#10;script:x()": false, "&#106;avascript:x()": false,
		"data:text/html,<script>x()</script>": false, "data:text/html;base64,PHA+": false, "vbscript:x()": false, "VBScript:x()": false,
		"file:///etc/passwd": false, "blob:https://example.com/1": false, "//example.com": false, "/relative": false, "ftp://example.com": false,
	} {
		got := clean(`<p><a href="` + strings.ReplaceAll(href, "<", "&lt;") + `">x</a></p>`)
		if strings.Contains(got, "href=") != kept {
			t.Errorf("%q became %q, want the link kept: %v", href, got, kept)
		}
	}
}

func clean(sent string) string { return publishing.ReadContent(sent, "").Text }

func plain(sent string) string { return publishing.ReadContent(sent, "").Plain() }

func isHTML(sent string) bool { return publishing.ReadContent(sent, "").HTML }

func markup(sent string) string { return publishing.ReadContent(sent, "").Markup() }

func TestReadContent_UsesTheGivenForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent string
		form publishing.ContentType
		want publishing.Content
	}{
		"HTML by its form": {sent: "<p>a</p>", form: "", want: publishing.Content{Text: "<p>a</p>", HTML: true}},
		"text by its form": {sent: "a <p> b", form: "", want: publishing.Content{Text: "a <p> b"}},
		"HTML that is text": {
			sent: "<p>a</p><script>x</script>", form: publishing.ContentText,
			want: publishing.Content{Text: "<p>a</p><script>x</script>"},
		},
		"text that is HTML": {
			sent: "a & b<script>x</script>", form: publishing.ContentHTML,
			want: publishing.Content{Text: "<p>a &amp; b</p>", HTML: true},
		},
		"HTML of another form": {
			sent: "<img src=x onerror=y>a", form: publishing.ContentHTML,
			want: publishing.Content{Text: "<p>a</p>", HTML: true},
		},
		"nothing that is HTML":   {sent: "", form: publishing.ContentHTML, want: publishing.Content{Text: "<p></p>", HTML: true}},
		"nothing without a form": {sent: "", form: "", want: publishing.Content{}},
	} {
		got := publishing.ReadContent(c.sent, c.form)
		if got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
		if again := publishing.ReadContent(got.Text, ""); c.form != publishing.ContentText && again != got {
			t.Errorf("%s: sent again: got %+v, want %+v", name, again, got)
		}
	}
}

func TestContent_MarkupIsSafeInAPage(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"a":                            "<p>a</p>",
		"a\r\n\nb & c\n":               "<p>a</p><p></p><p>b &amp; c</p>",
		"<img src=x onerror=alert(1)>": "<p>&lt;img src=x onerror=alert(1)&gt;</p>",
		"a</p><script>":                "<p>a&lt;/p&gt;&lt;script&gt;</p>",
		"<p>a &amp; b</p>":             "<p>a &amp; b</p>",
		"":                             "",
	} {
		if got := markup(sent); got != want {
			t.Errorf("%q: got %q, want %q", sent, got, want)
		}
	}
}

// words draws a text as people write it, in which no < begins a tag.
func words(t *rapid.T, more ...string) string {
	known := []string{"a", "p", "br", "<", ">", "<>", "</", "/>", "<3", "a<b", "c>d", "1<2", "<name>", "</name>", "List<String>", "<b",
		"<script>", "<em>", "<T>", "<!", "<?", "<!-", "\"", "'", "=", ";", "ü", "👩‍👩‍👧", "\n", "  "}
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(known, more...)), 0, 12).Draw(t, "words"), " ")
}

func TestContent_PlainTextIsUnchanged(t *testing.T) {
	t.Parallel()
	opening := regexp.MustCompile(`^\s*<(p|br|strong|a)[ />]`)
	rapid.Check(t, func(t *rapid.T) {
		text := words(t, "<p>", "<br>", "<br/>", "<strong>", `<a href="x">`, "<script>", "<b>", "&amp;", "&")
		if opening.MatchString(text) {
			t.Skip("begins with a tag")
		}
		if isHTML(text) || clean(text) != text || plain(text) != text {
			t.Fatalf("%q became %q, then %q", text, clean(text), plain(text))
		}
	})
}

// TestContent_TextWithinMarkupIsUnchanged expects each run of white space to become one space, as
// in HTML.
func TestContent_TextWithinMarkupIsUnchanged(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := "x " + words(t) + " x"
		c := publishing.ReadContent("<p>"+text+"</p>", "")
		if got, want := c.Plain(), strings.Join(strings.Fields(text), " "); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		if again := publishing.ReadContent(c.Text, ""); again != c {
			t.Fatalf("%q sent again: got %q, want it unchanged", c.Text, again.Text)
		}
	})
}

// open returns the HTML elements that are not closed in reverse order.
func open(content string) (out []string) {
	for _, m := range regexp.MustCompile(`<(/?)([a-z0-9]+)[^>]*>`).FindAllStringSubmatch(content, -1) {
		last := len(out) - 1
		switch {
		case m[2] == "br" && m[1] == "":
		case m[1] == "":
			out = append(out, m[2])
		case last >= 0 && out[last] == m[2]:
			out = out[:last]
		default:
			return append(out, "/"+m[2])
		}
	}
	return out
}

func TestReadContent_ClosesWhatItReturns(t *testing.T) {
	t.Parallel()
	pieces := []string{
		"a", "b", " c ", "\n", "<p>", "</p>", "<h1>", "</h1>", "<ul>", "</ul>", "<li>", "</li>", "<u>", "</u>", "<strong>", "</strong>",
		`<a href="https://example.com/">`, "</a>", "<br>", "</br>", "<p/>", "<div>d</div>", "<em>e</em>", "<a>", "<a href='javascript:x'>",
	}
	squeeze := strings.NewReplacer(" ", "", "\n", "", "-", "", "(https://example.com/)", "", "(javascript:x)", "")
	rapid.Check(t, func(t *rapid.T) {
		sent := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 15).Draw(t, "pieces"), "")
		c := publishing.ReadContent(sent, publishing.ContentHTML)
		if left := open(c.Text); len(left) != 0 {
			t.Fatalf("%q became %q: %q are not closed", sent, c.Text, left)
		}
		if again := publishing.ReadContent(c.Text, ""); again != c {
			t.Fatalf("%q became %q, and then %q", sent, c.Text, again.Text)
		}
		if before, after := (publishing.Content{Text: sent, HTML: true}).Plain(), c.Plain(); squeeze.Replace(before) != squeeze.Replace(after) {
			t.Fatalf("%q: the words %q became %q", sent, before, after)
		}
	})
}

func TestReadContent_UnclosedElementsKeepThePlainText(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		"<p>one<p>two":                            "one\ntwo",
		"<p>one</p>two</p>three":                  "one\ntwo\nthree",
		"<ul><li>a<li>b":                          "- a\n- b",
		"<strong><p>a</strong>b</p>c":             "ab\nc",
		`<p>a<a href="https://example.com/">b<p>`: "ab (https://example.com/)",
	} {
		if got := plain(sent); got != want {
			t.Errorf("%q: got %q, want %q", sent, got, want)
		}
	}
}

func TestBlank(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, " \t\r\n\u00a0\u3000": true, "\u200b\u200c\u200d\u2060\ufeff": true, "\u00ad\u202e\u2066": true, "\u3164\u115f\ufe0f\u2800": true, "\x01\x7f": true,
		"a": false, " . ": false, "👩‍👩‍👧": false, "\u200b!": false, "🏴\U000e0067\U000e007f": false, "ـ": false, "\ufffd": false,
	} {
		if got := publishing.Blank(text); got != want {
			t.Errorf("Blank(%q): got %v, want %v", text, got, want)
		}
	}
}

func FuzzContent(f *testing.F) {
	for _, s := range []string{"", "plain", "<p>", "<p>a</p>", "<ul><li>x", `<a href="x`, "<p><p><p>", "\x00<p>", "<p>\xff</p>", "<br/><br />"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := publishing.ReadContent(s, "")
		plain := c.Plain()
		if !c.HTML && (c.Text != s || plain != s) {
			t.Fatalf("plain text %q became %q, %q", s, c.Text, plain)
		}
		if c.HTML && !publishing.ReadContent(c.Text, "").HTML {
			t.Fatalf("%q is HTML, %q no longer", s, c.Text)
		}
		if as := publishing.ReadContent(s, publishing.ContentHTML); strings.Contains(strings.ToLower(as.Text), "<script") {
			t.Fatalf("%q kept a script: %q", s, as.Text)
		}
		if utf8.ValidString(s) && !utf8.ValidString(plain) {
			t.Fatalf("%q lost its encoding: %q", s, plain)
		}
	})
}
