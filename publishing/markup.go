package publishing

import (
	"strings"
	"unicode"

	"github.com/microcosm-cc/bluemonday"
)

// IsHTML tells whether content is the HTML subset rather than plain text: it begins with a tag of the subset, white space aside, or one of its tags is
// closed. A tag that is only mentioned makes no HTML.
func IsHTML(content string) bool {
	start := len(content) - len(strings.TrimLeftFunc(content, unicode.IsSpace))
	opened := map[string]bool{}
	for _, t := range tagsOf(content) {
		switch {
		case classOf(t.name) != inSubset:
		case t.at == start, t.closing && opened[t.name]:
			return true
		case !t.closing:
			opened[t.name] = true
		}
	}
	return false
}

// Sanitize removes from HTML content the markup that the subset (p h1 h2 h3 u strong a ul li br) does not know, but none of its text; scripts and styles
// are no text. Plain text passes unchanged. What was HTML stays HTML.
func Sanitize(content string) string {
	if !IsHTML(content) {
		return content
	}
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "h1", "h2", "h3", "u", "strong", "ul", "li", "br")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowElementsContent("frame", "frameset", "iframe", "noembed", "noframes", "noscript", "nostyle", "object", "title")
	clean := p.Sanitize(escapeText(content))
	if !IsHTML(clean) {
		return "<p>" + clean + "</p>" // its entities must not become the text of a plain post
	}
	return clean
}

// escapeText escapes every < that begins no markup, so that a sanitizer does not take what follows it for a tag. An element that should end and does not
// is no markup either: as in a<b and c>d, or a script that would swallow the rest.
func escapeText(content string) string {
	tags := tagsOf(content)
	ends := map[string]int{}
	for _, t := range tags {
		if t.closing {
			ends[t.name] = t.at
		}
	}
	var out strings.Builder
	done := 0
	for _, t := range tags {
		class := classOf(t.name)
		if class == unknown || class == mustEnd && !t.closing && ends[t.name] < t.end {
			continue
		}
		out.WriteString(strings.ReplaceAll(content[done:t.at], "<", "&lt;"))
		out.WriteString(content[t.at:t.end])
		done = t.end
	}
	out.WriteString(strings.ReplaceAll(content[done:], "<", "&lt;"))
	return out.String()
}

// tag is what has the form of a tag, whatever its name. A comment or a doctype has no name.
type tag struct {
	at, end int
	name    string // lower case
	closing bool
}

func tagsOf(content string) (out []tag) {
	lastComment := strings.LastIndex(content, "-->")
	for i := 0; i < len(content); i++ {
		next := strings.IndexByte(content[i:], '<')
		if next < 0 {
			return out
		}
		i += next
		t := tag{at: i}
		switch {
		case !strings.HasPrefix(content[i:], "<!"):
			t = tagAt(content, i)
		case strings.HasPrefix(content[i:], "<!--") && i+4 <= lastComment:
			t.end = i + 4 + strings.Index(content[i+4:], "-->") + 3
		case len(content) > i+9 && strings.EqualFold(content[i:i+9], "<!doctype"):
			t.end = i + 1 + strings.IndexByte(content[i:], '>')
		}
		if t.end > i {
			out = append(out, t)
			i = t.end - 1
		}
	}
	return out
}

// tagAt reads the tag that begins here; one that does not end has the end 0.
func tagAt(content string, at int) tag {
	t := tag{at: at}
	i := at + 1
	if t.closing = strings.HasPrefix(content[i:], "/"); t.closing {
		i++
	}
	from := i
	for i < len(content) && (letter(content[i]) || i > from && content[i] >= '0' && content[i] <= '9') {
		i++
	}
	t.name = strings.ToLower(content[from:i])
	if i == from || i == len(content) || !strings.ContainsRune("> \t\r\n\f/", rune(content[i])) {
		return t
	}
	for ; i < len(content); i++ {
		switch c := content[i]; c {
		case '>':
			t.end = i + 1
			return t
		case '<':
			return t
		case '"', '\'':
			quoted := strings.IndexByte(content[i+1:], c)
			if quoted < 0 {
				return t
			}
			i += quoted + 1
		}
	}
	return t
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// class says what a tag's name means to us.
type class int

const (
	unknown  class = iota
	inSubset       // kept
	free           // another element of HTML, which may stand without an end
	mustEnd        // another one, which may not
)

func classOf(name string) class {
	switch name {
	case "p", "h1", "h2", "h3", "u", "strong", "a", "ul", "li", "br":
		return inSubset
	case "", "area", "base", "body", "col", "colgroup", "dd", "dt", "embed", "head", "hr", "html", "img", "input", "link", "meta", "optgroup", "option", "param", "rp", "rt", "source",
		"tbody", "td", "tfoot", "th", "thead", "tr", "track", "wbr":
		return free
	case "abbr", "acronym", "address", "applet", "article", "aside", "audio", "b", "bdi", "bdo", "big", "blink", "blockquote", "button", "canvas", "caption", "center", "cite", "code",
		"data", "datalist", "del", "details", "dfn", "dialog", "dir", "div", "dl", "em", "fieldset", "figcaption", "figure", "font", "footer", "form", "frame", "frameset", "h4", "h5",
		"h6", "header", "hgroup", "i", "iframe", "ins", "kbd", "label", "legend", "main", "map", "mark", "marquee", "math", "menu", "meter", "nav", "nobr", "noembed", "noframes",
		"noscript", "object", "ol", "output", "picture", "pre", "progress", "q", "ruby", "s", "samp", "script", "search", "section", "select", "slot", "small", "span", "strike", "style",
		"sub", "summary", "sup", "svg", "table", "template", "textarea", "time", "title", "tt", "var", "video", "xmp":
		return mustEnd
	default:
		return unknown
	}
}
