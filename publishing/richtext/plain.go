package richtext

import (
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Plain returns the document as text for a platform without markup. Each block starts on a new
// line. Items begin with a dash or a number, and nested lists are indented by two spaces per level.
// A link is followed by its URL unless the link's text already contains the URL.
func (d Doc) Plain() string {
	var w plainWriter
	w.blocks(d.Blocks, "", "")
	return strings.Trim(w.String(), "\n")
}

// maxIndent is the maximum number of spaces by which a line is indented. Without a limit, a few
// bytes of nested lists could become megabytes of spaces.
const maxIndent = 16

func indented(prefix string) string { return prefix[:min(len(prefix), maxIndent)] }

type plainWriter struct {
	strings.Builder
}

// blocks writes all blocks. first is the prefix of the first line, and rest is the prefix of all
// other lines.
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
		// browsers render both markers on one line; only the inner marker is kept
		case item.Blocks[0].Kind.IsList():
			w.blocks(item.Blocks, indented(rest+"  "), indented(rest+"  "))
		default:
			w.blocks(item.Blocks, first+marker, indented(rest+"  "))
		}
		first = rest
	}
}

// lines writes the lines of text. It trims spaces and no-break spaces from the end of each line.
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

// shows reports whether a link's text contains the link's URL. The URL may be unchanged or in the
// form that browsers show: with letters of other scripts decoded, and without the slash after the
// host. For a mailto URL, it is enough if the text contains the email address.
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

// contains reports whether text contains address as a whole URL, not as the beginning of a longer
// URL.
func contains(text, address string) bool {
	_, rest, found := strings.Cut(text, address)
	next, _ := utf8.DecodeRuneInString(rest)
	return found && (rest == "" || unicode.IsSpace(next) || strings.ContainsRune(",;!)]}>\"'", next))
}

var encoded = regexp.MustCompile(`(?:%[89A-Fa-f][0-9A-Fa-f])+`)

// readable decodes the percent-encoded letters, marks and digits in a URL that are not ASCII.
// Everything else stays encoded, because decoding it could end the URL early or change its meaning.
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
