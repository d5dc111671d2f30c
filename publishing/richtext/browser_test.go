//go:build long

package richtext_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"crier/publishing/richtext"
	"crier/tests/browser"
)

// TestBrowser_DrawsTheSameLines compares the lines of documents with the lines that Chromium draws.
func TestBrowser_DrawsTheSameLines(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 0))}
	var documents []string
	for _, d := range editorDocuments(t) {
		documents = append(documents, d.html)
	}
	for range 2000 {
		documents = append(documents, g.document())
	}
	differ := 0
	for i, want := range browser.Lines(t, documents) {
		got := drawn(richtext.Parse(documents[i]).Plain())
		if !slices.Equal(got, want) {
			if differ++; differ < 20 {
				at := 0
				for at < min(len(got), len(want)) && got[at] == want[at] {
					at++
				}
				t.Errorf("%s\nfrom line %d:\ngot  %q\nwant %q", documents[i], at, got[at:min(at+3, len(got))], want[at:min(at+3, len(want))])
			}
		}
	}
	if differ > 0 {
		t.Errorf("the lines of %d of %d documents differ from Chromium's", differ, len(documents))
	}
}

var marker = regexp.MustCompile(`^\s*(?:-|[0-9]+\.|[a-zA-Z]\.|[ivxIVX]+\.)(?:\s|$)`)

// drawn returns the lines of plain text in the form that browser.Lines returns.
func drawn(plain string) (out []string) {
	for line := range strings.SplitSeq(plain, "\n") {
		line = strings.Join(strings.Fields(marker.ReplaceAllString(line, "")), " ")
		if line != "" {
			out = append(out, line)
		}
	}
	return out
}

// generator writes documents as editors and people do: with blocks in blocks, in items and in bold
// text, with white space for layout, with breaks anywhere, and with missing tags.
type generator struct {
	*rand.Rand
	words int
}

func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) document() string {
	var b strings.Builder
	for range 1 + g.IntN(5) {
		b.WriteString(g.block(0) + g.layout())
	}
	return b.String()
}

func (g *generator) layout() string { return g.one("", "", "", " ", "\n", "\n  ", "\t") }

func (g *generator) word() string {
	g.words++
	if g.chance(10) {
		return g.one("字", "語句", "한글", "カナ") + fmt.Sprint(g.words) + g.one("字", "語句", "한글", "カナ")
	}
	return g.one("word", "Wort", "mot", "слово", "x&amp;y", "naïve", "it&#39;s", "😀") + fmt.Sprint(g.words)
}

// inline returns text with marks, breaks and links.
func (g *generator) inline(depth int) string {
	var b strings.Builder
	for range 1 + g.IntN(4) {
		switch n := g.IntN(20); {
		case n < 9 || depth > 3:
			b.WriteString(g.word())
		case n < 11:
			b.WriteString(g.one("<br>", "<br/>", "<br>\n"))
		case n < 12:
			b.WriteString(`<a href="https://a.example/` + fmt.Sprint(g.words) + `">` + g.word() + "</a>")
		case n < 13:
			b.WriteString(`<span style="white-space: pre-wrap;">` + g.word() + g.one(" ", "  ", "\n") + g.word() + "</span>")
		case n < 14:
			b.WriteString(g.one(`<span style="display:none">hidden</span>`, "<!-- c -->", `<span hidden>h</span>`, "<wbr>"+g.word(), "<o:p></o:p>", "&nbsp;"))
		default:
			tag := g.one("strong", "b", "em", "i", "u", "span", "code", "s", "mark", "small", "font")
			b.WriteString("<" + tag + ">" + g.one("", " ") + g.inline(depth+1) + g.one("", " ") + "</" + tag + ">")
		}
		b.WriteString(g.one("", " ", "  ", "\n", "\n   "))
	}
	return b.String()
}

func (g *generator) block(depth int) string {
	if depth > 3 {
		return "<p>" + g.inline(0) + "</p>"
	}
	switch n := g.IntN(24); {
	case n < 6:
		return "<p" + g.one("", ` class="x"`, ` dir="ltr"`) + ">" + g.layout() + g.inline(0) + g.layout() + g.one("</p>", "</p>", "</p>", "<br></p>")
	case n < 7:
		return g.one("<p></p>", "<p><br></p>", "<p>&nbsp;</p>", "<div><br></div>", "<br>", "<hr>")
	case n < 9:
		tag := g.one("h1", "h2", "h3", "h4", "h6")
		return "<" + tag + ">" + g.inline(1) + "</" + tag + ">"
	case n < 12:
		return "<div>" + g.layout() + g.inline(1) + g.one("", g.block(depth+1)) + g.layout() + "</div>"
	case n < 14:
		tag := g.one("blockquote", "section", "article", "figure", "aside", "center")
		return "<" + tag + ">" + g.layout() + g.block(depth+1) + g.block(depth+1) + "</" + tag + ">"
	case n < 19:
		return g.list(depth)
	case n < 20:
		return g.table()
	case n < 21:
		return "<pre>" + g.word() + "\n  " + g.word() + g.one("", "\n") + "</pre>"
	case n < 22:
		tag := g.one("b", "span", "strong", "em")
		return "<" + tag + ">" + g.block(depth+1) + g.layout() + "</" + tag + ">"
	default:
		return g.inline(0)
	}
}

func (g *generator) list(depth int) string {
	tag := g.one("ul", "ul", "ol", `ol start="7"`, `ol type="a"`)
	var b strings.Builder
	b.WriteString("<" + tag + ">" + g.layout())
	for range 1 + g.IntN(4) {
		b.WriteString("<li>" + g.layout())
		switch n := g.IntN(8); {
		case n < 3:
			b.WriteString(g.inline(1))
		case n < 5:
			b.WriteString("<p>" + g.inline(1) + "</p>" + g.layout())
		case n < 6:
			b.WriteString(g.inline(1) + g.list(depth+1))
		case n < 7 && depth < 3:
			b.WriteString("<p>" + g.inline(1) + "</p>" + g.block(depth+1))
		default:
			b.WriteString(g.one("<h3>", "<div>") + g.word() + "</h3></div>")
		}
		b.WriteString(g.one("</li>", "</li>", "") + g.layout())
		if g.chance(10) && depth < 3 {
			b.WriteString(g.list(depth + 1))
		}
	}
	b.WriteString("</" + tag[:2] + ">")
	return b.String()
}

func (g *generator) table() string {
	var b strings.Builder
	b.WriteString("<table>" + g.one("", "<tbody>"))
	for range 1 + g.IntN(3) {
		b.WriteString("<tr>")
		for range 1 + g.IntN(3) {
			b.WriteString(g.one("<td>", "<th>") + g.one(g.word(), "<p>"+g.word()+"</p>", g.word()+" "+g.word(), ""))
			b.WriteString(g.layout())
		}
		b.WriteString("</tr>" + g.layout())
	}
	return b.String() + "</table>"
}
