// Package links finds links in plain text.
package links

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/unicode/bidi"
	"golang.org/x/text/width"

	"crier/platform/text"
)

// Link is a byte range of a text that links to a URL.
type Link struct {
	Start, End int
	// Address is the link's text, with https:// prepended if the text has no scheme. It may still
	// be unusable; for example, it may lack a host.
	Address string
}

// Find returns the links in a text, in order and without overlap. A link is either a URL that
// begins with http:// or https://, or a domain name under a known top-level domain. A domain name
// may be followed by a port, path, query and fragment.
//
// A link ends according to the rules of UTS #58, in any script. It ends before white space, before
// a closing bracket that was not opened inside the link, and before trailing punctuation and
// quotation marks.
//
// Find departs from UTS #58 in two ways. The characters < > " and ` end a link, because no URL
// contains them. Wide punctuation and non-ASCII quotation marks also end a link if the host, or the
// text after the host, has been ASCII so far. The second rule is needed because Chinese and
// Japanese text has no space after a link.
func Find(in string) []Link {
	var out []Link
	before := ' '
	for i := 0; i < len(in); {
		if l, ok := linkAt(in, i, before); ok {
			out = append(out, l)
			before, _ = utf8.DecodeLastRuneInString(in[:l.End])
			i = l.End
			continue
		}
		r, size := utf8.DecodeRuneInString(in[i:])
		if !text.Hidden(r) {
			before = r
		}
		i += size
	}
	return out
}

func linkAt(text string, i int, before rune) (Link, bool) {
	if wordRune(before) {
		return Link{}, false
	}
	for _, scheme := range []string{"https://", "http://"} {
		if len(text)-i <= len(scheme) || !strings.EqualFold(text[i:i+len(scheme)], scheme) {
			continue
		}
		start := i + len(scheme)
		end := endOf(text, start)
		return Link{Start: i, End: end, Address: text[i:end]}, end > start
	}
	if !mayPrecede(before) {
		return Link{}, false
	}
	end, ok := bareEnd(text, i)
	if !ok {
		return Link{}, false
	}
	return Link{Start: i, End: end, Address: "https://" + text[i:end]}, true
}

func wordRune(r rune) bool {
	return r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// endOf returns the end of the link whose host begins at byte i, or i if there is none.
func endOf(text string, i int) int {
	var closers []rune
	end, host, ascii := i, true, true
	for j, r := range text[i:] {
		after := i + j + utf8.RuneLen(r)
		if host && strings.ContainsRune("/?#", r) {
			host, ascii = false, true
		}
		if endsLink(r) || ascii && endsASCII(r) {
			return end
		}
		ascii = ascii && r < utf8.RuneSelf
		switch closer, kind := bracket(r); {
		case kind == opening:
			closers = append(closers, closer)
		case kind == closing:
			last := len(closers) - 1
			if last < 0 || closers[last] != r {
				return end
			}
			closers, end = closers[:last], after
		case !trailing(r):
			end = after
		}
	}
	return end
}

// endsLink returns true for a character that no link contains.
func endsLink(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError || text.Hidden(r) ||
		strings.ContainsRune("<>\"`", r)
}

// endsASCII returns true for a character that ends an ASCII link. Typographic apostrophes do not
// end a link, because titles in URLs often contain them.
func endsASCII(r rune) bool {
	if r < utf8.RuneSelf || r == '‘' || r == '’' {
		return false
	}
	return unicode.Is(unicode.Quotation_Mark, r) || unicode.IsPunct(r) && wide(r)
}

func wide(r rune) bool {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth, width.EastAsianHalfwidth:
		return true
	}
	return false
}

// trailing returns true for a character that belongs to a link only if more of the link follows.
func trailing(r rune) bool {
	return r == '…' || r == '‥' || unicode.In(r, unicode.Terminal_Punctuation, unicode.Sentence_Terminal,
		unicode.Quotation_Mark, unicode.Pi, unicode.Pf, unicode.Ps, unicode.Pe)
}

type bracketKind int

const (
	noBracket bracketKind = iota
	opening
	closing
)

