package scheduler_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/scheduler"
	"crier/publishing/scheduler/dispatch"
)

var cfg = scheduler.Config{PlatformTimeout: 10 * time.Second, SettleDelay: 60 * time.Second, ReconcileWindow: 12 * time.Minute}

func unknownAfter(grade publishing.Grade, age time.Duration, gone, ended bool, attempts int) scheduler.Unknown {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return scheduler.Unknown{HolderGone: gone, Now: now, Work: dispatch.Work{
		Channel: publishing.Channel{Grade: grade}, Committing: now.Add(-age), CallEnded: ended, ReconcileAttempts: attempts}}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const early, ripe, old = time.Second, 71 * time.Second, 13 * time.Minute
	for name, c := range map[string]struct {
		found connector.Outcome
		u     scheduler.Unknown
		want  dispatch.Result
	}{
		"a post that is found is published": {
			found: connector.Published, u: unknownAfter("C", early, false, false, 1),
			want: dispatch.ResultPublished,
		},
		"absent on A is sent again at once": {
			found: connector.NotPublished, u: unknownAfter("A", early, false, false, 1),
			want: dispatch.ResultRetry,
		},
		"absent on C waits while the sender may live": {
			found: connector.NotPublished, u: unknownAfter("C", ripe, false, false, 1),
			want: dispatch.ResultLater,
		},
		"absent on C waits while the call may arrive": {
			found: connector.NotPublished, u: unknownAfter("C", early, true, false, 1),
			want: dispatch.ResultLater,
		},
		"absent on C is sent again when the sender is gone": {
			found: connector.NotPublished, u: unknownAfter("C", ripe, true, false, 1),
			want: dispatch.ResultRetry,
		},
		"absent on C is sent again when the call has ended": {
			found: connector.NotPublished, u: unknownAfter("C", ripe, false, true, 1),
			want: dispatch.ResultRetry,
		},
		"absent on D needs more than two attempts": {
			found: connector.NotPublished, u: unknownAfter("D", ripe, true, false, 2),
			want: dispatch.ResultLater,
		},
		"absent on D three times is sent again": {
			found: connector.NotPublished, u: unknownAfter("D", ripe, true, false, 3),
			want: dispatch.ResultRetry,
		},
		"without an answer it is asked again": {
			found: connector.CannotTell, u: unknownAfter("C", ripe, true, true, 3),
			want: dispatch.ResultLater,
		},
		"without an answer for long it is given up": {
			found: connector.CannotTell, u: unknownAfter("C", old, true, true, 9),
			want: dispatch.ResultError,
		},
		"without an answer for long on A it is sent again": {
			found: connector.CannotTell, u: unknownAfter("A", old, true, true, 9),
			want: dispatch.ResultRetry,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := scheduler.Decide(c.found, c.u, cfg); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A channel may be reconnected at another server while an outcome is unknown. If the new server
// does not have the post, that proves nothing.
func TestProvesAbsence_NeedsTheServerThatGotThePost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sentTo, now string
		want        bool
	}{
		"the server it was sent to":       {sentTo: "a.example", now: "a.example", want: true},
		"another server":                  {sentTo: "a.example", now: "b.example", want: false},
		"one of several":                  {sentTo: "*", now: "a.example", want: false},
		"a server that was not noted yet": {sentTo: "", now: "a.example", want: true},
	} {
		d := unknownAfter("A", 71*time.Second, true, true, 3)
		d.Channel.Destination = tc.now
		d.Parts = []dispatch.Publication{{Phase: dispatch.PhaseCommitting, SentTo: tc.sentTo}}
		if got := scheduler.ProvesAbsence(connector.NotPublished, d, cfg); got != tc.want {
			t.Errorf("%s: ProvesAbsence returned %t, want %t", name, got, tc.want)
		}
		if got := scheduler.Decide(connector.NotPublished, d, cfg); got != dispatch.ResultRetry {
			t.Errorf("%s: got %s, want %s under the same key", name, got, dispatch.ResultRetry)
		}
	}
}

func TestDecide_NeverResendsAnAbsentPostTooEarly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		grade := rapid.SampledFrom([]publishing.Grade{"C", "D"}).Draw(t, "grade")
		age := time.Duration(rapid.IntRange(0, 900).Draw(t, "seconds")) * time.Second
		gone, ended := rapid.Bool().Draw(t, "gone"), rapid.Bool().Draw(t, "ended")
		d := unknownAfter(grade, age, gone, ended, rapid.IntRange(1, 9).Draw(t, "attempts"))
		if scheduler.Decide(connector.NotPublished, d, cfg) == dispatch.ResultRetry && (age <= 70*time.Second || !gone && !ended) {
			t.Fatalf("sent again after %v, gone=%v ended=%v", age, gone, ended)
		}
		if wait := scheduler.ReconcileDelay(d, cfg); wait <= 0 || wait > 2*time.Minute {
			t.Fatalf("the next attempt is after %v, want more than 0 and at most 2 minutes", wait)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100).Draw(t, "attempt")
		d := scheduler.Backoff(n, rapid.Float64Range(0, 1).Draw(t, "jitter"))
		if d < 100*time.Millisecond || d > 5*time.Minute || n < 5 && d > time.Second<<n {
			t.Fatalf("the wait after try %d is %v, want 100 ms to 5 minutes, and at most %v", n, d, time.Second<<min(n, 5))
		}
	})
}
