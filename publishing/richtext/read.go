package richtext

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Parse reads HTML, either a whole page or a fragment, and returns a document that matches what a
// browser would render. A < that does not begin HTML markup is treated as text. If the HTML is
// nested too deeply, Parse keeps its text but not its structure. Parse takes linear time.
func Parse(sent string) Doc {
	body := &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
	markup := escape(sent)
	nodes, err := html.ParseFragmentWithOptions(strings.NewReader(markup), body, html.ParseOptionEnableScripting(false))
	if err != nil {
		return parseFlat(markup)
	}
	var doc Doc
	r := reader{out: &doc.Blocks}
	for _, n := range nodes {
		r.node(n, look{})
	}
	r.endBlock()
	return doc
}

// parseFlat reads the text of HTML that the parser rejects. Every block becomes a paragraph.
func parseFlat(markup string) Doc {
	var doc Doc
	r := reader{out: &doc.Blocks}
	for z := html.NewTokenizer(strings.NewReader(markup)); ; {
		switch z.Next() {
		case html.ErrorToken:
			r.endBlock()
			return doc
		case html.TextToken:
			r.text(z.Token().Data, look{})
		case html.StartTagToken, html.SelfClosingTagToken, html.EndTagToken:
			name, _ := z.TagName()
			if a := atom.Lookup(name); a == atom.Br || a == atom.P || endsParagraph(a.String()) {
				r.endBlock()
			}
		}
	}
}

// reader collects blocks from an HTML tree.
type reader struct {
	// out is the list to which the next block is added: the blocks of the document or of an item.
	out *[]Block
	// line is the open block.
	line line
	// kind is the kind of new paragraphs.
	kind BlockKind
	// flat is set in a table row if more than one cell has content. Blocks in the row are then
	// joined on one line.
	flat bool
}

func (r *reader) node(n *html.Node, l look) {
	switch n.Type {
	case html.TextNode:
		r.text(n.Data, l)
	case html.ElementNode:
		if d := displayOf(n); d != displayNone {
			r.element(n, d, l.of(n))
		}
	}
}

func (r *reader) nodes(n *html.Node, l look) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		r.node(c, l)
	}
}

func (r *reader) text(text string, l look) {
	r.line.write(text, l)
}

func (r *reader) element(n *html.Node, d display, l look) {
	switch n.DataAtom {
	case atom.Br:
		if r.flat {
			r.line.write(" ", l)
		} else {
			r.line.breakLine(l)
		}
	case atom.Img:
		r.text(emojiOf(n), l)
	case atom.A:
		r.link(n, l)
	case atom.Q:
		r.text("“", l)
		r.nodes(n, l)
		r.text("”", l)
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir:
		r.list(n, l)
	case atom.Li:
		r.list(&html.Node{Type: html.ElementNode, Data: "ul", DataAtom: atom.Ul, FirstChild: alone(n)}, l)
	case atom.Tr:
		r.row(n, l)
	case atom.P, atom.H1, atom.H2, atom.H3:
		r.paragraph(n, l)
	default:
		if d == displayBlock {
			r.block(func() { r.nodes(n, l) })
		} else {
			r.nodes(n, l)
		}
	}
}

// alone returns a copy of a node without siblings.
func alone(n *html.Node) *html.Node {
	c := *n
	c.NextSibling, c.PrevSibling = nil, nil
	return &c
}

// link reads a link. If the link has no text, its URL is used as the text, except in a flat table
// row.
func (r *reader) link(n *html.Node, l look) {
	before := r.line.written
	r.nodes(n, l)
	if r.line.written == before && l.Href != "" && !r.flat {
		r.text(strings.TrimPrefix(l.Href, "mailto:"), l)
	}
}

// block calls read. The text that read adds becomes a block of its own.
func (r *reader) block(read func()) {
	r.endBlock()
	read()
	r.endBlock()
}

// paragraph reads a paragraph or a heading. An empty paragraph or heading becomes a blank line, as
// in editors.
func (r *reader) paragraph(n *html.Node, l look) {
	if r.flat {
		r.block(func() { r.nodes(n, l) })
		return
	}
	if level, text, ok := wordMarkerOf(n); ok {
		r.wordItem(n, level, text, l)
		return
	}
	r.endBlock()
	outer, before := r.kind, len(*r.out)
	if kind, ok := headings[n.DataAtom]; ok {
		r.kind = kind
	}
	r.nodes(n, l)
	r.endBlock()
	if len(*r.out) == before {
		*r.out = append(*r.out, Block{Kind: r.kind})
	}
	r.kind = outer
}

var headings = map[atom.Atom]BlockKind{atom.H1: Heading1, atom.H2: Heading2, atom.H3: Heading3}

// endBlock ends the open block.
func (r *reader) endBlock() {
	if r.flat {
		r.line.space(look{})
		return
	}
	spans, ok := r.line.end()
	if ok {
		*r.out = append(*r.out, Block{Kind: r.kind, Spans: spans})
	}
}

// row reads a table row. If more than one cell has content, the cells are joined on one line. If
// only one cell has content, its lines are kept.
func (r *reader) row(n *html.Node, l look) {
	filled := 0
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type == html.ElementNode && hasContent(c) {
			filled++
		}
	}
	r.block(func() {
		outer := r.flat
		r.flat = outer || filled > 1
		r.nodes(n, l)
		r.flat = outer
	})
}

// hasContent reports whether an element renders anything.
func hasContent(n *html.Node) bool {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode && strings.Trim(c.Data, whiteSpace) != "":
			return true
		case c.Type == html.ElementNode && displayOf(c) != displayNone && (emojiOf(c) != "" || hasContent(c)):
			return true
		}
	}
	return false
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, name string) bool {
	for _, a := range n.Attr {
		if a.Key == name && a.Namespace == "" {
			return true
		}
	}
	return false
}
