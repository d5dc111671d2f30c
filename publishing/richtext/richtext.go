// Package richtext reads HTML that was written by rich-text editors. It interprets the HTML as a
// browser does.
//
// Parse returns a Doc, which contains paragraphs, headings, lists, bold and underlined text, and
// links. A Doc can be written as plain text, or as HTML in the subset used for stored texts.
package richtext

// Doc is a structured document.
type Doc struct {
	Blocks []Block
}

// BlockKind is the kind of a block.
type BlockKind int

// The kinds of blocks. Lists have items; other blocks have spans.
const (
	Paragraph BlockKind = iota
	Heading1
	Heading2
	Heading3
	Bullets
	Numbers
)

// IsList reports whether blocks of kind k have items.
func (k BlockKind) IsList() bool { return k == Bullets || k == Numbers }

// Block is a paragraph, a heading or a list. A block without spans is a blank line.
type Block struct {
	Kind  BlockKind
	Spans []Span
	Items []Item
	// Start is the first number of a numbered list. Form is the form in which its numbers are
	// written.
	Start int
	Form  NumberForm
}

// Item is a list item. A paragraph at the beginning of an item is rendered next to the marker.
type Item struct {
	Blocks []Block
}

// Span is a piece of text with a single form. A line feed in Text is a line break.
type Span struct {
	Text string
	form
}

// form is how a text looks and what it links to.
type form struct {
	Strong, Underline bool
	// Href is an http, https or mailto URL; "" for text that is not a link.
	Href string
}
