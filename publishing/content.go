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

// Storable tells whether text can be kept and sent as it is: valid UTF-8 without NUL.
func Storable(s string) bool { return tenancy.Storable(s) }

// Blank tells whether nothing of a text can be seen: it is empty or made of white space, controls and characters that only shape others.
func Blank(text string) bool {
	for _, r := range text {
		if r != brailleBlank && !unicode.IsSpace(r) && !unicode.In(r, unicode.Cc, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return false
		}
	}
	return true
}

const brailleBlank = '\u2800' // a pattern of no dots

// storableJSON returns whether a database takes a JSON document as it is: its text is storable, its numbers are ordinary
// and it is not too deep.
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
			if !ordinary(v.String()) {
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

// ordinary returns whether a number of JSON is short, also when it is written without an exponent.
func ordinary(number string) bool {
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

// ContentType is a form of content.
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

// ReadContent takes content as it is sent, in the form that is said; "" means HTML when it begins with a tag of the
// subset, white space aside, or one of its tags is closed, and plain text otherwise. The time is linear.
func ReadContent(sent string, said ContentType) Content {
	if said == ContentText || said == "" && !isHTML(sent) {
		return Content{Text: sent}
	}
	return Content{Text: sanitize(sent), HTML: true}
}

// Type is the form.
func (c Content) Type() ContentType {
	if c.HTML {
		return ContentHTML
	}
	return ContentText
}

// Plain is the text as a platform without markup gets it: blocks become lines, list items get a dash, a link whose text
// differs keeps its address. White space that only lays out the markup, a line feed with indentation beside a block, is
// left out. The time is linear.
func (c Content) Plain() string {
	if !c.HTML {
		return c.Text
	}
	var w plainWriter
	for z := html.NewTokenizer(strings.NewReader(c.Text)); z.Next() != html.ErrorToken; {
		w.token(z.Token())
	}
	w.endLink()
	return strings.Trim(w.String(), "\n")
}

// Excerpt is the beginning of the plain text, at most 200 characters.
func (c Content) Excerpt() string {
	const most = 200
	plain, n := c.Plain(), 0
	for i := range plain {
		if n++; n > most {
			return plain[:i]
		}
	}
	return plain
}

// Markup is the text as HTML that may be put into a page: of plain text, each line is a paragraph.
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
	href   string // of the link that is open
	begin  int    // where its text begins
	layout string // white space with a line feed at the end of the text, which is left out if a block begins or ends
}

// text writes text but the layout around it.
func (w *plainWriter) text(s string) {
	w.flush()
	if words := strings.TrimLeft(s, " \t\r\n"); w.atLine() && strings.Contains(s[:len(s)-len(words)], "\n") {
		s = words
	}
	words := strings.TrimRight(s, " \t\r\n")
	if end := s[len(words):]; strings.Contains(end, "\n") {
		s, w.layout = words, end
	}
	w.WriteString(s)
}

// flush writes the layout: text follows it.
func (w *plainWriter) flush() {
	w.WriteString(w.layout)
	w.layout = ""
}

// atLine returns whether nothing is in the line yet.
func (w *plainWriter) atLine() bool {
	s := w.String()
	return s == "" || strings.HasSuffix(s, "\n")
}

func (w *plainWriter) token(t html.Token) {
	end := t.Type == html.EndTagToken
	switch {
	case t.Type == html.TextToken:
		w.text(t.Data)
	case t.DataAtom == atom.Br:
		w.layout = ""
		w.WriteString("\n")
	case t.DataAtom == atom.A:
		w.flush()
		w.endLink()
		if !end {
			w.href, w.begin = hrefOf(t), w.Len()
		}
	case !isBlock(t.DataAtom):
	case end:
		w.layout = ""
		w.WriteString("\n")
	default:
		w.layout = ""
		w.line()
		if t.DataAtom == atom.Li {
			w.WriteString("- ")
		}
	}
}

func isBlock(a atom.Atom) bool {
	return a == atom.P || a == atom.H1 || a == atom.H2 || a == atom.H3 || a == atom.Ul || a == atom.Li
}

// endLink adds the address of the link that is open unless its text shows it. Links do not contain others.
func (w *plainWriter) endLink() {
	if w.href != "" && !strings.Contains(w.String()[w.begin:], strings.TrimPrefix(w.href, "mailto:")) {
		w.WriteString(" (" + w.href + ")")
	}
	w.href = ""
}

// line starts a new line unless one has just begun.
func (w *plainWriter) line() {
	if !w.atLine() {
		w.WriteString("\n")
	}
}

func hrefOf(t html.Token) string {
	for _, a := range t.Attr {
		if a.Key == "href" {
			return a.Val
		}
	}
	return ""
}
