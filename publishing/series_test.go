package publishing_test

import (
	"testing"
	"time"

	"crier/publishing"
)

func TestSeries_Advance(t *testing.T) {
	t.Parallel()
	const open, out, failed, passed = publishing.OccurrenceOpen, publishing.OccurrencePublished, publishing.OccurrenceFailed, publishing.OccurrencePassedBy
	type stored = publishing.StoredOccurrence
	at := func(number int, state publishing.OccurrenceState) stored { return stored{Number: number, State: state} }
	anchor := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return anchor.AddDate(0, 0, n).Add(time.Minute) } // a minute after number n
	until := anchor.AddDate(0, 0, 1)
	daily := publishing.Recurrence{Anchor: anchor, Zone: time.UTC, Days: 1}
	with := func(change func(*publishing.Recurrence)) publishing.Recurrence {
		r := daily
		change(&r)
		return r
	}
	for _, c := range []struct {
		name     string
		rule     publishing.Recurrence
		number   int
		failures int
		gone     bool // the channel
		stored   []stored
		now      time.Time
		want     publishing.Progress
	}{
		{"an open one stays current", daily, 0, 1, false, []stored{at(0, open)}, day(9), publishing.Progress{Number: 0, Failures: 1}},
		{"a published one is followed", daily, 0, 1, false, []stored{at(0, out)}, day(0), publishing.Progress{Number: 1, Write: true}},
		{"a first failure too", daily, 0, 0, false, []stored{at(0, failed)}, day(0), publishing.Progress{Number: 1, Failures: 1, Write: true}},
		{"a second in a row stops", daily, 4, 1, false, []stored{at(4, failed)}, day(4), publishing.Progress{Number: 4, Failures: 2, Stop: publishing.StopFailed}},
		{"a skipped one counts neither way", daily, 4, 1, false, []stored{at(4, passed)}, day(4), publishing.Progress{Number: 5, Failures: 1, Write: true}},
		{"one without a row too", daily, 4, 1, false, nil, day(4), publishing.Progress{Number: 5, Failures: 1, Write: true}},
		{"what was missed by then is left out", daily, 0, 0, false, []stored{at(0, out)}, day(10_000), publishing.Progress{Number: 10_001, Write: true}},
		{"but not what is stored", daily, 0, 0, false, []stored{at(0, out), at(3, open)}, day(9), publishing.Progress{Number: 3}},
		{"a stored one beyond is not taken early", daily, 0, 0, false, []stored{at(0, out), at(7, open)}, day(2), publishing.Progress{Number: 3, Write: true}},
		{"the next is stored", daily, 0, 0, false, []stored{at(0, out), at(1, open)}, day(0), publishing.Progress{Number: 1}},
		{"the next has ended already", daily, 0, 0, false, []stored{at(0, out), at(1, out), at(2, passed)}, day(0), publishing.Progress{Number: 3, Write: true}},
		{"two failures that ended out of turn", daily, 0, 0, false, []stored{at(0, failed), at(1, passed), at(2, failed)}, day(0), publishing.Progress{Number: 2, Failures: 2, Stop: publishing.StopFailed}},
		{"two failures with a success between", daily, 0, 0, false, []stored{at(0, failed), at(1, out), at(2, failed)}, day(0), publishing.Progress{Number: 3, Failures: 1, Write: true}},
		{"the count ends it", with(func(r *publishing.Recurrence) { r.Count = 2 }), 1, 0, false, []stored{at(1, out)}, day(1), publishing.Progress{Number: 1, Stop: publishing.StopEnded}},
		{"the moment ends it", with(func(r *publishing.Recurrence) { r.Until = &until }), 1, 0, false, []stored{at(1, out)}, day(1), publishing.Progress{Number: 1, Stop: publishing.StopEnded}},
		{"it ended while it was missed", with(func(r *publishing.Recurrence) { r.Count = 5 }), 0, 0, false, []stored{at(0, out)}, day(300), publishing.Progress{Number: 0, Stop: publishing.StopEnded}},
		{"its channel is gone", daily, 0, 0, true, []stored{at(0, out)}, day(0), publishing.Progress{Number: 0, Stop: publishing.StopEnded}},
		{"numbers before the base are not used again", with(func(r *publishing.Recurrence) { r.Base = 9 }), 5, 0, false, []stored{at(5, out)}, day(-9), publishing.Progress{Number: 10, Write: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := publishing.Series{Recurrence: c.rule, Number: c.number, Failures: c.failures, Connected: !c.gone}
			if got := s.Advance(c.stored, c.now); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
