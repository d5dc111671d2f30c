package bluesky

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"crier/platform/text"
	"crier/publishing/connector"
	"crier/publishing/connector/links"
)

const (
	maxTag      = 64  // graphemes
	maxTagBytes = 640 // in UTF-8
)

// facet links a byte range of the text to one target: a URI, a tag or an account.
type facet struct {
	Start int    `json:"s"`
	End   int    `json:"e"`
	URI   string `json:"u,omitempty"`
	Tag   string `json:"t,omitempty"`
	// Mention is a handle; resolve replaces it with a DID.
	Mention string `json:"m,omitempty"`
	DID     string `json:"d,omitempty"`
}

// handlePattern matches a domain name with at least two labels. The last label must begin with a
// letter.
var handlePattern = regexp.MustCompile(
	`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)

// findFacets returns the links, mentions and hashtags in the text, in order and without overlap.
func findFacets(in string) []facet {
	var out []facet
	before, found := ' ', links.Find(in)
	for i := 0; i < len(in); {
		for len(found) > 0 && found[0].Start < i {
			found = found[1:] // inside another facet
		}
		var f facet
		var ok bool
		if len(found) > 0 && found[0].Start == i {
			f = facet{Start: i, End: found[0].End}
			f.URI, ok = asciiURI(found[0].Address)
		} else {
			f, ok = facetAt(in, i, before)
		}
		if ok {
			out = append(out, f)
			before, _ = utf8.DecodeLastRuneInString(in[:f.End])
			i = f.End
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

// facetAt returns the mention, hashtag or cashtag that starts at byte i. before is the visible
// character that precedes byte i.
func facetAt(text string, i int, before rune) (facet, bool) {
	switch text[i] {
	case '@':
		return mentionAt(text, i, before)
	case '#':
		return tagAt(text, i, i+1, before)
	case '$':
		return cashtagAt(text, i, before)
	}
	if strings.HasPrefix(text[i:], "＃") {
		return tagAt(text, i, i+len("＃"), before)
	}
	return facet{}, false
}

// mentionAt returns the mention at byte i. Invisible characters, which are often copied along with
// a handle, are included in the facet but not in the handle.
func mentionAt(text string, i int, before rune) (facet, bool) {
	if asciiWord(before) || unicode.IsLetter(before) || strings.ContainsRune("@./-", before) {
		return facet{}, false // part of an email address or a path
	}
	var name []byte
	var ends []int // where each character of name ends in text
	for at, r := range text[i+1:] {
		if unicode.Is(unicode.Cf, r) {
			continue
		}
		if r == '_' || r == '@' {
			return facet{}, false
		}
		if !asciiWord(r) && r != '.' && r != '-' {
			break
		}
		name, ends = append(name, byte(r)), append(ends, i+1+at+1)
	}
	handle := strings.TrimRight(string(name), ".-")
	if len(handle) > 253 || !handlePattern.MatchString(handle) {
		return facet{}, false
	}
	return facet{Start: i, End: ends[len(handle)-1], Mention: handle}, true
}

// tagAt returns the hashtag whose # is at byte i and whose text begins at byte word.
func tagAt(text string, i, word int, before rune) (facet, bool) {
	if !unicode.IsSpace(before) && !unicode.In(before, unicode.Ps, unicode.Pi) && before != '"' && before != '\'' {
		return facet{}, false
	}
	rest := text[word:]
	tag := rest[:strings.IndexFunc(rest+" ", endsTag)]
	tag = strings.TrimRightFunc(tag, unicode.IsPunct)
	named := strings.ContainsFunc(tag, func(r rune) bool { return !unicode.IsDigit(r) && !unicode.IsPunct(r) })
	if !named || strings.HasPrefix(tag, "\ufe0f") { // a number, or a keycap
		return facet{}, false
	}
	if len(tag) > maxTagBytes || connector.Length(tag, connector.Graphemes) > maxTag {
		return facet{}, false
	}
	return facet{Start: i, End: word + len(tag), Tag: tag}, true
}

// cashtagPattern matches a stock symbol, such as $TSLA, that is followed by white space,
// punctuation or the end of the text.
var cashtagPattern = regexp.MustCompile(`^(\$[A-Za-z][A-Za-z0-9]{0,4})(?:[\s\p{Cf}\p{Pe}\p{Pf}.,;:!?"']|$)`)

// cashtagAt returns the cashtag at byte i as a tag in upper case, including the $.
func cashtagAt(text string, i int, before rune) (facet, bool) {
	match := cashtagPattern.FindStringSubmatch(text[i:])
	if match == nil || !unicode.IsSpace(before) && !unicode.In(before, unicode.Ps, unicode.Pi) {
		return facet{}, false
	}
	return facet{Start: i, End: i + len(match[1]), Tag: strings.ToUpper(match[1])}, true
}

// endsTag returns true for a character that cannot be part of a hashtag. ASCII punctuation ends a
// hashtag only before a space.
func endsTag(r rune) bool {
	if unicode.IsSpace(r) || unicode.IsControl(r) || text.Hidden(r) || strings.ContainsRune("#＃\u00ad\ufffd", r) {
		return true
	}
	return r >= utf8.RuneSelf && unicode.In(r, unicode.Terminal_Punctuation, unicode.Ps, unicode.Pe)
}

func asciiWord(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
