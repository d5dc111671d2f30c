package richtext

import (
	"regexp"
	"strings"
	"unicode"
)

// IsHTML reports whether text is HTML rather than plain text. Text is HTML if it begins with a tag
// that editors write, such as <div>. White space and comments before the tag are ignored. Text is
// also HTML if it contains an element of the subset together with its end tag. Text that merely
// mentions a tag is not HTML. IsHTML takes linear time.
func IsHTML(text string) bool {
	start := len(text) - len(strings.TrimLeftFunc(text, unicode.IsSpace))
	tags := tagsOf(text)
	ends := endsOf(tags)
	opened := map[string]bool{}
	for _, t := range tags {
		class := classOf(t.name)
		if t.start == start && !t.isComment() && isMarkup(t, class, ends) && isOfText(t.name) {
			return true
		}
		switch {
		case t.isComment():
			if t.start == start { // clipboards have <!--StartFragment--> before the first tag
				start = t.end + len(text[t.end:]) - len(strings.TrimLeftFunc(text[t.end:], unicode.IsSpace))
			}
		case class != inSubset:
		case t.closing && opened[t.name]:
			return true
		case !t.closing:
			opened[t.name] = true
		}
	}
	return false
}

// isOfText reports whether text that begins with this element probably comes from an editor. If
// text begins with another element, such as <script>, it is probably about that element.
func isOfText(name string) bool {
	switch name {
	case "applet", "audio", "base", "button", "canvas", "embed", "form", "frame", "frameset", "iframe", "img", "input",
		"math", "noscript", "object", "param", "picture", "script", "select", "source", "svg", "template", "textarea",
		"track", "video":
		return false
	default:
		return true
	}
}

// escape escapes every < that does not begin markup, so that the parser does not mistake the text
// that follows for a tag. A tag whose end tag is required but missing does not count as markup. In
// a<b and c>d, for example, nothing is a tag. Without this rule, an unclosed script would swallow
// the rest of the text.
//
// If no paragraph is open, the end tag of a paragraph only ends the line. The parser would turn it
// into a blank line, so escape replaces it.
func escape(sent string) string {
	tags := tagsOf(sent)
	ends := endsOf(tags)
	var out strings.Builder
	out.Grow(len(sent))
	done, inParagraph, inTable := 0, false, false
	for _, t := range tags {
		if !isMarkup(t, classOf(t.name), ends) {
			continue
		}
		out.WriteString(strings.ReplaceAll(sent[done:t.start], "<", "&lt;"))
		done = t.end
		switch {
		case t.name == "p":
			if t.closing && !inParagraph {
				out.WriteString("<div></div>")
				continue
			}
			inParagraph = !t.closing
		case endsParagraph(t.name):
			inParagraph = false
		}
		if isRow := t.name == "tr" || t.name == "td" || t.name == "th"; t.name == "table" {
			inTable = inTable || !t.closing
		} else if isRow && !inTable {
			// spreadsheets copy cells without their table
			out.WriteString("<table>")
			inTable = true
		}
		out.WriteString(sent[t.start:t.end])
	}
	out.WriteString(strings.ReplaceAll(sent[done:], "<", "&lt;"))
	return out.String()
}

// tag is a piece of text that has the form of a tag, with any name. For a comment, a doctype or a
// processing instruction, name is empty.
type tag struct {
	start, end int
	name       string // lower case
	closing    bool
}

func (t tag) isComment() bool { return t.name == "" }

// markup matches a complete comment, a doctype, a condition or instruction written by Word, or a
// tag. A tag must not contain the beginning of another tag. The tokenizer of x/net/html is not
// suitable, because it extends every "<!", every "<?" and every incomplete tag to the next ">",
// even across other tags and text.
var markup = regexp.MustCompile(
	`(?s)<!--.*?-->|<!(?i:doctype)[^>]*>|<!\[(?i:if|endif)[^>]*>|<\?(?i:xml)[^>]*>|` +
		`<(/?)([a-zA-Z][a-zA-Z0-9]*(?:[:-][a-zA-Z0-9]+)*)(?:[ \t\r\n\f/](?:[^<>"']|"[^"]*"|'[^']*')*)?>`)

func tagsOf(content string) (out []tag) {
	// Unterminated comments are replaced before the search, because searching for each comment's
	// end would take quadratic time.
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

// endsOf returns, for each element name, the position of the last end tag.
func endsOf(tags []tag) map[string]int {
	ends := map[string]int{}
	for _, t := range tags {
		if t.closing {
			ends[t.name] = t.start
		}
	}
	return ends
}

func isMarkup(t tag, class tagClass, ends map[string]int) bool {
	return class != unknown && (class != endRequired || t.closing || ends[t.name] >= t.end)
}

type tagClass int

const (
	unknown     tagClass = iota
	inSubset             // kept
	endOptional          // another HTML element, whose end tag is optional
	endRequired          // another HTML element, whose end tag is required
)

func classOf(name string) tagClass {
	switch name {
	case "p", "h1", "h2", "h3", "u", "strong", "a", "ul", "ol", "li", "br":
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
		"object", "output", "picture", "pre", "progress", "q", "ruby", "s", "samp", "script", "search", "section",
		"select", "slot", "small", "span", "strike", "style", "sub", "summary", "sup", "svg", "table", "template",
		"textarea", "time", "title", "tt", "var", "video", "xmp":
		return endRequired
	}
	switch prefix, _, _ := strings.Cut(name, ":"); {
	case prefix != name:
		if strings.Contains(" o w v m x st1 st2 u1 ", " "+prefix+" ") { // Office
			return endOptional
		}
	// a custom element, such as google-sheets-html-origin
	case strings.Contains(name, "-"):
		return endRequired
	}
	return unknown
}

// endsParagraph reports whether a start or end tag of this element ends an open paragraph.
func endsParagraph(name string) bool {
	switch name {
	case "address", "article", "aside", "blockquote", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt",
		"fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup",
		"hr", "li", "main", "menu", "nav", "ol", "pre", "search", "section", "summary", "table", "td", "th", "tr", "ul",
		"xmp":
		return true
	default:
		return false
	}
}
