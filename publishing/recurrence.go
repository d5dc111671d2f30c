package publishing

import "time"

// lastYear bounds every recurrence: no occurrence is later than this year, in UTC.
const lastYear = 2200

// maxShift is more than the largest offset from UTC. No zone changes its clocks twice within twice this time.
const maxShift = 16 * time.Hour

// Recurrence is the rule of a repeated post: every Days days at one wall-clock time of one time zone. A wall-clock time
// that the zone skips is moved later by the size of the jump; of one that occurs twice the first is taken. It does no
// I/O; the caller loads the zone (tenancy.LoadZone).
type Recurrence struct {
	// Anchor is the wall-clock time of occurrence Base, written as a time in UTC.
	Anchor time.Time
	Zone   *time.Location
	// Days between occurrences, at least 1.
	Days int
	// Base is the number of the occurrence at the anchor. Earlier numbers belong to the rule that this one replaced.
	Base int
	// Until is the latest time of an occurrence; nil means no end.
	Until *time.Time
	// Count is the number of occurrences from Base on, skipped ones included; 0 means no end.
	Count int
}

// WallClock returns what a clock in the zone shows at an instant, written as a time in UTC: the form of
// Recurrence.Anchor.
func WallClock(at time.Time, zone *time.Location) time.Time {
	l := at.In(zone)
	return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), l.Nanosecond(), time.UTC)
}

// At returns the instant of an occurrence, whether or not the recurrence has it. Instants never decrease with the
// number; two are equal only where a zone skips a whole day, as Samoa did.
func (r Recurrence) At(number int) time.Time {
	return instant(r.Anchor.AddDate(0, 0, (number-r.Base)*r.Days), r.Zone)
}

// Has reports whether the recurrence has an occurrence of this number: from Base on, before its end and not after the
// year 2200.
func (r Recurrence) Has(number int) bool {
	if number < r.Base || r.Count > 0 && number-r.Base >= r.Count {
		return false
	}
	at := r.At(number)
	return at.Year() <= lastYear && (r.Until == nil || !at.After(*r.Until))
}

// FirstAfter returns the smallest number, from Base on, whose instant is after t, also beyond the end of the
// recurrence. Its cost does not depend on the distance of t from the anchor.
func (r Recurrence) FirstAfter(t time.Time) int {
	const day = 24 * 60 * 60
	// An instant is less than two days away from its wall-clock time read as UTC: an offset, and a skipped day.
	estimate := (t.Unix()-r.Anchor.Unix())/(int64(r.Days)*day) - 3
	number := r.Base + int(max(estimate, 0))
	for !r.At(number).After(t) {
		number++
	}
	return number
}

// instant returns when the clocks of a zone show a wall-clock time. time.Date does not define which of two offsets it
// takes; instant takes the one before the change, which gives the first of two times, and moves a skipped time by the
// size of the jump. It does not use time.Time.ZoneBounds, which returns an end in the past on the last day of a leap
// year.
func instant(wall time.Time, zone *time.Location) time.Time {
	before, after := offsetAt(wall.Add(-maxShift), zone), offsetAt(wall.Add(maxShift), zone)
	first, second := wall.Add(-before), wall.Add(-after)
	if offsetAt(first, zone) != before && offsetAt(second, zone) == after {
		return second // after the change
	}
	return first // before it, or skipped by it
}

// offsetAt returns how far clocks in the zone are ahead of UTC at an instant.
func offsetAt(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
