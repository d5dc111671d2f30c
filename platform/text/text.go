// Package text truncates, cleans and formats short texts for display, such as names, notes and
// messages from other servers.
package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Cut returns the first n characters of s.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// CutBytes returns the first n bytes of s, or up to three bytes fewer to avoid splitting a
// character.
func CutBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for end := n; end >= 0 && end > n-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:n]
}

// Shorten returns s if it has at most n characters. Otherwise, it returns the first n-1 characters,
// followed by an ellipsis.
func Shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return Cut(s, n-1) + "…"
}

// Line returns text from another party as a single line that any store can hold. The result is at
// most n bytes of valid UTF-8. It contains neither control characters, such as U+0000, nor Hidden
// characters.
//
// White space at the ends is removed, and every other run of white space becomes one space. Invalid
// bytes are dropped, and no character is split.
func Line(s string, n int) string {
	var b strings.Builder
	space := false
	for i, r := range s {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case unicode.IsControl(r), Hidden(r), r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			continue
		}
		size := utf8.RuneLen(r)
		if space {
			size++
		}
		if b.Len()+size > n {
			break
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Hidden reports whether r is an invisible character that affects the appearance of others, either
// by setting the writing direction or by having no width. Characters that join letters or emoji are
// not Hidden.
func Hidden(r rune) bool {
	return unicode.Is(unicode.Bidi_Control, r) || r == '\u200B' || r == '\u2060' || r == '\uFEFF'
}

// Count returns a number followed by a noun: "1 post", "2 posts".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.Itoa(n) + " " + noun
}

// List returns items as a list in a sentence: "A", "A and B", "A, B and C".
func List(items []string) string {
	last := len(items) - 1
	if last < 1 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:last], ", ") + " and " + items[last]
}
