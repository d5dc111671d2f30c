package publishing

import (
	"time"

	"crier/publishing/recurrence"
	"crier/tenancy"
)

// FailuresToStop is the number of consecutive failed occurrences that ends a series.
const FailuresToStop = 2

// StopReason is why a series has no further occurrences. A CHECK constraint of the table carries
// the same list.
type StopReason string

const (
	// StopEnded means that the recurrence reached its end, or that the channel was disconnected.
	StopEnded StopReason = "ended"
	// StopFailed means that FailuresToStop consecutive occurrences failed.
	StopFailed StopReason = "failed"
	// StopDeleted means that a person deleted the series.
	StopDeleted StopReason = "deleted"
)

// OccurrenceState is how a stored occurrence counts for its series.
type OccurrenceState string

const (
	// OccurrenceOpen means that the occurrence has not ended.
	OccurrenceOpen OccurrenceState = "open"
	// OccurrencePublished resets the count of failures.
	OccurrencePublished OccurrenceState = "published"
	// OccurrenceFailed counts toward FailuresToStop.
	OccurrenceFailed OccurrenceState = "failed"
	// OccurrencePassedBy means that the occurrence was deleted, or was missed during a pause. It
	// counts as neither failure nor success.
	OccurrencePassedBy OccurrenceState = "passed_by"
)

// StoredOccurrence is an occurrence that has a row.
type StoredOccurrence struct {
	// Number is the number of the occurrence in the series; the first is 0.
	Number int
	State  OccurrenceState
}

// Series is a repeated post. Exactly one of its occurrences is current, and that one is stored.
// When it has ended, the next occurrence becomes current and is stored if it is not stored yet.
type Series struct {
	recurrence.Rule
	// Number is the number of the current occurrence.
	Number int
	// Failures is the number of consecutive failures before the current occurrence.
	Failures int
	// Connected is set while its channel exists.
	Connected bool
}

// Progress is the result of Series.Advance.
type Progress struct {
	// Number is the number of the new current occurrence.
	Number int
	// Failures is the number of consecutive failures before it.
	Failures int
	// Write is set if occurrence Number has no row yet.
	Write bool
	// Stop is set if no occurrence follows. Number is then the last one.
	Stop StopReason
}

// Advance returns the occurrence that becomes current. That is the same one while it is open,
// otherwise the next one that is stored and open, or that is later than now. Earlier occurrences
// without a row are skipped.
//
// stored holds the stored occurrences from the current one on, in the order of their numbers.
// Advance is pure, so repeating a call after a crash returns the same result.
func (s Series) Advance(stored []StoredOccurrence, now time.Time) Progress {
	p := Progress{Number: s.Number, Failures: s.Failures}
	state := OccurrencePassedBy // a current occurrence without a row was skipped
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

// SeriesRef identifies a series. It includes the organization because EndedSeries finds series of
// all organizations, while Advance works within one.
type SeriesRef struct {
	Org    tenancy.OrgID `db:"org_id"`
	Series SeriesID      `db:"id"`
}
