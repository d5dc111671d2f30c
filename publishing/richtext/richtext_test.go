package richtext_test

import (
	"strings"
	"testing"

	"crier/publishing/richtext"
)

func TestPlain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"items with paragraphs":    {`<ul><li><p>a</p></li><li><p>b</p></li></ul>`, "- a\n- b"},
		"items with headings":      {`<ul><li><h3>a</h3></li><li><h3>b</h3></li></ul>`, "- a\n- b"},
		"numbers":                  {`<p>x</p><ol start="3"><li>a</li><li>b</li></ol><p>y</p>`, "x\n3. a\n4. b\ny"},
		"letters":                  {`<ol type="a"><li>a</li><li>b</li></ol>`, "a. a\nb. b"},
		"a list in an item":        {`<ul><li><p>a</p><ul><li><p>b</p></li></ul></li><li>c</li></ul>`, "- a\n  - b\n- c"},
		"a list in a list":         {`<ul><li>a</li><ul><li>b</li></ul><li>c</li></ul>`, "- a\n  - b\n- c"},
		"a list that wraps a list": {`<ul><li style="list-style-type: none;"><ul><li>b</li></ul></li></ul>`, "- b"},
		"paragraphs in an item":    {`<ul><li><p>a</p><p>b</p></li></ul>`, "- a\n  b"},
		"a list without markers":   {`<ul style="list-style-type:none"><li>a</li><li>b</li></ul>`, "a\nb"},
		"an empty item":            {`<ul><li></li><li><p></p></li><li>a</li></ul>`, "-\n-\n- a"},
		"white space":              {"<p>\n  Some text\n  and more.\n</p>\n<p> x </p>", "Some text and more.\nx"},
		"a break at the end":       {`<p>a<br></p><p>b<br/></p>`, "a\nb"},
		"blank paragraphs":         {`<p>a</p><p></p><p>b</p><p><br></p><p>c</p>`, "a\n\nb\n\nc"},
		"an extra end tag":         {`<p>a<ul><li>b</li></ul></p><p>c</p>`, "a\n- b\nc"},
		"divs":                     {`<div>a</div><div><br></div><div>b<div>c</div></div>d`, "a\n\nb\nc\nd"},
		"bold at the beginning":    {`<b>a</b> b<div>c</div>`, "a b\nc"},
		"a paragraph in bold":      {`<b style="font-weight:normal;" id="docs-internal-guid-1"><p dir="ltr"><span style="white-space:pre-wrap;">a  b</span></p><br><p>c</p></b>`, "a \u00a0b\n\nc"},
		"cells with paragraphs":    {`<table><tbody><tr><td><p>a</p></td><td><p>b</p></td></tr><tr><td><p>c</p><p>d</p></td></tr></table>`, "a b\nc\nd"},
		"cells without a table":    {`<tr><td>a</td><td>b</td></tr>`, "a b"},
		"code":                     {"<pre><code>a\n  b\n</code></pre>", "a\n\u00a0 b"},
		"Quill":                    {`<ol><li data-list="bullet"><span class="ql-ui" contenteditable="false"></span>a</li><li data-list="bullet" class="ql-indent-1"><span class="ql-ui"></span>b</li><li data-list="ordered">c</li></ol>`, "- a\n  - b\n1. c"},
		"tasks of Tiptap":          {`<ul data-type="taskList"><li data-checked="true"><label><input type="checkbox" checked><span></span></label><div><p>a</p></div></li></ul>`, "- a"},
		"Word": {`<p class=MsoListParagraphCxSpFirst style='text-indent:-.25in;mso-list:l0 level1 lfo1'><![if !supportLists]><span style='font-family:Symbol'><span style='mso-list:Ignore'>·<span style='font:7.0pt "Times New Roman"'>&nbsp;&nbsp; </span></span></span><![endif]>a<o:p></o:p></p>
<p class=MsoListParagraphCxSpLast style='mso-list:l0 level2 lfo1'><![if !supportLists]><span style='mso-list:Ignore'>1.<span>&nbsp;</span></span><![endif]>b</p><p class=MsoNormal>c<o:p>&nbsp;</o:p></p>`, "- a\n  1. b\nc"},
		"comments and heads": {"<html><head><title>x</title><style>p{}</style></head><body><!--StartFragment--><p>a</p><!--EndFragment--></body></html>", "a"},
		"what is hidden":     {`<p>a<span style="display: none">b</span><span hidden>c</span></p>`, "a"},
		"emoji as pictures":  {`<p>a <img alt="😀" src="x"><img alt="a cat" src="y"></p>`, "a 😀"},
		"Slack emoji":        {`We shipped <img data-stringify-type="emoji" src="x" alt=":tada:">`, "We shipped :tada:"},
		"more Slack emoji":   {`a <img alt=":wave::skin-tone-2:" src="x"> <img alt=":blobCat:" src="x"> <img alt=": a :" src="x">`, "a :wave::skin-tone-2: :blobCat:"},
		"addresses as browsers show them": {`<p><a href="https://a.example/">https://a.example</a>, <a href="https://de.example/Stra%C3%9Fe">https://de.example/Straße</a>, ` +
			`<a href="mailto:ann@a.example?subject=Hi">ann@a.example</a>, <a href="https://a.example/b/">https://a.example/b</a></p>`,
			"https://a.example, https://de.example/Straße, ann@a.example, https://a.example/b (https://a.example/b/)"},
		"addresses that only look like their text": {`<a href="https://a.example/x%20y.pdf">https://a.example/x y.pdf</a>, <a href="https://a.example/?q=a%26b">https://a.example/?q=a&amp;b</a>, ` +
			`<a href="https://example.co/">https://example.com</a>, <a href="https://a.example/">https://a.example.org/x</a>, <a href="mailto:?subject=Hi">Tell a friend</a>`,
			"https://a.example/x y.pdf (https://a.example/x%20y.pdf), https://a.example/?q=a&b (https://a.example/?q=a%26b), " +
				"https://example.com (https://example.co/), https://a.example.org/x (https://a.example/), Tell a friend (mailto:?subject=Hi)"},
		"addresses as people write them": {`<p><a href="www.a.example/b">a</a>, <a href="https://a.example/x
 y?q=1&copy=2">b</a></p>`, "a (https://www.a.example/b), b (https://a.example/x%20y?q=1&copy=2)"},
		"links":                  {`<p><a href="https://example.com/">here</a>, <a href="https://a.example">https://a.example</a>, <a href="#x">y</a></p>`, "here (https://example.com/), https://a.example, y"},
		"a link without text":    {`<a href="https://example.com/"><img src="x"></a>`, "https://example.com/"},
		"a line feed in Chinese": {"<p>汉字\n汉字 a\nb</p>", "汉字 汉字 a b"},
		"unknown tags":           {"<p>Dear <name>, List<String>, a<b and c>d <https://a.example> <ann@a.example></p>", "Dear <name>, List<String>, a<b and c>d <https://a.example> <ann@a.example>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := richtext.Parse(c.in)
			if got := d.Plain(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			again := richtext.Parse(d.HTML())
			if again.Plain() != d.Plain() || again.HTML() != d.HTML() {
				t.Errorf("%q read again is %q", d.HTML(), again.HTML())
			}
		})
	}
}

func TestParse_KeepsTheTextOfDeepNesting(t *testing.T) {
	t.Parallel()
	got := richtext.Parse(strings.Repeat("<div>", 600) + "a<p>b</p>" + strings.Repeat("</div>", 600)).Plain()
	if got != "a\nb" {
		t.Errorf("got %q, want both lines", got)
	}
}

// TestParse_IsNotMuchLargerThanItsSource covers nested lists and links around many blocks, which
// need only a few bytes of HTML per block.
func TestParse_IsNotMuchLargerThanItsSource(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{
		"nested lists":               strings.Repeat("<ul><li>", 200) + strings.Repeat("a<li>", 20_000),
		"a long link around blocks":  `<a href="https://a.example/` + strings.Repeat("x", 50_000) + `">` + strings.Repeat("<p>a</p>", 10_000),
		"a short link around blocks": `<a href="https://a.example/` + strings.Repeat("x", 1_000) + `">` + strings.Repeat("<p>a</p>", 20_000),
	} {
		d := richtext.Parse(sent)
		if markup, plain := len(d.HTML()), len(d.Plain()); markup > 4<<20 || plain > 4<<20 {
			t.Errorf("%s: %d bytes became %d of HTML and %d of text", name, len(sent), markup, plain)
		}
	}
}
