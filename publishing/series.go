package publishing

import (
	"time"

	"crier/publishing/recurrence"
	"crier/tenancy"
)

// FailuresToStop is the number of consecutive failed occurrences that ends a series.
const FailuresToStop = 2

// StopReason says why a series has no further occurrences. A CHECK constraint on the table lists
// the same values.
type StopReason string

const (
	// StopEnded means that the recurrence reached its end, or that Advance found the channel
	// disconnected.
	StopEnded StopReason = "ended"
	// StopFailed means that FailuresToStop consecutive occurrences failed.
	StopFailed StopReason = "failed"
	// StopDeleted means that the series or its organization was deleted, or that a user
	// disconnected the channel.
	StopDeleted StopReason = "deleted"
)

// OccurrenceState says how a stored occurrence affects its series.
type OccurrenceState string

const (
	// OccurrenceOpen means that the occurrence has not ended.
	OccurrenceOpen OccurrenceState = "open"
	// OccurrencePublished resets the failure count.
	OccurrencePublished OccurrenceState = "published"
	// OccurrenceFailed counts toward FailuresToStop.
	OccurrenceFailed OccurrenceState = "failed"
	// OccurrencePassedBy means that the occurrence was deleted, was missed during a pause, or
	// exceeded the plan's limit. It counts neither as a failure nor as a success.
	OccurrencePassedBy OccurrenceState = "passed_by"
)

// StoredOccurrence is an occurrence that has a row.
type StoredOccurrence struct {
	// Number is the occurrence's number in the series, starting at 0.
	Number int
	State  OccurrenceState
}

// Series is a repeated post. Exactly one of its occurrences is current, and that occurrence is
// stored. When it ends, the next occurrence becomes current. If the next occurrence is not stored
// yet, it is stored then.
type Series struct {
	recurrence.Rule
	// Number is the number of the current occurrence.
	Number int
	// Failures is the number of consecutive failures before the current occurrence.
	Failures int
	// Connected is set while the channel exists.
	Connected bool
}

// Progress is the result of Series.Advance.
type Progress struct {
	// Number is the number of the new current occurrence.
	Number int
	// Failures is the number of consecutive failures before that occurrence.
	Failures int
	// Write is set if occurrence Number has no row yet.
	Write bool
	// Stop is set if no further occurrence follows. In that case, Number is the number of the last
	// occurrence.
	Stop StopReason
}

// Advance determines which occurrence becomes current. While the current occurrence is open, it
// stays current. After that, it is succeeded by the next occurrence that is either stored and open,
// or not stored yet and due after now. Past occurrences that are not stored are skipped.
//
// stored holds the stored occurrences, sorted by number and starting with the current one. Advance
// is a pure function, so repeating a call after a crash returns the same result.
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

// SeriesRef identifies a series and its organization. The organization is needed because
// EndedSeries searches all organizations, whereas Advance works within a single one.
type SeriesRef struct {
	Org    tenancy.OrgID `db:"org_id"`
	Series SeriesID      `db:"id"`
}
