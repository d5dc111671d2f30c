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

// Storable reports whether text can be stored and sent unchanged. The text must be valid UTF-8 and
// must not contain NUL.
func Storable(s string) bool { return tenancy.Storable(s) }

// Blank reports whether a text has no visible characters. Such a text is empty or contains only
// white space, control characters, and characters that merely modify other characters.
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

// storableJSON reports whether the database accepts a JSON document. All strings must be storable,
// all numbers must be short, and the nesting depth must not exceed MaxSettingsDepth.
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

// Limits for a number. Postgres expands exponents: 1e-16383 takes 8 bytes here, but 16,385 bytes in
// Postgres.
const (
	maxDigits   = 64 // characters
	maxExponent = 30
)

// shortNumber reports whether a JSON number is short, both as written and with its exponent
// expanded.
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

// ContentType is the format of a text. If the client specifies no format, ReadContent detects it.
type ContentType string

// Content formats. ContentHTML is a subset of HTML. The allowed elements are p, h1, h2, h3, u,
// strong, a, ul, ol, li and br. The allowed attributes are href on links, and start and type on
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

// ReadContent returns content sent by a client. HTML is reduced to the ContentHTML subset. If form
// is empty, richtext.IsHTML decides whether the content is HTML or plain text. ReadContent runs in
// linear time.
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

// Plain returns the content as plain text, for platforms that do not support markup. Lines break
// where a browser would break them. Each list item starts with a dash or its number. A link's text
// is followed by the URL unless the text already contains the URL. Plain runs in linear time.
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
