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

func TestJudge_PausesAndDisconnects(t *testing.T) {
	t.Parallel()
	const one, two = "post 1 as booked", "post 2 as booked"
	first, second := booked(1, "A", 10), booked(2, "A", 11)
	out := join(ended(1, "PUBLISHED", ""), ended(2, "PUBLISHED", ""))
	lost := line{At: at(4), Do: doResume, Key: "resume4", Status: 0} // an unanswered attempt of the earlier resume
	for name, c := range map[string]struct {
		lines []line
		from  int // of the first call
		texts []string
		want  verdict
	}{
		"held":                        {join(first, paused(9, 20, 0), ended(1, "PUBLISHED", "")), 21, []string{one}, verdict{}},
		"due in the pause and sent":   {join(first, paused(9, 20, 0), ended(1, "PUBLISHED", "")), 15, []string{one}, verdict{SentWhilePaused: 1}},
		"never resumed and sent":      {join(first, paused(9, 20, 0)[:2], ended(1, "PUBLISHED", "")), 500, []string{one}, verdict{SentWhilePaused: 1}},
		"was in flight":               {join(first, paused(12, 20, 1), ended(1, "PUBLISHED", "")), 13, []string{one}, verdict{}},
		"was not in flight":           {join(first, paused(12, 20, 0), ended(1, "PUBLISHED", "")), 13, []string{one}, verdict{SentWhilePaused: 1}},
		"more than were in flight":    {join(first, second, paused(12, 20, 1), out), 13, []string{one, two}, verdict{SentWhilePaused: 1}},
		"never out of the pause":      {join(first, paused(9, 20, 0), ended(1, "QUEUE", "")), 0, nil, verdict{Lost: 1}},
		"a pause that failed":         {join(first, paused(9, 20, 0)[0], line{At: at(9), Do: doPause, Key: "pause9", Status: 503}, ended(1, "PUBLISHED", "")), 15, []string{one}, verdict{}},
		"an earlier resume may open":  {join(first, paused(3, 4, 0)[:3], lost, paused(3, 4, 0)[3], paused(9, 20, 0), ended(1, "PUBLISHED", "")), 15, []string{one}, verdict{}},
		"another pause":               {join(first, paused(3, 4, 0), paused(9, 20, 0), ended(1, "PUBLISHED", "")), 15, []string{one}, verdict{SentWhilePaused: 1}},
		"another account":             {join(first, paused(9, 20, 0), ended(1, "PUBLISHED", "")), 15, []string{one}, verdict{WrongContent: 1}},
		"one by one after long":       {join(first, second, paused(9, 200, 0), out), 201, []string{one, two}, verdict{}},
		"gone with its channel":       {join(first, left(0, 200), ended(1, "GONE", "")), 0, nil, verdict{}},
		"gone by an earlier try":      {join(first, left(0, 404), ended(1, "GONE", "")), 0, nil, verdict{}},
		"sent after the disconnect":   {join(first, left(0, 200), ended(1, "GONE", "")), 11, []string{one}, verdict{SentAfterStop: 1}},
		"in flight at the disconnect": {join(first, left(11, 200), ended(1, "GONE", "")), 12, []string{one}, verdict{}},
		"long after the disconnect":   {join(first, left(11, 200), ended(1, "GONE", "")), 60, []string{one}, verdict{SentAfterStop: 1}},
		"out before the disconnect":   {join(first, left(20, 200), ended(1, "PUBLISHED", "")), 11, []string{one}, verdict{}},
		"still there":                 {join(first, left(0, 200), ended(1, "QUEUE", "")), 0, nil, verdict{LeftBehind: 1}},
		"an error by the disconnect":  {join(first, left(11, 200), ended(1, "ERROR", "rejected")), 0, nil, verdict{FalseFailed: 1}},
		"a disconnect without answer": {join(first, left(0, 0), ended(1, "GONE", "")), 0, nil, verdict{}},
		"a disconnect that failed":    {join(first, ended(1, "GONE", "")), 0, nil, verdict{Lost: 1}},
	} {
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
