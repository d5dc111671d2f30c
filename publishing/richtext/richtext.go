// Package richtext reads the HTML that editors write, as a browser would draw it.
//
// Parse returns a Doc, which keeps paragraphs, headings, lists, bold and underlined text, and
// links. A Doc can be written as the HTML subset that is stored, or as plain text.
package richtext

// Doc is a text with its structure.
type Doc struct {
	Blocks []Block
}

// BlockKind says what a block is.
type BlockKind int

// The kinds of blocks. Lists have items, other blocks have spans.
const (
	Paragraph BlockKind = iota
	Heading1
	Heading2
	Heading3
	Bullets
	Numbers
)

// IsList reports whether a block of the kind has items.
func (k BlockKind) IsList() bool { return k == Bullets || k == Numbers }

// Block is a paragraph, a heading or a list. A block without spans is a blank line.
type Block struct {
	Kind  BlockKind
	Spans []Span
	Items []Item
	// Start is the number of the first item of a numbered list, and Form is how its numbers are
	// written.
	Start int
	Form  NumberForm
}

// Item is an item of a list. If it begins with a paragraph, the paragraph is drawn beside the
// marker.
type Item struct {
	Blocks []Block
}

// Span is a piece of text in one form. A line feed in it is a line break.
type Span struct {
	Text string
	form
}

// form is how a text looks and where it links to.
type form struct {
	Strong, Underline bool
	// Href is an http, https or mailto address; "" for text that is not a link.
	Href string
}
