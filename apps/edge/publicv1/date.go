package publicv1

import (
	"strings"
	"time"

	"crier/publishing"
)

const maxDate = 64 // bytes

// FormatTime returns a time in the format of all answers, UTC with milliseconds, and "" for the zero time.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(publishing.WireTime)
}

// ParseDate parses ISO 8601 in the forms that clients send: extended or basic, with an offset, without one (then it is
// UTC), or the date alone (midnight UTC), with letters in either case. It returns the time in UTC, and false if s has
// none of these forms or the year is not 1 to 9999. The plus of an offset may be a space, because an unescaped plus in
// a query is decoded to one.
func ParseDate(s string) (time.Time, bool) {
	if len(s) > maxDate {
		return time.Time{}, false // each layout that does not match copies s twice
	}
	if i := strings.LastIndexByte(s, ' '); i > len(time.DateOnly) {
		s = s[:i] + "+" + s[i+1:]
	}
	s = strings.ToUpper(s)
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
		"2006-01-02T15:04Z07:00", "2006-01-02T15:04",
		"2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04", time.DateOnly,
		"2006-01-02T15:04:05.999999999Z07", "2006-01-02T15:04Z07",
		"20060102T150405Z0700", "20060102T150405Z07", "20060102T150405", "20060102",
	} {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		t = t.UTC()
		if t.Year() < 1 || t.Year() > 9999 {
			return time.Time{}, false
		}
		return t, true
	}
	return time.Time{}, false
}
