// Package richtext reads the HTML that editors write and the texts in it, as a browser would draw them.
//
// Parse returns a Doc, which has what is kept: paragraphs, headings, lists, bold and underlined text, and links. A Doc is
// written as the HTML subset that is stored, or as plain text.
package richtext

// Doc is a text with its structure.
type Doc struct {
	Blocks []Block
}

// BlockKind says what a block is.
type BlockKind int

// The kinds of blocks. A list has items, the others have spans.
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
	// Start is the number of the first item of a list with numbers, and Form how the numbers are written.
	Start int
	Form  NumberForm
}

// Item is an item of a list. A paragraph at its beginning stands beside the marker.
type Item struct {
	Blocks []Block
}

// Span is a piece of text of one form. A line feed in it is a line break.
type Span struct {
	Text string
	form
}

// form is how a text looks, and where it leads.
type form struct {
	Strong, Underline bool
	// Href is an address with http, https or mailto, "" for a text that is no link.
	Href string
}
