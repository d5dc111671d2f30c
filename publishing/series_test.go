package publishing_test

import (
	"testing"
	"time"

	"crier/publishing"
	"crier/publishing/recurrence"
)

// The states of stored occurrences.
const (
	stillOpen = publishing.OccurrenceOpen
	out       = publishing.OccurrencePublished
	failed    = publishing.OccurrenceFailed
	passed    = publishing.OccurrencePassedBy
)

type stored = publishing.StoredOccurrence

func at(number int, state publishing.OccurrenceState) stored {
	return stored{Number: number, State: state}
}

// daily begins on a fixed day and has no end.
var daily = recurrence.Rule{Anchor: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), Zone: time.UTC, Days: 1}

// day returns the time one minute after number n of daily.
func day(n int) time.Time { return daily.Anchor.AddDate(0, 0, n).Add(time.Minute) }

// dailyWith returns daily with a change.
func dailyWith(change func(*recurrence.Rule)) recurrence.Rule {
	r := daily
	change(&r)
	return r
}

// advance is a series with its stored occurrences and the progress that it must make.
type advance struct {
	name     string
	rule     recurrence.Rule
	number   int
	failures int
	gone     bool // the channel is gone
	stored   []stored
	now      time.Time
	want     publishing.Progress
}

func checkAdvances(t *testing.T, all []advance) {
	t.Helper()
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := publishing.Series{Rule: c.rule, Number: c.number, Failures: c.failures, Connected: !c.gone}
			if got := s.Advance(c.stored, c.now); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestSeries_AdvanceFollowsEndedOccurrences(t *testing.T) {
	t.Parallel()
	checkAdvances(t, []advance{
		{
			name: "an open one stays current", rule: daily, failures: 1, stored: []stored{at(0, stillOpen)},
			now:  day(9),
			want: publishing.Progress{Number: 0, Failures: 1},
		},
		{
			name: "a published one is followed", rule: daily, failures: 1, stored: []stored{at(0, out)},
			now:  day(0),
			want: publishing.Progress{Number: 1, Write: true},
		},
		{
			name: "one without a row is followed", rule: daily, number: 4, failures: 1, now: day(4),
			want: publishing.Progress{Number: 5, Failures: 1, Write: true},
		},
		{
			name: "what was missed by then is left out", rule: daily, stored: []stored{at(0, out)},
			now:  day(10_000),
			want: publishing.Progress{Number: 10_001, Write: true},
		},
		{name: "a stored one is not left out", rule: daily, stored: []stored{at(0, out), at(3, stillOpen)}, now: day(9), want: publishing.Progress{Number: 3}},
		{
			name: "a stored one beyond is not taken early", rule: daily,
			stored: []stored{at(0, out), at(7, stillOpen)}, now: day(2),
			want: publishing.Progress{Number: 3, Write: true},
		},
		{name: "the next is stored", rule: daily, stored: []stored{at(0, out), at(1, stillOpen)}, now: day(0), want: publishing.Progress{Number: 1}},
		{
			name: "the next has ended already", rule: daily,
			stored: []stored{at(0, out), at(1, out), at(2, passed)}, now: day(0),
			want: publishing.Progress{Number: 3, Write: true},
		},
		{
			name: "numbers before the base are not used again",
			rule: dailyWith(func(r *recurrence.Rule) { r.Base = 9 }), number: 5, stored: []stored{at(5, out)},
			now:  day(-9),
			want: publishing.Progress{Number: 10, Write: true},
		},
	})
}

func TestSeries_AdvanceStopsAfterFailures(t *testing.T) {
	t.Parallel()
	checkAdvances(t, []advance{
		{
			name: "one failure is followed", rule: daily, stored: []stored{at(0, failed)}, now: day(0),
			want: publishing.Progress{Number: 1, Failures: 1, Write: true},
		},
		{
			name: "a second in a row stops", rule: daily, number: 4, failures: 1,
			stored: []stored{at(4, failed)}, now: day(4),
			want: publishing.Progress{Number: 4, Failures: 2, Stop: publishing.StopFailed},
		},
		{
			name: "a skipped one counts neither way", rule: daily, number: 4, failures: 1,
			stored: []stored{at(4, passed)}, now: day(4),
			want: publishing.Progress{Number: 5, Failures: 1, Write: true},
		},
		{
			name: "two failures that ended out of turn", rule: daily,
			stored: []stored{at(0, failed), at(1, passed), at(2, failed)}, now: day(0),
			want: publishing.Progress{Number: 2, Failures: 2, Stop: publishing.StopFailed},
		},
		{
			name: "two failures with a success between", rule: daily,
			stored: []stored{at(0, failed), at(1, out), at(2, failed)}, now: day(0),
			want: publishing.Progress{Number: 3, Failures: 1, Write: true},
		},
	})
}

func TestSeries_AdvanceStopsAtItsEnd(t *testing.T) {
	t.Parallel()
	until := daily.Anchor.AddDate(0, 0, 1)
	checkAdvances(t, []advance{
		{
			name: "the count ends it", rule: dailyWith(func(r *recurrence.Rule) { r.Count = 2 }), number: 1,
			stored: []stored{at(1, out)}, now: day(1),
			want: publishing.Progress{Number: 1, Stop: publishing.StopEnded},
		},
		{
			name: "the moment ends it", rule: dailyWith(func(r *recurrence.Rule) { r.Until = &until }),
			number: 1, stored: []stored{at(1, out)}, now: day(1),
			want: publishing.Progress{Number: 1, Stop: publishing.StopEnded},
		},
		{
			name: "it ended while it was missed", rule: dailyWith(func(r *recurrence.Rule) { r.Count = 5 }),
			stored: []stored{at(0, out)}, now: day(300),
			want: publishing.Progress{Number: 0, Stop: publishing.StopEnded},
		},
		{
			name: "its channel is gone", rule: daily, gone: true, stored: []stored{at(0, out)}, now: day(0),
			want: publishing.Progress{Number: 0, Stop: publishing.StopEnded},
		},
	})
}
