package publishing

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/microcosm-cc/bluemonday"
)

// isHTML reports whether content is the HTML subset rather than plain text: it begins with a tag of the subset, white
// space aside, or one of its tags is closed. A tag that is only mentioned makes no HTML.
func isHTML(content string) bool {
	start := len(content) - len(strings.TrimLeftFunc(content, unicode.IsSpace))
	opened := map[string]bool{}
	for _, t := range tagsOf(content) {
		switch {
		case classOf(t.name) != inSubset:
		case t.start == start, t.closing && opened[t.name]:
			return true
		case !t.closing:
			opened[t.name] = true
		}
	}
	return false
}

// sanitize removes from HTML content the markup that the subset does not know, but none of its text; scripts and styles
// are no text. Each element of the result is closed, and isHTML is true for it, so that a client may send it again
// without its form.
func sanitize(content string) string {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "h1", "h2", "h3", "u", "strong", "ul", "li", "br")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowElementsContent(
		"frame", "frameset", "iframe", "noembed", "noframes", "noscript", "nostyle", "object", "title")
	clean := balance(p.Sanitize(escapeText(content)))
	if !isHTML(clean) {
		return "<p>" + clean + "</p>"
	}
	return clean
}

// escapeText escapes every < that begins no markup, so that a sanitizer does not take what follows it for a tag. An
// element that should end and does not is no markup either: as in a<b and c>d, or a script that would swallow the rest.
// Elements outside the subset that stand on lines of their own become line breaks, and cells of a table spaces: without
// their tags the words on both sides would become one.
func escapeText(content string) string {
	tags := tagsOf(content)
	ends := map[string]int{}
	for _, t := range tags {
		if t.closing {
			ends[t.name] = t.start
		}
	}
	var out strings.Builder
	done, inLine := 0, false // inLine: a text has begun since the last tag that ends a line
	for _, t := range tags {
		class := classOf(t.name)
		if class == unknown || class == endRequired && !t.closing && ends[t.name] < t.end {
			continue
		}
		text := content[done:t.start]
		inLine = inLine || strings.TrimSpace(text) != ""
		out.WriteString(strings.ReplaceAll(text, "<", "&lt;"))
		switch {
		case class == inSubset:
			inLine = inLine && isInline(t.name)
			out.WriteString(content[t.start:t.end])
		case !isForeignBlock(t.name):
			out.WriteString(content[t.start:t.end]) // the sanitizer removes it, and what is in a script
		case t.name == "td" || t.name == "th":
			if inLine && !t.closing {
				out.WriteString(" ")
			}
		case inLine:
			inLine = false
			out.WriteString("<br>")
		}
		done = t.end
	}
	out.WriteString(strings.ReplaceAll(content[done:], "<", "&lt;"))
	return out.String()
}

// tag is a piece of text in the form of a tag, of any name. A comment or a doctype has an empty name.
type tag struct {
	start, end int
	name       string // lower case
	closing    bool
}

// markup matches a whole comment, a doctype, or a tag in which no other begins. The tokenizer of x/net/html does not
// fit: it takes every "<!", "<?" and half a tag to reach to the next ">", with the tags and the text on the way.
var markup = regexp.MustCompile(
	`(?s)<!--.*?-->|<!(?i:doctype)[^>]*>|<(/?)([a-zA-Z][a-zA-Z0-9]*)(?:[ \t\r\n\f/](?:[^<>"']|"[^"]*"|'[^']*')*)?>`)

func tagsOf(content string) (out []tag) {
	// A comment without an end is hidden: to look for its end, for each of many, takes quadratic time.
	open := strings.LastIndex(content, "-->") + 1
	searched := content[:open] + strings.ReplaceAll(content[open:], "<!--", "<!  ")
	for _, m := range markup.FindAllStringSubmatchIndex(searched, -1) {
		t := tag{start: m[0], end: m[1]}
		if m[4] >= 0 {
			t.name, t.closing = strings.ToLower(content[m[4]:m[5]]), m[2] < m[3]
		}
		out = append(out, t)
	}
	return out
}

// isForeignBlock reports whether an element outside the subset is a block or a cell of a table.
func isForeignBlock(name string) bool {
	switch name {
	case "address", "article", "aside", "blockquote", "caption", "center", "dd", "details", "dialog", "dir",
		"div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h4", "h5", "h6", "header",
		"hgroup", "hr", "legend", "main", "menu", "nav", "ol", "option", "pre", "search", "section", "summary",
		"table", "tbody", "td", "tfoot", "th", "thead", "tr":
		return true
	default:
		return false
	}
}

type tagClass int

const (
	unknown     tagClass = iota
	inSubset             // kept
	endOptional          // another element of HTML, which may have no end tag
	endRequired          // another one, which must have one
)

func classOf(name string) tagClass {
	switch name {
	case "p", "h1", "h2", "h3", "u", "strong", "a", "ul", "li", "br":
		return inSubset
	case "", "area", "base", "body", "col", "colgroup", "dd", "dt", "embed", "head", "hr", "html", "img", "input",
		"link", "meta", "optgroup", "option", "param", "rp", "rt", "source", "tbody", "td", "tfoot", "th", "thead",
		"tr", "track", "wbr":
		return endOptional
	case "abbr", "acronym", "address", "applet", "article", "aside", "audio", "b", "bdi", "bdo", "big", "blink",
		"blockquote", "button", "canvas", "caption", "center", "cite", "code", "data", "datalist", "del", "details",
		"dfn", "dialog", "dir", "div", "dl", "em", "fieldset", "figcaption", "figure", "font", "footer", "form",
		"frame", "frameset", "h4", "h5", "h6", "header", "hgroup", "i", "iframe", "ins", "kbd", "label", "legend",
		"main", "map", "mark", "marquee", "math", "menu", "meter", "nav", "nobr", "noembed", "noframes", "noscript",
		"object", "ol", "output", "picture", "pre", "progress", "q", "ruby", "s", "samp", "script", "search",
		"section", "select", "slot", "small", "span", "strike", "style", "sub", "summary", "sup", "svg", "table",
		"template", "textarea", "time", "title", "tt", "var", "video", "xmp":
		return endRequired
	default:
		return unknown
	}
}
