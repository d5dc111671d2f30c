package publishing

import "time"

// FailuresToStop is after how many failures in a row a post is not repeated any more.
const FailuresToStop = 2

// StopReason says why a series has no further occurrences. A CHECK constraint of the table carries the same list.
type StopReason string

// The reasons.
const (
	StopEnded   StopReason = "ended"   // its end is reached, or its channel is gone
	StopFailed  StopReason = "failed"  // too many occurrences failed in a row
	StopDeleted StopReason = "deleted" // by a person
)

// OccurrenceState is how a stored occurrence counts for its series.
type OccurrenceState string

// The states of occurrences.
const (
	OccurrenceOpen      OccurrenceState = "open"      // it has not ended
	OccurrencePublished OccurrenceState = "published" // it ends a row of failures
	OccurrenceFailed    OccurrenceState = "failed"
	OccurrencePassedBy  OccurrenceState = "passed_by" // deleted, or missed during a pause: neither a failure nor a success
)

// StoredOccurrence is an occurrence that has a row.
type StoredOccurrence struct {
	Number int
	State  OccurrenceState
}

// Series is a repeated post. Exactly one of its occurrences is the current one: it is stored, and the next one
// becomes current, and is stored if it is not yet, when the current one has ended.
type Series struct {
	Recurrence
	// Number of the current occurrence.
	Number int
	// Failures in a row before the current occurrence.
	Failures int
	// Connected is set while its channel exists.
	Connected bool
}

// Progress is what follows in a series.
type Progress struct {
	// Number and Failures are the series' new ones.
	Number   int
	Failures int
	// Write is set when occurrence Number has no row yet.
	Write bool
	// Stop is set when nothing follows; Number is then the last occurrence.
	Stop StopReason
}

// Advance decides what follows the current occurrence: nothing new while it is open, else the next one that is stored
// and open or lies after now. Occurrences without a row whose time is past are left out, as if they had been skipped.
// The stored ones are those from the current one on, in the order of their numbers. The result depends on nothing
// else, so it may be asked again.
func (s Series) Advance(stored []StoredOccurrence, now time.Time) Progress {
	p := Progress{Number: s.Number, Failures: s.Failures}
	state := OccurrencePassedBy // of a current occurrence without a row
	if len(stored) > 0 && stored[0].Number == s.Number {
		state, stored = stored[0].State, stored[1:]
	}
	next := max(s.Number, s.Base) + 1
	for {
		switch state {
		case OccurrenceOpen:
			return p
		case OccurrencePublished:
			p.Failures = 0
		case OccurrenceFailed:
			p.Failures++
			if p.Failures >= FailuresToStop {
				p.Stop = StopFailed
				return p
			}
		}
		for len(stored) > 0 && stored[0].Number < next {
			stored = stored[1:]
		}
		fresh := len(stored) == 0 || stored[0].Number > next
		if fresh && !s.At(next).After(now) {
			next = max(next, s.FirstAfter(now))
			if len(stored) > 0 {
				next = min(next, stored[0].Number)
			}
			fresh = len(stored) == 0 || stored[0].Number > next
		}
		if !s.Connected || !s.Has(next) {
			p.Stop = StopEnded
			return p
		}
		p.Number = next
		if fresh {
			p.Write = true
			return p
		}
		state = stored[0].State
		next++
	}
}
