// Package text cuts, cleans and phrases short texts that people read: names, notes and messages
// from other servers.
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

// CutBytes returns the first n bytes of s, or up to three fewer so that no character is split.
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

// Shorten returns at most n characters of s. If s has more, the last one is an ellipsis.
func Shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return Cut(s, n-1) + "…"
}

// Line returns text from another party as one line that any store can hold. The result is valid
// UTF-8 of at most n bytes, without control characters such as U+0000 and without Hidden
// characters.
//
// Each run of white space becomes one space, or nothing at the ends. Invalid bytes are dropped, and
// no character is split.
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

// Hidden reports whether a character is invisible and affects how others appear: it sets the
// writing direction or has no width. The joiners of letters and emoji are not Hidden.
func Hidden(r rune) bool {
	return unicode.Is(unicode.Bidi_Control, r) || r == '\u200B' || r == '\u2060' || r == '\uFEFF'
}

// Count returns a number with a noun: "1 post", "2 posts".
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
