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

	"crier/platform/text"
	"crier/publishing/richtext"
	"crier/tenancy"
)

// Storable reports whether text can be stored and sent unchanged: it must be valid UTF-8 without
// NUL.
func Storable(s string) bool { return tenancy.Storable(s) }

// Blank reports whether a text has no visible characters: it is empty or consists of white space,
// control characters, and characters that only modify others.
func Blank(text string) bool {
	for _, r := range text {
		if r != brailleBlank && !unicode.IsSpace(r) && !unicode.In(r, unicode.Cc, unicode.Cf,
			unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) {
			return false
		}
	}
	return true
}

const brailleBlank = '\u2800' // a braille pattern without dots

// storableJSON reports whether the database accepts a JSON document: its strings are storable, its
// numbers are short, and it has at most MaxSettingsDepth levels.
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

// The limits of a number. Postgres expands exponents: 1e-16383 takes 8 bytes here but 16,385 there.
const (
	maxDigits   = 64 // characters
	maxExponent = 30
)

// shortNumber reports whether a JSON number is short, even when written out without its exponent.
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

// ContentType is the format of a text. If a client sends none, ReadContent detects the format.
type ContentType string

// The formats. ContentHTML is a subset of HTML. It consists of the elements p, h1, h2, h3, u,
// strong, a, ul, ol, li and br, the attribute href of links, and the attributes start and type of
// numbered lists.
const (
	ContentText ContentType = "text"
	ContentHTML ContentType = "html"
)

// Content is the text of a part: either plain text as sent, or sanitized HTML in the ContentHTML
// subset.
type Content struct {
	Text string
	HTML bool
}

// ReadContent returns the content that a client sent, reduced to the ContentHTML subset if it is
// HTML. If form is empty, richtext.IsHTML decides whether the content is HTML or plain text.
// ReadContent takes linear time.
func ReadContent(sent string, form ContentType) Content {
	if form == ContentText || form == "" && !richtext.IsHTML(sent) {
		return Content{Text: sent}
	}
	markup := richtext.Parse(sent).HTML()
	if markup == "" {
		markup = "<p></p>" // still HTML if the client sends it back
	}
	return Content{Text: markup, HTML: true}
}

// Type returns the format of the content. It is never empty.
func (c Content) Type() ContentType {
	if c.HTML {
		return ContentHTML
	}
	return ContentText
}

// Plain returns the content as plain text, for platforms without markup. Lines break where a
// browser would break them. List items start with a dash or their number. A link's text is followed
// by the URL unless it already contains the URL. Plain takes linear time.
func (c Content) Plain() string {
	if !c.HTML {
		return c.Text
	}
	return richtext.Parse(c.Text).Plain()
}

// Excerpt returns the first 200 characters of the plain text, without an ellipsis.
func (c Content) Excerpt() string {
	return text.Cut(c.Plain(), 200)
}

// Markup returns the content as HTML that is safe to embed in a page. Each line of plain text
// becomes a paragraph.
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
