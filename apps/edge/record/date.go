package record

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"crier/platform/paste"
	"crier/publishing"
	"crier/tenancy"
)

const (
	maxSentDate = 256 // bytes, including characters that clipboards add and tags in brackets
	maxDate     = 64  // bytes, without these characters and tags
	day         = 24 * 60 * 60
)

// These patterns match a week date, an ordinal date, and the time 24:00 at the end of a day.
var (
	weekDate    = regexp.MustCompile(`^(\d{4})(?:-W(\d\d)-([1-7])|W(\d\d)([1-7]))($|[T ])`)
	ordinalDate = regexp.MustCompile(`^(\d{4})-?(\d{3})($|[T ])`)
	endOfDay    = regexp.MustCompile(`([T ])24(:?00(?::?00(?:[.,]0+)?)?)($|[Z+-])`)
)

// calendarDate returns s with a week date or an ordinal date rewritten as a calendar date. It
// returns any other s unchanged.
func calendarDate(s string) string {
	// The patterns match only digits, so Atoi cannot fail.
	number := func(digits string) int { n, _ := strconv.Atoi(digits); return n }
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

// likeCalendar formats date as a calendar date in extended or basic form, and appends rest.
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

// FormatTime formats a time as in all responses, in UTC with milliseconds. It returns "" for the
// zero time. Example: 2026-01-02T15:04:05.000Z
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(publishing.WireTime)
}

// OptionalTime formats a time like FormatTime, or returns nil if t is nil.
func OptionalTime(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := FormatTime(*t)
	return &text
}

// The rules that are reported for a value that is not a date.
const (
	NotADate   = "must be an ISO 8601 date, for example 2026-01-02T15:04:05Z"
	NotANumber = NotADate + ", not a number of seconds or milliseconds"
)

// ParseDate parses an ISO 8601 date in any form that clients send. It can be a calendar, week or
// ordinal date, in extended or basic form, with uppercase or lowercase letters. A time without an
// offset is in UTC, and a date without a time means midnight UTC. 24:00 means the end of the day. A
// leap second is read as the second after it.
//
// The offset may be followed by a time zone in brackets (RFC 9557). The time zone must agree with
// the offset, unless the offset is Z. An offset may begin with a space instead of a plus sign,
// because decoding a query turns an unescaped plus sign into a space.
//
// ParseDate returns the time in UTC. It returns false if s has none of these forms, if the year is
// not between 1 and 9999, or if the offset is a day or more.
func ParseDate(s string) (time.Time, bool) {
	t, rule := DateOrRule(s)
	return t, rule == ""
}

// DateRule returns the rule that s breaks, or "" if ParseDate accepts s.
func DateRule(s string) string {
	_, rule := DateOrRule(s)
	return rule
}

// DateOrRule is like ParseDate, but instead of false it returns the rule that s breaks. If s is
// accepted, the rule is "". The rule is worded for the client.
func DateOrRule(s string) (time.Time, string) {
	if len(s) > maxSentDate {
		return time.Time{}, NotADate
	}
	s, zone := cutZone(paste.Trim(s))
	s, ok := cleanDate(s)
	if !ok || len(s) > maxDate {
		return time.Time{}, NotADate // each layout that fails to match copies s twice
	}
	if zone != "" && !hasOffset.MatchString(s) {
		return time.Time{}, "must have an offset before the time zone in brackets, for example 2026-01-02T15:04:05+01:00[Europe/Berlin]"
	}
	s, ends := cutEndOfDay(calendarDate(s))
	s, leaps := cutLeapSecond(s)
	t, rule := parseLayouts(s)
	if ends {
		t = t.Add(day * time.Second)
	}
	switch {
	case rule != "":
	case leaps && t.UTC().Format("15:04:05") != "23:59:59":
		rule = outOfRangeRule("second")
	default:
		rule = checkZone(t, zone, strings.HasSuffix(s, "Z"))
	}
	if leaps {
		t = t.Truncate(time.Second).Add(time.Second)
	}
	if t = t.UTC(); rule == "" && (t.Year() < 1 || t.Year() > 9999) {
		rule = NotADate
	}
	if rule != "" {
		return time.Time{}, rule
	}
	return t, ""
}

// HasOffset reports whether a date that ParseDate accepts has a time with an offset, such as Z or
// +02:00. Without one, ParseDate reads the time as UTC.
func HasOffset(s string) bool {
	s, _ = cutZone(paste.Trim(s))
	s, ok := cleanDate(s)
	return ok && hasOffset.MatchString(s)
}

