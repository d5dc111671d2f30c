package publicv1

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"crier/publishing"
)

const (
	maxDate = 64 // bytes
	day     = 24 * 60 * 60
)

// The forms of a date other than the calendar date, and the end of a day.
var (
	weekDate    = regexp.MustCompile(`^(\d{4})(?:-W(\d\d)-([1-7])|W(\d\d)([1-7]))($|[T ])`)
	ordinalDate = regexp.MustCompile(`^(\d{4})-?(\d{3})($|[T ])`)
	endOfDay    = regexp.MustCompile(`([T ])24(:?00(?::?00(?:[.,]0+)?)?)($|[Z+-])`)
)

// calendarDate returns s with a week date or an ordinal date rewritten as a calendar date. It
// returns any other s unchanged.
func calendarDate(s string) string {
	number := func(digits string) int { n, _ := strconv.Atoi(digits); return n } // the patterns match only digits
	if m := weekDate.FindStringSubmatch(s); m != nil {
		year, week, weekday := number(m[1]), number(m[2]+m[4]), number(m[3]+m[5])
		// January 4 is always in the first week.
		first := time.Date(year, time.January, 4, 0, 0, 0, 0, time.UTC)
		monday := first.AddDate(0, 0, -(int(first.Weekday())+6)%7)
		date := monday.AddDate(0, 0, 7*(week-1)+weekday-1)
		if y, w := date.ISOWeek(); y != year || w != week {
			return s
		}
		return likeCalendar(date, m[2] != "", s[len(m[0])-len(m[6]):])
	}
	if m := ordinalDate.FindStringSubmatch(s); m != nil {
		date := time.Date(number(m[1]), time.January, number(m[2]), 0, 0, 0, 0, time.UTC)
		if date.Year() != number(m[1]) {
			return s
		}
		return likeCalendar(date, s[4] == '-', s[len(m[0])-len(m[3]):])
	}
	return s
}

// likeCalendar returns a date in the extended or the basic form, followed by rest.
func likeCalendar(date time.Time, extended bool, rest string) string {
	if extended {
		return date.Format(time.DateOnly) + rest
	}
	return date.Format("20060102") + rest
}

// cutEndOfDay returns s with 24:00 replaced by 00:00, and whether it was replaced.
func cutEndOfDay(s string) (out string, ends bool) {
	out = endOfDay.ReplaceAllString(s, "${1}00$2$3")
	return out, out != s
}

// FormatTime returns a time in the format of all answers, UTC with milliseconds, and "" for the zero time.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(publishing.WireTime)
}

// ParseDate parses ISO 8601 in the forms that clients send: extended or basic, with an offset,
// without one (then it is UTC), or the date alone (midnight UTC), with letters in either case. The
// date may be a calendar, week or ordinal date, and 24:00 is the end of a day. It returns the time
// in UTC, or false if s has none of these forms, the year is not between 1 and 9999, or the offset
// is a day or more. The plus of an offset may be a space, because an unescaped plus in a query is
// decoded to one.
func ParseDate(s string) (time.Time, bool) {
	if len(s) > maxDate {
		return time.Time{}, false // each layout that does not match copies s twice
	}
	if i := strings.LastIndexByte(s, ' '); i > len(time.DateOnly) {
		s = s[:i] + "+" + s[i+1:]
	}
	s, ends := cutEndOfDay(calendarDate(strings.ToUpper(s)))
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
		if _, offset := t.Zone(); offset <= -day || offset >= day {
			return time.Time{}, false
		}
		if t = t.UTC(); ends {
			t = t.Add(day * time.Second)
		}
		if t.Year() < 1 || t.Year() > 9999 {
			return time.Time{}, false
		}
		return t, true
	}
	return time.Time{}, false
}
