// Package paste repairs what comes along when people paste keys, codes, addresses and names: characters that nobody sees,
// white space around, and the dashes and wide letters that editors and keyboards put in place of others.
package paste

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Line returns a text of one line, such as a name, without hidden characters and without white space around. Joiners of
// letters and emoji stay, and so do control characters, which nobody pastes unawares: the rules of the field name them.
func Line(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if isHidden(r) {
			return -1
		}
		return r
	}, s))
}

// Trim returns a text without white space and hidden characters around it.
func Trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || isHidden(r) })
}

// quotes are what people put around a word in a message.
const quotes = "\"'`\u00b4\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300d<>"

// Word returns a text that can hold no white space, such as a key, a code, an address or a handle: without white space and
// without characters that have no shape, without quotation marks around it, with wide letters and digits as ASCII, and each
// dash as a hyphen.
func Word(s string) string {
	return strings.Trim(strings.Map(wordRune, s), quotes)
}

func wordRune(r rune) rune {
	if r < unicode.MaxASCII { // most of all
		if r <= ' ' {
			return -1
		}
		return r
	}
	switch {
	case unicode.IsSpace(r), unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Variation_Selector):
		return -1
	case unicode.Is(unicode.Pd, r), r == '\u2212': // the minus sign
		return '-'
	case r == '\u3002': // the full stop of Chinese and Japanese keyboards
		return '.'
	}
	if narrow := width.LookupRune(r).Narrow(); narrow > 0 && narrow < unicode.MaxASCII {
		return narrow
	}
	return r
}

// isHidden reports whether a character sets the direction of writing, has no width, or shows only where a word is parted.
func isHidden(r rune) bool {
	return unicode.Is(unicode.Bidi_Control, r) || r == '\u200b' || r == '\u2060' || r == '\ufeff' || r == '\u00ad'
}
