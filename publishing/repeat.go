package publishing

import (
	"time"

	"crier/platform/id"
)

// The limits of a repetition.
const (
	MaxInterval    = 365 // days
	MaxOccurrences = 10_000
)

// Repeat says how a post repeats: every so many days at the same wall-clock time in its channel's zone, anchored to its date.
type Repeat struct {
	Days  int        // 0 = once
	Until *time.Time // no occurrence is later; nil = for ever
	Count int        // occurrences in all, with the first and with skipped ones; 0 = no end
}

func (r Repeat) validate(date time.Time, add func(name, format string, args ...any)) {
	if r.Days < 0 || r.Days > MaxInterval {
		add("inter", "must be 0 to %d days", MaxInterval)
	}
	if r.Count < 0 || r.Count > MaxOccurrences {
		add("interCount", "must be 1 to %d occurrences", MaxOccurrences)
	}
	if r.Until != nil && !date.IsZero() && r.Until.Before(date) {
		add("interUntil", "must not be before date")
	}
	if r.Days == 0 && r.Until != nil {
		add("interUntil", "needs inter")
	}
	if r.Days == 0 && r.Count != 0 {
		add("interCount", "needs inter")
	}
}

// Occurrence is the id of what belongs to the nth occurrence of a series, made of the same thing's id in the first: a later occurrence has its id before it is stored.
func Occurrence[T any](first id.ID[T], nth int) id.ID[T] {
	u := first.UUID()
	for i := range 4 {
		u[12+i] ^= byte(nth >> (24 - 8*i))
	}
	return id.FromUUID[T](u)
}
