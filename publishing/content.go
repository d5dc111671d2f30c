package publishing

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"crier/tenancy"
)

// Storable reports whether text can be stored and sent unchanged: whether it is valid UTF-8 without NUL.
func Storable(s string) bool { return tenancy.Storable(s) }

// Blank reports whether a text has no visible character: it is empty or consists of white space, controls and
// characters that only change the form of others.
func Blank(text string) bool {
	for _, r := range text {
		if r != brailleBlank && !unicode.IsSpace(r) && !unicode.In(r, unicode.Cc, unicode.Cf,
			unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return false
		}
	}
	return true
}

const brailleBlank = '\u2800' // a pattern of no dots

// storableJSON reports whether the database accepts a JSON document: its texts are storable, its numbers are short and
// it has at most MaxSettingsDepth levels.
func storableJSON(raw json.RawMessage) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		switch v := token.(type) {
		case json.Delim:
			if depth++; v == '}' || v == ']' {
				depth -= 2
			}
		case string:
			if !Storable(v) {
				return false
			}
		case json.Number:
			if !shortNumber(v.String()) {
				return false
			}
		}
		if depth > MaxSettingsDepth {
			return false
		}
	}
}

// The bounds of a number. Postgres writes numbers out: 1e-16383 takes 7 bytes here and 16,385 there.
const (
	maxDigits   = 64 // characters
	maxExponent = 30
)

// shortNumber reports whether a JSON number is short, also when it is written without an exponent.
func shortNumber(number string) bool {
	if len(number) > maxDigits {
		return false
	}
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return true
	}
	exponent, err := strconv.Atoi(number[i+1:])
	return err == nil && exponent >= -maxExponent && exponent <= maxExponent
}

// ContentType is a form of content. A client that sends none lets ReadContent detect it.
type ContentType string

// The forms. HTML is a subset: p h1 h2 h3 u strong a ul li br, and of attributes only the href of a link.
const (
	ContentText ContentType = "text"
	ContentHTML ContentType = "html"
)

// Content is the text of a part: plain, as it was sent, or in the HTML subset, sanitised.
type Content struct {
	Text string
	HTML bool
}

// ReadContent returns the content that a client sent, sanitised if it is HTML. When form is empty, the content is HTML
// if it begins with a tag of the subset, white space aside, or if one of its tags is closed, and plain text otherwise.
// The time is linear.
func ReadContent(sent string, form ContentType) Content {
	if form == ContentText || form == "" && !isHTML(sent) {
		return Content{Text: sent}
	}
	return Content{Text: sanitize(sent), HTML: true}
}

// Type returns the form of the content, never the empty one.
func (c Content) Type() ContentType {
	if c.HTML {
		return ContentHTML
	}
	return ContentText
}

// Plain returns the text for a platform without markup: blocks become lines, list items get a dash, a link whose text
// differs keeps its address. White space that only lays out the markup, a line feed with indentation beside a block, is
// left out. The time is linear.
func (c Content) Plain() string {
	if !c.HTML {
		return c.Text
	}
	var w plainWriter
	for z := html.NewTokenizer(strings.NewReader(c.Text)); z.Next() != html.ErrorToken; {
		w.writeToken(z.Token())
	}
	w.endLink()
	return strings.Trim(w.String(), "\n")
}

// Excerpt returns the first 200 characters of the plain text, without a mark where it was cut.
func (c Content) Excerpt() string {
	const limit = 200
	plain, n := c.Plain(), 0
	for i := range plain {
		if n++; n > limit {
			return plain[:i]
		}
	}
	return plain
}

// Markup returns the text as HTML that is safe in a page. Each line of plain text becomes a paragraph.
func (c Content) Markup() string {
	if c.HTML {
		return c.Text
	}
	var b strings.Builder
	b.Grow(len(c.Text) + len("<p></p>")*(1+strings.Count(c.Text, "\n")))
	for line := range strings.Lines(c.Text) {
		b.WriteString("<p>" + html.EscapeString(strings.TrimRight(line, "\r\n")) + "</p>")
	}
	return b.String()
}

type plainWriter struct {
	strings.Builder
	// href is the address of the open link, begin where its text begins.
	href  string
	begin int
	// layout is white space with a line feed at the end of the text. It is dropped if a block begins or ends next.
	layout string
}

// writeText writes text without the layout around it.
func (w *plainWriter) writeText(s string) {
	w.writeLayout()
	if words := strings.TrimLeft(s, " \t\r\n"); w.atLineStart() && strings.Contains(s[:len(s)-len(words)], "\n") {
		s = words
	}
	words := strings.TrimRight(s, " \t\r\n")
	if end := s[len(words):]; strings.Contains(end, "\n") {
		s, w.layout = words, end
	}
	w.WriteString(s)
}

// writeLayout writes the pending layout, because text follows it.
func (w *plainWriter) writeLayout() {
	w.WriteString(w.layout)
	w.layout = ""
}

func (w *plainWriter) atLineStart() bool {
	s := w.String()
	return s == "" || strings.HasSuffix(s, "\n")
}

func (w *plainWriter) writeToken(t html.Token) {
	end := t.Type == html.EndTagToken
	switch {
	case t.Type == html.TextToken:
		w.writeText(t.Data)
	case t.DataAtom == atom.Br:
		w.layout = ""
		w.WriteString("\n")
	case t.DataAtom == atom.A:
		w.writeLayout()
		w.endLink()
		if !end {
			w.href, w.begin = href(t), w.Len()
		}
	case !isBlock(t.DataAtom):
	case end:
		w.layout = ""
		w.WriteString("\n")
	default:
		w.layout = ""
		w.startLine()
		if t.DataAtom == atom.Li {
			w.WriteString("- ")
		}
	}
}

func isBlock(a atom.Atom) bool {
	return a == atom.P || a == atom.H1 || a == atom.H2 || a == atom.H3 || a == atom.Ul || a == atom.Li
}

// endLink writes the address of the open link unless its text contains it. Links are not nested.
func (w *plainWriter) endLink() {
	if w.href != "" && !strings.Contains(w.String()[w.begin:], strings.TrimPrefix(w.href, "mailto:")) {
		w.WriteString(" (" + w.href + ")")
	}
	w.href = ""
}

func (w *plainWriter) startLine() {
	if !w.atLineStart() {
		w.WriteString("\n")
	}
}

func href(t html.Token) string {
	for _, a := range t.Attr {
		if a.Key == "href" {
			return a.Val
		}
	}
	return ""
}
