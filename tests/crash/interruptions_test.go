package main

import (
	"fmt"
	"strings"
	"testing"
)

// paused returns an acknowledged pause of the account and its resume.
func paused(from, to, inFlight int) []line {
	accounts := []string{"account"}
	return []line{
		{At: at(from), Do: doPause, Ask: true, Key: fmt.Sprint("pause", from), Accounts: accounts},
		{At: at(from), Do: doPause, Key: fmt.Sprint("pause", from), Status: 200, InFlight: inFlight},
		{At: at(to), Do: doResume, Ask: true, Key: fmt.Sprint("resume", to), Accounts: accounts},
		{At: at(to), Do: doResume, Key: fmt.Sprint("resume", to), Status: 200},
	}
}

func left(when, status int) []line {
	return []line{
		{At: at(when), Do: doDisconnect, Ask: true, Key: "disconnect", Accounts: []string{"account"}},
		{At: at(when), Do: doDisconnect, Key: "disconnect", Status: status},
	}
}

// interruption has a ledger, the texts that the platform received from a given time on, and the
// expected verdict.
type interruption struct {
	lines []line
	from  int // time of the first call
	texts []string
	want  verdict
}

func checkInterruptions(t *testing.T, cases map[string]interruption) {
	t.Helper()
	for name, c := range cases {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			account := "account"
			if name == "another account" {
				account = "another"
			}
			got := judge(c.lines, live(t, account, c.from, c.texts...))
			c.want.Suite, c.want.Posts, c.want.Met, c.want.findings = got.Suite, got.Posts, got.Met, got.findings
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %+v\nwant %+v\n%s", got, c.want, got.findings)
			}
		})
	}
}

func TestJudge_Pauses(t *testing.T) {
	t.Parallel()
	first, second := booked(1, "A", 10), booked(2, "A", 11)
	out := join(ended(1, "PUBLISHED", ""), ended(2, "PUBLISHED", ""))
	// The lost line is an unanswered attempt of the earlier resume.
	lost := line{At: at(4), Do: doResume, Key: "resume4", Status: 0}
	checkInterruptions(t, map[string]interruption{
		"held": {lines: join(first, paused(9, 20, 0), ended(1, "PUBLISHED", "")), from: 21, texts: []string{one}, want: verdict{}},
		"due in the pause and sent": {
			lines: join(first, paused(9, 20, 0), ended(1, "PUBLISHED", "")), from: 15, texts: []string{one},
			want: verdict{SentWhilePaused: 1},
		},
		"never resumed and sent": {
			lines: join(first, paused(9, 20, 0)[:2], ended(1, "PUBLISHED", "")), from: 500, texts: []string{one},
			want: verdict{SentWhilePaused: 1},
		},
		"was in flight": {lines: join(first, paused(12, 20, 1), ended(1, "PUBLISHED", "")), from: 13, texts: []string{one}, want: verdict{}},
		"was not in flight": {
			lines: join(first, paused(12, 20, 0), ended(1, "PUBLISHED", "")), from: 13, texts: []string{one},
			want: verdict{SentWhilePaused: 1},
		},
		"more than were in flight": {
			lines: join(first, second, paused(12, 20, 1), out), from: 13, texts: []string{one, two},
			want: verdict{SentWhilePaused: 1},
		},
		"never out of the pause": {lines: join(first, paused(9, 20, 0), ended(1, "QUEUE", "")), want: verdict{Lost: 1}},
		"a pause that failed": {
			lines: join(first, paused(9, 20, 0)[0], line{At: at(9), Do: doPause, Key: "pause9", Status: 503}, ended(1, "PUBLISHED", "")),
			from:  15, texts: []string{one},
			want: verdict{},
		},
		"an earlier resume may open": {
			lines: join(first, paused(3, 4, 0)[:3], lost, paused(3, 4, 0)[3], paused(9, 20, 0), ended(1, "PUBLISHED", "")),
			from:  15, texts: []string{one},
			want: verdict{},
		},
		"another pause": {
			lines: join(first, paused(3, 4, 0), paused(9, 20, 0), ended(1, "PUBLISHED", "")), from: 15,
			texts: []string{one},
			want:  verdict{SentWhilePaused: 1},
		},
		"another account": {
			lines: join(first, paused(9, 20, 0), ended(1, "PUBLISHED", "")), from: 15, texts: []string{one},
			want: verdict{WrongContent: 1},
		},
		"one by one after long": {lines: join(first, second, paused(9, 200, 0), out), from: 201, texts: []string{one, two}, want: verdict{}},
	})
}

func TestJudge_Disconnects(t *testing.T) {
	t.Parallel()
	first := booked(1, "A", 10)
	checkInterruptions(t, map[string]interruption{
		"gone with its channel":  {lines: join(first, left(0, 200), ended(1, "GONE", "")), want: verdict{}},
		"gone by an earlier try": {lines: join(first, left(0, 404), ended(1, "GONE", "")), want: verdict{}},
		"sent after the disconnect": {
			lines: join(first, left(0, 200), ended(1, "GONE", "")), from: 11, texts: []string{one},
			want: verdict{SentAfterStop: 1},
		},
		"in flight at the disconnect": {lines: join(first, left(11, 200), ended(1, "GONE", "")), from: 12, texts: []string{one}, want: verdict{}},
		"long after the disconnect": {
			lines: join(first, left(11, 200), ended(1, "GONE", "")), from: 60, texts: []string{one},
			want: verdict{SentAfterStop: 1},
		},
		"out before the disconnect":   {lines: join(first, left(20, 200), ended(1, "PUBLISHED", "")), from: 11, texts: []string{one}, want: verdict{}},
		"still there":                 {lines: join(first, left(0, 200), ended(1, "QUEUE", "")), want: verdict{LeftBehind: 1}},
		"an error by the disconnect":  {lines: join(first, left(11, 200), ended(1, "ERROR", "rejected")), want: verdict{FalseFailed: 1}},
		"a disconnect without answer": {lines: join(first, left(0, 0), ended(1, "GONE", "")), want: verdict{}},
		"a disconnect that failed":    {lines: join(first, ended(1, "GONE", "")), want: verdict{Lost: 1}},
	})
}

func TestJudge_BurstAfterLongPause(t *testing.T) {
	t.Parallel()
	journal := live(t, "account", 201, "post 1 as booked", "post 2 as booked")
	journal[2].At = journal[1].At.Add(lateGap / 2)
	lines := join(booked(1, "A", 10), booked(2, "A", 11), paused(9, 200, 0), ended(1, "PUBLISHED", ""), ended(2, "PUBLISHED", ""))
	if v := judge(lines, journal); v.Bursts != 1 || v.clean() {
		t.Fatalf("got %+v, want one burst", v)
	}
	short := join(booked(1, "A", 10), booked(2, "A", 11), paused(9, 100, 0), ended(1, "PUBLISHED", ""), ended(2, "PUBLISHED", ""))
	if v := judge(short, journal); !v.clean() {
		t.Fatalf("got %+v, want no finding after a short pause", v)
	}
}
