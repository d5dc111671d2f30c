package publishing

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Content is plain text, kept byte for byte, unless it holds one of these tags: then it is the HTML subset, and everything outside the subset is removed.
var markup = regexp.MustCompile(`(?i)<(?:p|h1|h2|h3|u|strong|a|ul|li|br)(?:\s[^<>]*)?/?>`)

// Storable tells whether text can be kept and sent as it is: valid UTF-8 without NUL.
func Storable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

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

// IsHTML tells whether content is the HTML subset rather than plain text.
func IsHTML(content string) bool { return markup.MatchString(content) }

// Sanitize removes from HTML content what the subset (p h1 h2 h3 u strong a ul li br) does not know. Plain text passes unchanged.
func Sanitize(content string) string {
	if !IsHTML(content) {
		return content
	}
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "h1", "h2", "h3", "u", "strong", "ul", "li", "br")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	return p.Sanitize(content)
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
