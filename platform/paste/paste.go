// Package paste cleans pasted keys, codes, addresses and names. It removes invisible characters and
// surrounding white space. It also replaces the typographic dashes and full-width letters that
// editors and keyboards insert.
package paste

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"

	"crier/platform/text"
)

// Line removes hidden characters and surrounding white space from a one-line text, such as a name.
// It keeps the joiners that some scripts and emoji need. It also keeps control characters, so that
// the field's validation can report them.
func Line(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if isHidden(r) {
			return -1
		}
		return r
	}, s))
}

// Trim removes white space and hidden characters from both ends of a text.
func Trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || isHidden(r) })
}

// quotes are the quotation marks that Word removes from both ends of a text.
const quotes = "\"'`\u00b4\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a\u300c\u300d<>"

// Word cleans a text that cannot contain white space, such as a key, a code or a handle. It removes
// white space and invisible characters everywhere, and quotation marks at both ends. It replaces
// full-width letters and digits with ASCII, and every dash with a hyphen.
func Word(s string) string {
	return strings.Trim(strings.Map(wordRune, s), quotes)
}

// Figures cleans a text that consists mostly of digits, such as a date. It replaces full-width
// letters and digits with ASCII, every dash with a hyphen, and every white space character with a
// space. It removes surrounding white space and invisible characters.
func Figures(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return wordRune(r)
	}, s))
}

func wordRune(r rune) rune {
	if r < unicode.MaxASCII { // the common case
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

// isHidden is like text.Hidden but also returns true for a soft hyphen.
func isHidden(r rune) bool { return text.Hidden(r) || r == '\u00ad' }
