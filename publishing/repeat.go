package publishing

import (
	"time"

	"crier/platform/id"
)

// The largest Days and Count of a Repeat.
const (
	MaxInterval    = 365 // days
	MaxOccurrences = 10_000
)

// Repeat says how a post repeats: every Days days, at the wall-clock time of the post's date in the
// channel's time zone.
type Repeat struct {
	// Days is the number of days between two occurrences; 0 means that the post does not repeat.
	Days int
	// Until is the latest possible time of an occurrence; nil means no end.
	Until *time.Time
	// Count is the number of occurrences, including the first one and any skipped ones; 0 means no
	// limit.
	Count int
}

func (r Repeat) validate(date time.Time, add func(name, format string, args ...any)) {
	if r.Days < 0 || r.Days > MaxInterval {
		add("repeat.days", "must be 0 to %d days", MaxInterval)
	}
	if r.Count < 0 || r.Count > MaxOccurrences {
		add("repeat.count", "must be 1 to %d occurrences", MaxOccurrences)
	}
	if r.Until != nil && !date.IsZero() && r.Until.Before(date) {
		add("repeat.until", "must not be before date")
	}
	if r.Days == 0 && r.Until != nil {
		add("repeat.until", "is allowed only for a repeated post: the number of days is missing")
	}
	if r.Days == 0 && r.Count != 0 {
		add("repeat.count", "is allowed only for a repeated post: the number of days is missing")
	}
}

// Occurrence returns an object's id in the nth occurrence. first is the id of the same object in
// the first occurrence. The ids of later occurrences are therefore known before the occurrences are
// stored. Applying Occurrence twice with the same number returns the original id.
func Occurrence[T any](first id.ID[T], nth int) id.ID[T] {
	u := first.UUID()
	for i := range 4 {
		u[12+i] ^= byte(nth >> (24 - 8*i))
	}
	return id.FromUUID[T](u)
}
