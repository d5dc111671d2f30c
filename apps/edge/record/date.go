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

// These patterns match week dates, ordinal dates, and 24:00, the end of a day.
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

// likeCalendar returns a date in extended or basic form, followed by rest.
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

// FormatTime returns a time in the format of all responses, UTC with milliseconds, or "" for the
// zero time. Example: 2026-01-02T15:04:05.000Z
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(publishing.WireTime)
}

// OptionalTime formats a time like FormatTime, or returns nil for nil.
func OptionalTime(t *time.Time) *string {
	if t == nil {
		return nil
	}
	text := FormatTime(*t)
	return &text
}

// The rules that a value breaks if it is not a date.
const (
	NotADate   = "must be an ISO 8601 date, for example 2026-01-02T15:04:05Z"
	NotANumber = NotADate + ", not a number of seconds or milliseconds"
)

// ParseDate parses an ISO 8601 date in any form that clients send: extended or basic, with letters
// in either case. A time without an offset is UTC, and a date alone is midnight UTC. The date can
// be a calendar, week or ordinal date. 24:00 is the end of a day, and a leap second is read as the
// second after it.
//
// A time zone in brackets may follow the offset (RFC 9557). It must agree with the offset, unless
// the offset is Z. The plus sign of an offset may be a space, because an unescaped plus sign in a
// query is decoded to a space.
//
// ParseDate returns the time in UTC, or false if s has none of these forms, the year is not between
// 1 and 9999, or the offset is a day or more.
func ParseDate(s string) (time.Time, bool) {
	t, rule := DateOrRule(s)
	return t, rule == ""
}

// DateRule returns the rule that s breaks, or "" if ParseDate accepts s.
func DateRule(s string) string {
	_, rule := DateOrRule(s)
	return rule
}

// DateOrRule is like ParseDate, but returns the rule that s breaks, or "" if s is accepted. The
// rule is worded for the client.
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

// cleanDate returns s in upper case, with typographic characters such as dashes replaced by
// keyboard characters. It restores the plus sign of an offset if a query decoded it to a space.
//
// ok is false if a dash other than a hyphen or a minus sign follows the day, as in a range of
// times, or if white space other than a space follows the time.
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

// checkZone returns a rule if the zone does not exist or if its offset at t differs from the offset
// that was sent; otherwise it returns "". If utc is true, the offset was sent as Z. Z means that
// the local offset is unknown (RFC 9557), so the offsets are not compared.
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
