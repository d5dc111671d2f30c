package publishing

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
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

// storableJSON tells whether a database takes a JSON document as it is: its text is storable, its numbers fit a float and it is not too deep.
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
			if _, err := v.Float64(); err != nil {
				return false
			}
		}
		if depth > MaxSettingsDepth {
			return false
		}
	}
}

// PlainText is content as a platform without markup gets it: blocks become lines, list items get a dash, a link whose text differs keeps its address.
func PlainText(content string) string {
	if !IsHTML(content) {
		return content
	}
	nodes, err := html.ParseFragment(strings.NewReader(content), &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body})
	if err != nil {
		return content
	}
	var w plainWriter
	for _, n := range nodes {
		w.node(n)
	}
	return strings.TrimRight(strings.TrimLeft(w.String(), "\n"), "\n")
}

type plainWriter struct{ strings.Builder }

func (w *plainWriter) node(n *html.Node) {
	if n.Type == html.TextNode {
		w.WriteString(n.Data)
		return
	}
	switch n.DataAtom {
	case atom.Br:
		w.WriteString("\n")
	case atom.P, atom.H1, atom.H2, atom.H3, atom.Ul:
		w.line()
		w.children(n)
		w.WriteString("\n")
	case atom.Li:
		w.line()
		w.WriteString("- ")
		w.children(n)
		w.WriteString("\n")
	case atom.A:
		w.children(n)
		if href := attr(n, "href"); href != "" && !strings.Contains(textOf(n), strings.TrimPrefix(href, "mailto:")) {
			w.WriteString(" (" + href + ")")
		}
	default:
		w.children(n)
	}
}

func (w *plainWriter) children(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		w.node(c)
	}
}

// line starts a new line unless one has just begun.
func (w *plainWriter) line() {
	if s := w.String(); s != "" && !strings.HasSuffix(s, "\n") {
		w.WriteString("\n")
	}
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func textOf(n *html.Node) string {
	var w plainWriter
	w.children(n)
	return w.String()
}
