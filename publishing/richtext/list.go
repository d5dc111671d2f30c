package richtext

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// list reads a list. If a child of the list is not an item, it becomes part of the preceding item.
func (r *reader) list(n *html.Node, l look) {
	r.endBlock()
	if r.flat || isUnmarked(n) {
		r.block(func() { r.plainItems(n, l) })
		return
	}
	numbers, before := countersOf(n), len(*r.out)
	for c := n.FirstChild; c != nil; {
		if isMarked(c) {
			level := quillLevel(c)
			item := addItem(r.out, level, numbers.next(n, c, level))
			r.inItem(item, func() { r.nodes(c, l.of(c)) })
			c = c.NextSibling
			continue
		}
		strays := func() {
			for ; c != nil && !isMarked(c); c = c.NextSibling {
				r.stray(c, l)
			}
		}
		if last := lastItem(*r.out); last != nil && len(*r.out) > before {
			r.inItem(last, strays)
		} else {
			strays()
		}
	}
	r.endBlock()
}

// isMarked reports whether a child of a list is an item that is rendered with a marker.
func isMarked(n *html.Node) bool {
	return n.DataAtom == atom.Li && displayOf(n) != displayNone && !isUnmarked(n)
}

// plainItems reads a list that is rendered without markers.
func (r *reader) plainItems(n *html.Node, l look) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		r.stray(c, l)
	}
}

// stray reads a list's child that is rendered without a marker.
func (r *reader) stray(n *html.Node, l look) {
	if n.DataAtom != atom.Li {
		r.node(n, l)
		return
	}
	if displayOf(n) != displayNone {
		r.block(func() { r.nodes(n, l.of(n)) })
	}
}

