package nostr

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxHashtags = 50 // of one note: relays refuse notes of very many tags
	maxHashtag  = 64 // characters
)

// hashtagPattern is a hashtag at the start of a word. It may hold letters, digits, emoji, underscores and hyphens.
var hashtagPattern = regexp.MustCompile(
	`(?:^|[\s\p{Ps}\p{Pi}"'])[#＃]([\p{L}\p{N}\p{So}_][\p{L}\p{M}\p{N}\p{So}\p{Sk}_\x{200d}-]*)`)

// hashtags returns a tag "t" for each hashtag of the text, in lower case as NIP-24 wants it, each once and in order. A
// number alone is none, and neither is one that is longer than maxHashtag. Those after the first maxHashtags stay text.
func hashtags(text string) [][]string {
	var tags [][]string
	var words []string
	for _, match := range hashtagPattern.FindAllStringSubmatch(text, -1) {
		word := strings.TrimRight(strings.ToLower(match[1]), "-")
		named := strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.Is(unicode.So, r) })
		if !named || utf8.RuneCountInString(word) > maxHashtag || slices.Contains(words, word) {
			continue
		}
		if words = append(words, word); len(words) > maxHashtags {
			break
		}
		tags = append(tags, []string{"t", word})
	}
	return tags
}