// bracket returns r's kind and, for an opening bracket, its closing counterpart.
func bracket(r rune) (closer rune, kind bracketKind) {
	p, _ := bidi.LookupRune(r)
	switch {
	case !p.IsBracket():
		return 0, noBracket
	case !p.IsOpeningBracket():
		return 0, closing
	}
	// ReverseString mirrors brackets
	closer, _ = utf8.DecodeRuneInString(bidi.ReverseString(string(r)))
	return closer, opening
}

// mayPrecede returns true for a character that can precede a link without a scheme. It returns
// false for other characters, because a domain name inside a word, a path, an email address or a
// mention is not a link.
func mayPrecede(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.Ps, unicode.Quotation_Mark, unicode.Pi) ||
		unicode.IsPunct(r) && wide(r)
}

// bareEnd returns the end of a link without a scheme that begins at byte i. It returns false if no
// domain name begins there, or if the domain name is part of an email address or a longer word.
func bareEnd(text string, i int) (end int, ok bool) {
	name := text[i : i+lengthOf(text[i:], inDomain)]
	name = strings.TrimRight(name, ".") // trailing dots end the sentence
	if !domain(name) {
		return 0, false
	}
	end = i + len(name)
	rest := text[end:]
	next, _ := utf8.DecodeRuneInString(rest)
	if rest != "" && strings.ContainsRune("/?#", next) {
		return endOf(text, i), true
	}
	local := rest[:min(len(rest), maxLocal)]
	local = local[lengthOf(local, inLocal):]
	if strings.HasPrefix(local, "@") {
		return 0, false
	}
	if next == ':' && lengthOf(rest[1:], unicode.IsDigit) > 0 {
		return endOf(text, i), true
	}
	part := next == '_' || unicode.In(next, unicode.L, unicode.M, unicode.N) && !wide(next)
	return end, !part
}

const (
	maxLocal  = 64   // bytes of an email address before the @
	maxDomain = 253  // bytes in ASCII
	maxName   = 1000 // bytes of a domain name in any script
)

// inLocal returns true for a character that can precede the @ of an email address.
func inLocal(r rune) bool { return wordRune(r) || strings.ContainsRune(".!$%&'*+=^`{|}~-", r) }

// lengthOf returns the number of bytes before the first character for which in returns false.
func lengthOf(text string, in func(rune) bool) int {
	if n := strings.IndexFunc(text, func(r rune) bool { return !in(r) }); n >= 0 {
		return n
	}
	return len(text)
}

// inDomain returns true for a character that a domain name can contain. It returns false for
// scripts that are written without spaces, because a domain name cannot be told apart from the
// words around it.
func inDomain(r rune) bool {
	if r < utf8.RuneSelf {
		return wordRune(r) && r != '_' || r == '.' || r == '-'
	}
	return unicode.In(r, unicode.Latin, unicode.Greek, unicode.Cyrillic, unicode.Mn) && !wide(r)
}

// domain returns true if name is a domain name under a top-level domain known to ICANN. The first
// label must contain a letter, so that version numbers such as 1.2 do not count. The top-level
// domain must be in lower case, so that two sentences without a space between them, as in "Read
// it.It is good.", do not count.
func domain(name string) bool {
	if len(name) > maxName {
		return false
	}
	labels := strings.Split(name, ".")
	top := labels[len(labels)-1]
	if len(labels) < 2 || !strings.ContainsFunc(labels[0], unicode.IsLetter) || top != strings.ToLower(top) {
		return false
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil || len(ascii) > maxDomain {
		return false
	}
	labels = strings.Split(ascii, ".")
	if slices.ContainsFunc(labels, func(l string) bool {
		return l == "" || len(l) > 63 || strings.HasPrefix(l, "-") || strings.HasSuffix(l, "-")
	}) {
		return false
	}
	top = labels[len(labels)-1]
	_, known := publicsuffix.PublicSuffix(top)
	// some top-level domains are listed only as wildcards, such as *.ck
	_, knownBelow := publicsuffix.PublicSuffix("x." + top)
	return known || knownBelow
}
