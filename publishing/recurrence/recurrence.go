// Package recurrence computes when a repeated post is due, based on the wall clock in the post's
// time zone.
package recurrence

import "time"

// lastYear limits every recurrence. No occurrence is later than the end of this year, in UTC.
const lastYear = 2200

// maxShift is larger than any time zone's offset from UTC. No time zone changes its offset twice
// within 2*maxShift.
const maxShift = 16 * time.Hour

// Rule says when a post is repeated: every Days days, always at the same wall-clock time in the
// same time zone. If the zone skips this time on a day, the occurrence is moved later by the size
// of the jump. If the time occurs twice on a day, the first time is used.
//
// A Rule does no I/O. The caller must load the time zone with tenancy.LoadZone.
type Rule struct {
	// Anchor is the wall-clock time of the occurrence with the number Base, represented as a UTC
	// time.
	Anchor time.Time
	Zone   *time.Location
	// Days is the number of days between occurrences, at least 1.
	Days int
	// Base is the number of the occurrence at Anchor. Lower numbers belong to the rule that this
	// rule replaced.
	Base int
	// Until is the latest possible time of an occurrence; nil means no end.
	Until *time.Time
	// Count is the number of occurrences, starting with Base and including skipped ones; 0 means no
	// limit.
	Count int
}

// WallClock returns the wall-clock time in the zone at the given instant. Like Rule.Anchor, the
// result is represented as a UTC time.
func WallClock(at time.Time, zone *time.Location) time.Time {
	l := at.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), time.UTC)
}

// At returns the time at which the occurrence with the given number is due, even if the recurrence
// ends earlier. The time never decreases as the number grows. Two numbers have the same time only
// if the zone skips a whole day, as Samoa did.
func (r Rule) At(number int) time.Time {
	return Instant(r.Anchor.AddDate(0, 0, (number-r.Base)*r.Days), r.Zone)
}

// Has reports whether the recurrence includes the occurrence with the given number. The number must
// be at least Base, and the occurrence must be neither past the end of the recurrence nor after the
// year 2200.
func (r Rule) Has(number int) bool {
	if number < r.Base || r.Count > 0 && number-r.Base >= r.Count {
		return false
	}
	at := r.At(number)
	return at.Year() <= lastYear && (r.Until == nil || !at.After(*r.Until))
}

// FirstAfter returns the number of the first occurrence after t. The number is at least Base. The
// occurrence may be past the end of the recurrence. The cost does not depend on how far t is from
// the anchor.
func (r Rule) FirstAfter(t time.Time) int {
	const day = 24 * 60 * 60
	// A wall-clock time read as UTC differs from the actual instant by less than two days: by the
	// zone's offset plus at most one skipped day.
	estimate := (t.Unix()-r.Anchor.Unix())/(int64(r.Days)*day) - 3
	number := r.Base + int(max(estimate, 0))
	for !r.At(number).After(t) {
		number++
	}
	return number
}

// Instant returns the instant at which clocks in a zone show the given wall-clock time.
//
// If the clocks change, time.Date does not guarantee which of the two offsets it uses. Instant uses
// the offset before the change. This yields the first of two possible instants, and moves a skipped
// time later by the size of the jump. Instant does not use time.Time.ZoneBounds, whose end is in
// the past on the last day of a leap year.
func Instant(wall time.Time, zone *time.Location) time.Time {
	before, after := OffsetAt(wall.Add(-maxShift), zone), OffsetAt(wall.Add(maxShift), zone)
	first, second := wall.Add(-before), wall.Add(-after)
	if OffsetAt(first, zone) != before && OffsetAt(second, zone) == after {
		return second // after the change
	}
	return first // before the change, or skipped by it
}

// OffsetAt returns how far clocks in the zone are ahead of UTC at the given instant.
func OffsetAt(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
