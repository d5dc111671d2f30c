package bluesky

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"crier/publishing/connector"
)

const (
	maxTag      = 64  // graphemes
	maxTagBytes = 640 // of UTF-8
)

// facet is a range of bytes of the text with one target: a URI, a tag, or an account.
type facet struct {
	Start int    `json:"s"`
	End   int    `json:"e"`
	URI   string `json:"u,omitempty"`
	Tag   string `json:"t,omitempty"`
	// Mention is a handle; resolve replaces it by DID.
	Mention string `json:"m,omitempty"`
	DID     string `json:"d,omitempty"`
}

// handlePattern matches a domain name of at least two labels whose last one begins with a letter.
var handlePattern = regexp.MustCompile(
	`^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)+[a-zA-Z](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$`)

// findFacets returns the links, mentions and hashtags of the text, in order and without overlap.
func findFacets(text string) []facet {
	var out []facet
	before := ' '
	for i := 0; i < len(text); {
		if f, ok := facetAt(text, i, before); ok {
			out = append(out, f)
			before, _ = utf8.DecodeLastRuneInString(text[:f.End])
			i = f.End
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		before, i = r, i+size
	}
	return out
}

// facetAt returns the facet that starts at byte i, after the character before.
func facetAt(text string, i int, before rune) (facet, bool) {
	switch text[i] {
	case 'h', 'H':
		return linkAt(text, i, before)
	case '@':
		return mentionAt(text, i, before)
	case '#':
		return tagAt(text, i, i+1, before)
	}
	if strings.HasPrefix(text[i:], "＃") {
		return tagAt(text, i, i+len("＃"), before)
	}
	return facet{}, false
}

func linkAt(text string, i int, before rune) (facet, bool) {
	scheme := 0
	for _, s := range []string{"https://", "http://"} {
		if rest := text[i:]; len(rest) > len(s) && strings.EqualFold(rest[:len(s)], s) {
			scheme = len(s)
			break
		}
	}
	if scheme == 0 || asciiWord(before) {
		return facet{}, false
	}
	end := i + scheme + strings.IndexFunc(text[i+scheme:]+" ", endsLink)
	end = i + trimLink(text[i:end])
	if end <= i+scheme {
		return facet{}, false
	}
	uri, ok := asciiURI(text[i:end])
	return facet{Start: i, End: end, URI: uri}, ok
}

func endsLink(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError ||
		strings.ContainsRune("<>\"`“”«»„、。，！？；：（）「」『』【】《》\u200b\ufeff", r)
}

// trimLink returns the length of a link without the punctuation of the sentence around it. A closing bracket that was
// opened inside the link stays.
func trimLink(link string) int {
	for {
		r, size := utf8.DecodeLastRuneInString(link)
		opener, closes := map[rune]string{')': "(", ']': "[", '}': "{"}[r]
		switch {
		case closes && strings.Count(link, string(r)) > strings.Count(link, opener), strings.ContainsRune(".,;:!?'’…", r):
			link = link[:len(link)-size]
		default:
			return len(link)
		}
	}
}

func mentionAt(text string, i int, before rune) (facet, bool) {
	if asciiWord(before) || unicode.IsLetter(before) || strings.ContainsRune("@./-", before) {
		return facet{}, false // part of an e-mail address or a path
	}
	rest := text[i+1:]
	end := strings.IndexFunc(rest+" ", func(r rune) bool { return r == '_' || !asciiWord(r) && r != '.' && r != '-' })
	if end < len(rest) && (rest[end] == '_' || rest[end] == '@') {
		return facet{}, false
	}
	handle := strings.TrimRight(rest[:end], ".-")
	if len(handle) > 253 || !handlePattern.MatchString(handle) {
		return facet{}, false
	}
	return facet{Start: i, End: i + 1 + len(handle), Mention: handle}, true
}

// tagAt returns the hashtag at byte i whose word begins at byte word.
func tagAt(text string, i, word int, before rune) (facet, bool) {
	if !unicode.IsSpace(before) && !strings.ContainsRune("([{\"'“‘「『（【", before) {
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

func endsTag(r rune) bool {
	return unicode.IsSpace(r) || unicode.IsControl(r) || r == utf8.RuneError ||
		strings.ContainsRune("#＃、。，！？；：（）「」『』【】《》\u00ad\u200b\u2060\ufeff", r)
}

func asciiWord(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