// inItem calls read, which adds blocks to the item. Blank lines at the beginning and end of the
// item are dropped.
func (r *reader) inItem(item *Item, read func()) {
	out, kind := r.out, r.kind
	r.out, r.kind = &item.Blocks, Paragraph
	read()
	r.endBlock()
	r.out, r.kind = out, kind
	b := item.Blocks
	for len(b) > 0 && isBlank(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isBlank(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	item.Blocks = b
}

func isBlank(b Block) bool { return !b.Kind.IsList() && len(b.Spans) == 0 }

// addItem adds an empty item at the given nesting level and returns it. Starting from blocks, it
// descends up to level times into the last item of the list at the end.
//
// If the blocks found there end with a list whose Kind equals list.Kind, addItem adds the item to
// that list. For numbered lists, the form must also match and list.Start must be the next number.
// Otherwise, addItem appends list as a new list and adds the item to it.
func addItem(blocks *[]Block, level int, list Block) *Item {
	if level > 0 {
		if last := lastItem(*blocks); last != nil {
			return addItem(&last.Blocks, level-1, list)
		}
	}
	n := len(*blocks)
	if n == 0 || !(*blocks)[n-1].continues(list) {
		*blocks = append(*blocks, list)
		n++
	}
	b := &(*blocks)[n-1]
	b.Items = append(b.Items, Item{})
	return &b.Items[len(b.Items)-1]
}

func (b Block) continues(next Block) bool {
	return b.Kind == next.Kind && b.Kind.IsList() && (b.Kind == Bullets || b.Form == next.Form && b.Start+len(b.Items) == next.Start)
}

// lastItem returns the last item of the list at the end of blocks, or nil if blocks does not end
// with a list.
func lastItem(blocks []Block) *Item {
	if len(blocks) == 0 || !blocks[len(blocks)-1].Kind.IsList() {
		return nil
	}
	items := blocks[len(blocks)-1].Items
	return &items[len(items)-1]
}

// isUnmarked reports whether a list or an item is rendered without markers.
func isUnmarked(n *html.Node) bool {
	css := styleOf(n)
	return css["list-style-type"] == "none" || strings.Contains(" "+css["list-style"]+" ", " none ")
}

// counters holds the number of the next item at each level of a list.
type counters struct {
	at   []int
	step int
}

func countersOf(n *html.Node) *counters {
	c := &counters{at: []int{1}, step: 1}
	if hasAttr(n, "reversed") {
		c.step, c.at[0] = -1, 0
		for i := n.FirstChild; i != nil; i = i.NextSibling {
			if i.DataAtom == atom.Li {
				c.at[0]++
			}
		}
	}
	if start, err := strconv.Atoi(strings.TrimSpace(attr(n, "start"))); err == nil {
		c.at[0] = start
	}
	return c
}

// next returns an empty list for an item. The list has the item's kind and, if it is numbered,
// starts with the item's number.
func (c *counters) next(list, item *html.Node, level int) Block {
	for len(c.at) <= level {
		c.at = append(c.at, 1)
	}
	c.at = c.at[:level+1]
	if value, err := strconv.Atoi(strings.TrimSpace(attr(item, "value"))); err == nil {
		c.at[level] = value
	}
	kind, form := markerOf(list, item)
	if kind == Bullets {
		return Block{Kind: Bullets}
	}
	b := Block{Kind: Numbers, Start: c.at[level], Form: form}
	c.at[level] += c.step
	return b
}

// markerOf returns the kind of list to which an item belongs, and the form of its number. The Quill
// editor writes every list as <ol> and stores the kind in the attribute data-list.
func markerOf(list, item *html.Node) (BlockKind, NumberForm) {
	switch attr(item, "data-list") {
	case "":
	case "ordered":
		return Numbers, ""
	default:
		return Bullets, ""
	}
	style := ""
	for _, n := range []*html.Node{item, list} {
		css := styleOf(n)
		for _, v := range []string{css["list-style-type"], css["list-style"], attr(n, "type")} {
			if style == "" {
				style = strings.TrimSpace(v)
			}
		}
	}
	form := numberForm(style)
	switch {
	case form != "", strings.HasPrefix(style, "decimal"):
		return Numbers, form
	case style == "disc", style == "circle", style == "square", list.DataAtom != atom.Ol:
		return Bullets, ""
	default:
		return Numbers, ""
	}
}

var quillIndent = regexp.MustCompile(`(?:^|\s)ql-indent-([1-9])(?:\s|$)`)

// quillLevel returns the nesting level of an item that was written by the Quill editor. Quill
// writes nested lists as one flat list.
func quillLevel(item *html.Node) int {
	m := quillIndent.FindStringSubmatch(attr(item, "class"))
	if m == nil {
		return 0
	}
	return int(m[1][0] - '0')
}

var wordLevel = regexp.MustCompile(`\blevel([1-9])\b`)

// wordMarkerOf returns the nesting level and the marker of a list item that Word wrote as a
// paragraph. If the paragraph is not such an item, ok is false.
func wordMarkerOf(n *html.Node) (level int, marker *html.Node, ok bool) {
	m := wordLevel.FindStringSubmatch(styleOf(n)["mso-list"])
	if m == nil {
		return 0, nil, false
	}
	marker = wordMarker(n, 4)
	return int(m[1][0] - '1'), marker, marker != nil
}

// wordMarker returns the marker in a paragraph written by Word. It searches at most depth levels
// down and returns nil if there is no marker.
func wordMarker(n *html.Node, depth int) *html.Node {
	for c := n.FirstChild; c != nil && depth > 0; c = c.NextSibling {
		if isWordMarker(c) {
			return c
		}
		if found := wordMarker(c, depth-1); found != nil {
			return found
		}
	}
	return nil
}

func isWordMarker(n *html.Node) bool {
	return n.Type == html.ElementNode && styleOf(n)["mso-list"] == "ignore"
}

// wordItem reads a list item that Word wrote as a paragraph.
func (r *reader) wordItem(n *html.Node, level int, marker *html.Node, l look) {
	r.endBlock()
	item := addItem(r.out, level, wordList(textOf(marker), styleOf(marker.Parent)["font-family"]+styleOf(marker)["font-family"]))
	r.inItem(item, func() { r.nodes(n, l) })
}

// wordList returns an empty list of the kind to which a Word marker belongs. The font is needed
// because Word renders bullets with characters from symbol fonts.
func wordList(marker, font string) Block {
	for _, signs := range []string{"symbol", "wingdings", "courier"} {
		if strings.Contains(font, signs) {
			return Block{Kind: Bullets}
		}
	}
	word := strings.TrimFunc(marker, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if n, err := strconv.Atoi(word); err == nil {
		return Block{Kind: Numbers, Start: n}
	}
	if len(word) == 1 && word[0] >= 'a' && word[0] <= 'z' && word != "o" {
		return Block{Kind: Numbers, Start: int(word[0]-'a') + 1, Form: LowerLetters}
	}
	return Block{Kind: Bullets}
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
