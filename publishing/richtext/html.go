package richtext

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// HTML returns the document as a single line of HTML that uses only the elements p h1 h2 h3 u
// strong a ul ol li br. Parse(d.HTML()) returns the same document.
func (d Doc) HTML() string {
	var w htmlWriter
	w.blocks(d.Blocks, false)
	return w.String()
}

type htmlWriter struct {
	strings.Builder
}

var blockTags = map[BlockKind]string{Paragraph: "p", Heading1: "h1", Heading2: "h2", Heading3: "h3", Bullets: "ul", Numbers: "ol"}

// blocks writes all blocks. A paragraph at the beginning of an item is written without tags.
func (w *htmlWriter) blocks(all []Block, inItem bool) {
	for i, b := range all {
		tag := blockTags[b.Kind]
		switch {
		case inItem && i == 0 && b.Kind == Paragraph:
			w.spans(b.Spans)
			continue
		case b.Kind == Numbers:
			w.WriteString("<ol")
			if b.Form != "" {
				w.WriteString(` type="` + string(b.Form) + `"`)
			}
			if b.Start != 1 {
				w.WriteString(` start="` + strconv.Itoa(b.Start) + `"`)
			}
			w.WriteString(">")
		default:
			w.WriteString("<" + tag + ">")
		}
		w.spans(b.Spans)
		for _, item := range b.Items {
			w.WriteString("<li>")
			w.blocks(item.Blocks, true)
			w.WriteString("</li>")
		}
		w.WriteString("</" + tag + ">")
	}
}

// spans writes the text of a block. If the text ends with a line break, the break is written twice,
// because browsers do not render a line break at the end of a block.
func (w *htmlWriter) spans(all []Span) {
	var open form
	for _, s := range all {
		w.change(open, s.form)
		open = s.form
		w.WriteString(strings.ReplaceAll(html.EscapeString(s.Text), "\n", "<br>"))
	}
	w.change(open, form{})
	if n := len(all); n > 0 && strings.HasSuffix(all[n-1].Text, "\n") {
		w.WriteString("<br>")
	}
}

// change writes the tags between two spans. Link tags enclose bold tags, and bold tags enclose
// underline tags.
func (w *htmlWriter) change(from, to form) {
	link := from.Href != to.Href
	strong := link || from.Strong != to.Strong
	underline := strong || from.Underline != to.Underline
	for _, c := range []struct {
		write bool
		tag   string
	}{{underline && from.Underline, "</u>"}, {strong && from.Strong, "</strong>"}, {link && from.Href != "", "</a>"}} {
		if c.write {
			w.WriteString(c.tag)
		}
	}
	if link && to.Href != "" {
		w.WriteString(`<a href="` + html.EscapeString(to.Href) + `">`)
	}
	if strong && to.Strong {
		w.WriteString("<strong>")
	}
	if underline && to.Underline {
		w.WriteString("<u>")
	}
}