// cleanDate returns s in upper case, with typographic characters, such as dashes, replaced with
// their keyboard equivalents. If query decoding turned the plus sign of an offset into a space,
// cleanDate restores the plus sign.
//
// ok is false if the text after the day contains a dash other than a hyphen or a minus sign, as in
// a range of times, or white space other than a space.
func cleanDate(s string) (clean string, ok bool) {
	at := strings.IndexFunc(s, func(r rune) bool { return r == 'T' || r == 't' || r == '\uff34' || unicode.IsSpace(r) })
	if at < 0 {
		return strings.ToUpper(paste.Figures(s)), true
	}
	_, size := utf8.DecodeRuneInString(s[at:])
	isForeign := func(r rune) bool { return unicode.Is(unicode.Pd, r) && r != '-' || unicode.IsSpace(r) && r != ' ' }
	if strings.ContainsFunc(s[at+size:], isForeign) {
		return "", false
	}
	s = paste.Figures(s)
	if i := strings.LastIndexByte(s, ' '); i > len(time.DateOnly) {
		s = s[:i] + "+" + s[i+1:]
	}
	return strings.ToUpper(s), true
}

// layouts lists the calendar date formats that ParseDate accepts.
var layouts = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04",
	"2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04", time.DateOnly,
	"2006-01-02T15:04:05.999999999Z07", "2006-01-02T15:04Z07",
	"20060102T150405Z0700", "20060102T150405Z07", "20060102T150405", "20060102",
}

var manyDigits = regexp.MustCompile(`^-?\d{9,}(\.\d*)?$`)

// parseLayouts parses s with the first layout that matches. It returns the time with its offset, or
// the rule that s breaks.
func parseLayouts(s string) (time.Time, string) {
	if manyDigits.MatchString(s) {
		return time.Time{}, NotANumber
	}
	if weekDate.MatchString(s) {
		return time.Time{}, outOfRangeRule("week")
	}
	if ordinalDate.MatchString(s) {
		return time.Time{}, outOfRangeRule("day")
	}
	rule := NotADate
	for _, layout := range layouts {
		t, err := time.Parse(layout, s)
		if err != nil {
			if part, found := outOfRange(err); found && rule == NotADate {
				rule = outOfRangeRule(part)
			}
			continue
		}
		if _, seconds := t.Zone(); seconds <= -day || seconds >= day {
			return time.Time{}, "must have an offset of less than 24 hours"
		}
		return t, ""
	}
	return time.Time{}, rule
}

func outOfRangeRule(part string) string {
	return "must be a valid date and time: the " + part + " is out of range"
}

// outOfRange returns the part of a date, such as "day", that time.Parse reports as out of range.
func outOfRange(err error) (part string, found bool) {
	var wrong *time.ParseError
	if !errors.As(err, &wrong) {
		return "", false
	}
	return strings.CutSuffix(strings.TrimPrefix(wrong.Message, ": "), " out of range")
}

var (
	hasOffset  = regexp.MustCompile(`[T ].*(Z|[+-]\d\d(:?\d\d)?)$`)
	inBrackets = regexp.MustCompile(`^([^\[]*)(?:\[!?([^\[\]=]+)\])?(?:\[[^\[\]=]+=[^\[\]]*\])*$`)
	prefixed   = regexp.MustCompile(`^(?:GMT|UTC|UT)([+-])`)
	leapSecond = regexp.MustCompile(`([T ]\d\d:?\d\d:?)60([.,]\d+)?($|[Z+-])`)
)

// cutZone removes the time zone in brackets, and any tags after it, from the end of a date. zone is
// "" if there is none.
func cutZone(s string) (rest, zone string) {
	if m := inBrackets.FindStringSubmatch(s); m != nil {
		return strings.TrimSpace(m[1]), m[2]
	}
	return s, ""
}

// checkZone returns the rule that zone breaks, or "" if it breaks none. The zone must exist, and
// its offset at t must be the offset that was sent. If utc is true, the offset was sent as Z and is
// not compared, because Z means that the local offset is unknown (RFC 9557).
//
// The zone may be an offset in the form that Java writes, such as GMT+01:00 or UTC+01:00.
func checkZone(t time.Time, zone string, utc bool) string {
	if zone == "" {
		return ""
	}
	known, err := tenancy.LoadZone(prefixed.ReplaceAllString(zone, "$1"))
	if err != nil {
		return "must name an existing time zone in brackets, for example [Europe/Berlin]"
	}
	_, has := t.In(known).Zone()
	if _, sent := t.Zone(); sent != has && !utc {
		return "must have the offset that the time zone in brackets has on that date"
	}
	return ""
}

// cutLeapSecond returns s with second 60 replaced by 59, and whether it was replaced.
func cutLeapSecond(s string) (out string, leaps bool) {
	out = leapSecond.ReplaceAllString(s, "${1}59$3")
	return out, out != s
}
