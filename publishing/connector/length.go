package connector

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"

	"crier/publishing"
)

// Length returns the length of text in the given unit. It counts code points if the unit is
// unknown.
func Length(text string, unit Unit) int {
	switch unit {
	case Graphemes:
		n := 0
		for clusters := graphemes.FromString(text); clusters.Next(); {
			n++
		}
		return n
	case UTF16:
		n := 0
		for _, r := range text {
			n += max(utf16.RuneLen(r), 1)
		}
		return n
	case Bytes:
		return len(text)
	default:
		return utf8.RuneCountInString(text)
	}
}

// Check applies the rules declared in a descriptor and returns every problem. Each part's problems
// are in this order: empty part, media, length. If maxLength is not 0, it overrides the
// descriptor's limit.
func Check(d Descriptor, draft Draft, maxLength int) []Problem {
	if maxLength == 0 {
		maxLength = d.MaxLength
	}
	var out []Problem
	for i, part := range draft.Parts {
		add := func(format string, args ...any) {
			out = append(out, Problem{Part: i, Message: fmt.Sprintf(format, args...)})
		}
		if publishing.Blank(part.Text) && len(part.Media) == 0 {
			add("This part is empty: write some text, or add an image or video.")
		}
		checkMedia(d, part.Media, add)
		if n := Length(part.Text, d.Unit); maxLength > 0 && n > maxLength {
			add("The text is too long: it has %d characters, and at most %d are allowed.", n, maxLength)
		}
	}
	return out
}

func checkMedia(d Descriptor, media []Media, add func(string, ...any)) {
	images, videos := 0, 0
	for _, m := range media {
		limit := d.Media.MaxImageBytes
		if m.Video {
			videos++
			limit = d.Media.MaxVideoBytes
		} else {
			images++
		}
		if limit > 0 && m.Size > limit {
			add("%s is too large for %s: it has %d bytes, and at most %d are allowed.", m.Name, d.Name, m.Size, limit)
		}
	}
	switch {
	case videos > 0 && d.Media.MaxVideos == 0:
		add("%s does not accept videos here.", d.Name)
	case images > 0 && d.Media.MaxImages == 0:
		add("%s does not accept images here.", d.Name)
	case images > d.Media.MaxImages:
		add("Too many images: %d; %s accepts at most %d.", images, d.Name, d.Media.MaxImages)
	case videos > d.Media.MaxVideos:
		add("Too many videos: %d; %s accepts at most %d.", videos, d.Name, d.Media.MaxVideos)
	case images > 0 && videos > 0 && !d.Media.Mixed:
		add("%s does not accept images and videos together.", d.Name)
	}
}
