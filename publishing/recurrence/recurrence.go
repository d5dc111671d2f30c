// Package recurrence computes when a repeated post is due, according to the wall clock in its time
// zone.
package recurrence

import "time"

// lastYear bounds every recurrence: no occurrence is later than this year, in UTC.
const lastYear = 2200

// maxShift is more than the largest offset from UTC. No zone changes its clocks twice within
// 2*maxShift.
const maxShift = 16 * time.Hour

// Rule says when a post is repeated: every Days days, at one wall-clock time in one time zone. A
// wall-clock time that the zone skips is moved later by the size of the jump. If a wall-clock time
// occurs twice, the first occurrence is used.
//
// A Rule does no I/O; the caller loads the zone (tenancy.LoadZone).
type Rule struct {
	// Anchor is the wall-clock time of occurrence Base, expressed as a time in UTC.
	Anchor time.Time
	Zone   *time.Location
	// Days is the number of days between occurrences, at least 1.
	Days int
	// Base is the number of the occurrence at the anchor. Earlier numbers belong to the rule that
	// this one replaced.
	Base int
	// Until is the latest time of an occurrence; nil means no end.
	Until *time.Time
	// Count is the number of occurrences from Base on, including skipped ones; 0 means no end.
	Count int
}

// WallClock returns the wall-clock time in the zone at an instant, expressed as a time in UTC like
// Rule.Anchor.
func WallClock(at time.Time, zone *time.Location) time.Time {
	l := at.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), time.UTC)
}

// At returns when an occurrence is due, even if the recurrence does not include the occurrence.
// Instants never decrease as the number grows. Two instants are equal only if a zone skips a whole
// day, as Samoa did.
func (r Rule) At(number int) time.Time {
	return Instant(r.Anchor.AddDate(0, 0, (number-r.Base)*r.Days), r.Zone)
}

// Has reports whether the recurrence includes this occurrence: its number is at least Base, and it
// is neither past the end of the recurrence nor after the year 2200.
func (r Rule) Has(number int) bool {
	if number < r.Base || r.Count > 0 && number-r.Base >= r.Count {
		return false
	}
	at := r.At(number)
	return at.Year() <= lastYear && (r.Until == nil || !at.After(*r.Until))
}

// FirstAfter returns the number of the first occurrence after t, from Base on, even if that
// occurrence is past the end of the recurrence. The cost does not depend on how far t is from the
// anchor.
func (r Rule) FirstAfter(t time.Time) int {
	const day = 24 * 60 * 60
	// An instant is less than two days from its wall-clock time read as UTC: the difference is at
	// most an offset and a skipped day.
	estimate := (t.Unix()-r.Anchor.Unix())/(int64(r.Days)*day) - 3
	number := r.Base + int(max(estimate, 0))
	for !r.At(number).After(t) {
		number++
	}
	return number
}

// Instant returns when clocks in a zone show a wall-clock time.
//
// time.Date does not guarantee which of two offsets it uses. Instant uses the offset before the
// change, which yields the first of two instants and moves a skipped time by the size of the jump.
// It avoids time.Time.ZoneBounds, which returns an end in the past on the last day of a leap year.
func Instant(wall time.Time, zone *time.Location) time.Time {
	before, after := OffsetAt(wall.Add(-maxShift), zone), OffsetAt(wall.Add(maxShift), zone)
	first, second := wall.Add(-before), wall.Add(-after)
	if OffsetAt(first, zone) != before && OffsetAt(second, zone) == after {
		return second // after the change
	}
	return first // before it, or skipped by it
}

// OffsetAt returns how far clocks in the zone are ahead of UTC at an instant.
func OffsetAt(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
