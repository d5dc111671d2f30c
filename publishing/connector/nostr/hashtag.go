package nostr

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxHashtags = 50 // per note; relays reject notes with too many tags
	maxHashtag  = 64 // characters
)

// hashtagPattern matches a hashtag at the start of a word. A hashtag consists of letters, digits,
// emoji, underscores and hyphens.
var hashtagPattern = regexp.MustCompile(
	`(?:^|[\s\p{Ps}\p{Pi}"'])[#＃]([\p{L}\p{N}\p{So}_][\p{L}\p{M}\p{N}\p{So}\p{Sk}_\x{200d}-]*)`)

// hashtags returns a "t" tag for each hashtag in the text. The tags are in order, without
// duplicates, and in lower case as NIP-24 requires. A number, or a word longer than maxHashtag, is
// not a hashtag. After maxHashtags hashtags, any others stay plain text.
func hashtags(text string) [][]string {
	var tags [][]string
	var words []string
	for _, match := range hashtagPattern.FindAllStringSubmatch(text, -1) {
		word := strings.TrimRight(strings.ToLower(match[1]), "-")
		named := strings.ContainsFunc(word, func(r rune) bool {
			return unicode.IsLetter(r) || unicode.Is(unicode.So, r)
		})
		if !named || utf8.RuneCountInString(word) > maxHashtag || slices.Contains(words, word) {
			continue
		}
		words = append(words, word)
		if len(words) > maxHashtags {
			break
		}
		tags = append(tags, []string{"t", word})
	}
	return tags
}
