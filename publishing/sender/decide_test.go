package sender_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/sender"
)

var cfg = sender.Config{RequestDeadline: 10 * time.Second, SettleTime: 60 * time.Second, UnknownFor: 12 * time.Minute}

func doubt(grade publishing.Grade, age time.Duration, gone, ended bool, looks int) sender.Doubt {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return sender.Doubt{HolderGone: gone, Now: now, Work: publishing.Work{
		Channel: publishing.Channel{Grade: grade}, Committing: now.Add(-age), CallEnded: ended, Looks: looks}}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const early, ripe, old = time.Second, 71 * time.Second, 13 * time.Minute
	for name, c := range map[string]struct {
		found connector.Outcome
		d     sender.Doubt
		want  publishing.Result
	}{
		"found is found, whoever sent it":                {connector.Published, doubt("C", early, false, false, 1), publishing.ResultPublished},
		"absent on A goes again at once":                 {connector.NotPublished, doubt("A", early, false, false, 1), publishing.ResultRetry},
		"absent on C waits while the sender may live":    {connector.NotPublished, doubt("C", ripe, false, false, 1), publishing.ResultLater},
		"absent on C waits while the call may arrive":    {connector.NotPublished, doubt("C", early, true, false, 1), publishing.ResultLater},
		"absent on C goes again once the sender is gone": {connector.NotPublished, doubt("C", ripe, true, false, 1), publishing.ResultRetry},
		"absent on C goes again once the call has ended": {connector.NotPublished, doubt("C", ripe, false, true, 1), publishing.ResultRetry},
		"absent on D needs more than two looks":          {connector.NotPublished, doubt("D", ripe, true, false, 2), publishing.ResultLater},
		"absent on D thrice":                             {connector.NotPublished, doubt("D", ripe, true, false, 3), publishing.ResultRetry},
		"no answer is asked for again":                   {connector.CannotTell, doubt("C", ripe, true, true, 3), publishing.ResultLater},
		"no answer for long is given up":                 {connector.CannotTell, doubt("C", old, true, true, 9), publishing.ResultError},
		"no answer for long on A goes again":             {connector.CannotTell, doubt("A", old, true, true, 9), publishing.ResultRetry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sender.Decide(c.found, c.d, cfg); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A channel may be connected with another server while an outcome is unknown. What that server lacks proves nothing.
func TestProves_OnlyWhatTheSameServerSays(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sentTo, now string
		want        bool
	}{
		"the server it was sent to":       {"a.example", "a.example", true},
		"another server":                  {"a.example", "b.example", false},
		"one of several":                  {"*", "a.example", false},
		"a server that was not noted yet": {"", "a.example", true},
	} {
		d := doubt("A", 71*time.Second, true, true, 3)
		d.Channel.Destination = tc.now
		d.Parts = []publishing.Publication{{Phase: publishing.PhaseCommitting, SentTo: tc.sentTo}}
		if got := sender.Proves(connector.NotPublished, d, cfg); got != tc.want {
			t.Errorf("%s proves an absence: %t", name, got)
		}
		if got := sender.Decide(connector.NotPublished, d, cfg); got != publishing.ResultRetry {
			t.Errorf("%s: %s, want it to be sent again under its key", name, got)
		}
	}
}

func TestAnAbsentPostIsNeverSentAgainTooEarly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		grade := rapid.SampledFrom([]publishing.Grade{"C", "D"}).Draw(t, "grade")
		age := time.Duration(rapid.IntRange(0, 900).Draw(t, "seconds")) * time.Second
		gone, ended := rapid.Bool().Draw(t, "gone"), rapid.Bool().Draw(t, "ended")
		d := doubt(grade, age, gone, ended, rapid.IntRange(1, 9).Draw(t, "looks"))
		if sender.Decide(connector.NotPublished, d, cfg) == publishing.ResultRetry && (age <= 70*time.Second || !gone && !ended) {
			t.Fatalf("sent again after %v, gone=%v ended=%v", age, gone, ended)
		}
		if wait := sender.NextLook(d, cfg); wait <= 0 || wait > 2*time.Minute {
			t.Fatalf("next look in %v", wait)
		}
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100).Draw(t, "attempt")
		d := sender.Backoff(n, rapid.Float64Range(0, 1).Draw(t, "jitter"))
		if d < 100*time.Millisecond || d > 5*time.Minute || n < 5 && d > time.Second<<n {
			t.Fatalf("%v after try %d", d, n)
		}
	})
}
