package richtext

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// look describes how the text of an element is rendered.
type look struct {
	form
	space spacing
}

// spacing defines how white space is handled, like the CSS property white-space.
type spacing int

const (
	collapse  spacing = iota // normal, nowrap
	keepLines                // pre-line
	keepAll                  // pre
	wrapAll                  // pre-wrap, break-spaces
)

func (s spacing) keepsLines() bool { return s != collapse }

// of returns the look of the element n. l is the look of the enclosing element.
func (l look) of(n *html.Node) look {
	switch n.DataAtom {
	case atom.Strong, atom.B:
		l.Strong = true
	case atom.U, atom.Ins:
		l.Underline = true
	case atom.Pre, atom.Listing, atom.Xmp, atom.Textarea:
		l.space = wrapAll
	case atom.Table:
		l.space = collapse
	case atom.A:
		if hasAttr(n, "href") {
			l.Href = address(attr(n, "href"))
		}
	}
	css := styleOf(n)
	switch weight := css["font-weight"]; weight {
	case "":
	case "bold", "bolder":
		l.Strong = true
	default:
		n, err := strconv.Atoi(weight)
		l.Strong = err == nil && n >= 600
	}
	switch decoration := css["text-decoration"] + " " + css["text-decoration-line"]; {
	case strings.Contains(decoration, "underline") && l.Href == "":
		l.Underline = true
	case strings.HasPrefix(decoration, "none"):
		l.Underline = false
	}
	switch css["white-space"] {
	case "normal", "nowrap":
		l.space = collapse
	case "pre-line":
		l.space = keepLines
	case "pre":
		l.space = keepAll
	case "pre-wrap", "break-spaces":
		l.space = wrapAll
	}
	return l
}

// maxAddress is the maximum length of a link's URL in bytes.
const maxAddress = 2048

var addressSpace = strings.NewReplacer("\n", "", "\r", "", "\t", "", " ", "%20")

// address returns the URL of a link to a web page or an email address, or "" for any other link. As
// in a browser, line breaks and tabs are removed, and spaces become %20. If the link begins with
// www., https:// is prepended.
func address(href string) string {
	href = strings.TrimFunc(href, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	href = addressSpace.Replace(href)
	if len(href) > 4 && strings.EqualFold(href[:4], "www.") {
		href = "https://" + href
	}
	if strings.IndexFunc(href, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) >= 0 {
		return ""
	}
	u, err := url.Parse(href)
	if err != nil || len(href) > maxAddress {
		return ""
	}
	switch u.Scheme {
	case "http", "https":
		if u.Host == "" {
			return ""
		}
	case "mailto":
	default:
		return ""
	}
	return href
}

// display defines how an element is laid out.
type display int

const (
	displayInline display = iota
	displayBlock
	displayNone
)

func displayOf(n *html.Node) display {
	if hasAttr(n, "hidden") {
		return displayNone
	}
	d := displayOfTag(n)
	if d == displayNone {
		return d
	}
	css := styleOf(n)
	if css["mso-hide"] == "all" || css["mso-list"] == "ignore" || css["visibility"] == "hidden" {
		return displayNone
	}
	switch css["display"] {
	case "":
		return d
	case "none":
		return displayNone
	case "block", "flex", "grid", "list-item", "table", "flow-root", "table-row":
		return displayBlock
	case "inline", "contents":
		return displayInline
	default:
		return d
	}
}

func displayOfTag(n *html.Node) display {
	if n.Namespace == "svg" {
		return displayNone
	}
	switch n.DataAtom {
	case atom.Script, atom.Style, atom.Template, atom.Head, atom.Title, atom.Meta, atom.Link, atom.Iframe, atom.Noframes,
		atom.Noembed, atom.Audio, atom.Video, atom.Canvas, atom.Datalist, atom.Noscript:
		return displayNone
	case atom.Option, atom.Optgroup, atom.Caption, atom.Tbody, atom.Thead, atom.Tfoot:
		return displayBlock
	case atom.Td, atom.Th:
		return displayBlock
	}
	if endsParagraph(n.Data) {
		return displayBlock
	}
	return displayInline
}

// styleOf returns the declarations in an element's style attribute. Names and values are in lower
// case.
func styleOf(n *html.Node) map[string]string {
	style := attr(n, "style")
	if style == "" {
		return nil
	}
	out := map[string]string{}
	for d := range strings.SplitSeq(strings.ToLower(style), ";") {
		if name, value, ok := strings.Cut(d, ":"); ok {
			value, _, _ = strings.Cut(value, "!")
			out[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return out
}

// shortcode matches an emoji name, such as :tada:, which Slack uses as the alternative text of an
// emoji picture.
var shortcode = regexp.MustCompile(`^(?::[\p{L}\p{M}\p{N}_+'-]{1,64}:){1,2}$`)

// emojiOf returns the alternative text of a picture if that text is an emoji or the name of an
// emoji. For any other node, it returns "". Editors may write emoji as pictures, which would
// otherwise be missing from the text.
func emojiOf(n *html.Node) string {
	if n.DataAtom != atom.Img {
		return ""
	}
	if alt := attr(n, "alt"); isEmoji(alt) || shortcode.MatchString(alt) {
		return alt
	}
	return ""
}

// isEmoji reports whether text may be the alternative text of an emoji picture: it contains an
// emoji, but no letters and no white space.
func isEmoji(text string) bool {
	found := false
	for _, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsSpace(r):
			return false
		case r > 0x2000 && unicode.Is(unicode.So, r), r == '\u20e3', r >= 0x1f1e6 && r <= 0x1f1ff:
			found = true
		}
	}
	return found
}
