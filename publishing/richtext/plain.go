package richtext

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain returns the document as text for a platform without markup. Blocks become lines, items get
// a dash or a number, and nested lists are indented by two spaces per level. A link is followed by
// its URL unless the link's text already contains the URL.
func (d Doc) Plain() string {
	var w plainWriter
	w.blocks(d.Blocks, "", "")
	return strings.Trim(w.String(), "\n")
}

// maxIndent limits the indentation, to keep a few bytes of nested lists from becoming megabytes of
// spaces.
const maxIndent = 16

func indented(prefix string) string { return prefix[:min(len(prefix), maxIndent)] }

type plainWriter struct {
	strings.Builder
}

// blocks writes all blocks, with the prefix first on the first line and rest on the others.
func (w *plainWriter) blocks(all []Block, first, rest string) {
	for _, b := range all {
		if b.Kind.IsList() {
			w.list(b, first, rest)
		} else {
			w.lines(text(b.Spans), first, rest)
		}
		first = rest
	}
}

func (w *plainWriter) list(b Block, first, rest string) {
	for i, item := range b.Items {
		marker := "- "
		if b.Kind == Numbers {
			marker = b.Form.write(b.Start+i) + ". "
		}
		switch {
		case len(item.Blocks) == 0:
			w.lines("", first+marker, rest)
		// browsers draw both markers on one line; only the inner marker is kept
		case item.Blocks[0].Kind.IsList():
			w.blocks(item.Blocks, indented(rest+"  "), indented(rest+"  "))
		default:
			w.blocks(item.Blocks, first+marker, indented(rest+"  "))
		}
		first = rest
	}
}

// lines writes the lines of text without trailing spaces and no-break spaces.
func (w *plainWriter) lines(text, first, rest string) {
	for line := range strings.SplitSeq(text, "\n") {
		w.WriteString(strings.TrimRight(first+line, " \u00a0") + "\n")
		first = rest
	}
}

// text returns a block's text, with the URLs of links.
func text(spans []Span) string {
	var b strings.Builder
	begin := 0 // where the link's text begins
	for i, s := range spans {
		if i == 0 || spans[i-1].Href != s.Href {
			begin = b.Len()
		}
		b.WriteString(s.Text)
		if s.Href == "" || i+1 < len(spans) && spans[i+1].Href == s.Href {
			continue
		}
		if !shows(b.String()[begin:], s.Href) {
			b.WriteString(" (" + s.Href + ")")
		}
	}
	return b.String()
}

// shows reports whether a link's text contains its URL, either unchanged or as browsers show it:
// with letters in other scripts decoded and without the slash after a host. For a mailto URL, only
// the mailbox counts.
func shows(text, href string) bool {
	if mailbox, ok := strings.CutPrefix(href, "mailto:"); ok {
		mailbox, _, _ = strings.Cut(mailbox, "?")
		return mailbox != "" && (strings.Contains(text, mailbox) || strings.Contains(text, readable(mailbox)))
	}
	if strings.Contains(text, href) || contains(text, readable(href)) {
		return true
	}
	host, isHost := strings.CutSuffix(href, "/")
	return isHost && strings.Count(href, "/") == 3 && contains(text, readable(host))
}

// contains reports whether text contains address as a whole, not as the beginning of a longer URL.
func contains(text, address string) bool {
	_, rest, found := strings.Cut(text, address)
	next, _ := utf8.DecodeRuneInString(rest)
	return found && (rest == "" || unicode.IsSpace(next) || strings.ContainsRune(",;!)]}>\"'", next))
}

var encoded = regexp.MustCompile(`(?:%[89A-Fa-f][0-9A-Fa-f])+`)

// readable returns a URL with percent-encoded letters, marks and digits outside ASCII decoded.
// Everything else stays encoded, because decoding it would end the URL or change its meaning.
func readable(address string) string {
	return encoded.ReplaceAllStringFunc(address, func(escapes string) string {
		plain, err := url.PathUnescape(escapes)
		if err != nil || !utf8.ValidString(plain) || strings.ContainsFunc(plain, isNoLetter) {
			return escapes
		}
		return plain
	})
}

func isNoLetter(r rune) bool { return !unicode.In(r, unicode.L, unicode.M, unicode.N) }
