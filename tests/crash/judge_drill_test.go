package main

import (
	"fmt"
	"strings"
	"testing"
)

// drilled returns the lines of a post that was booked for a drill.
func drilled(kind string, n int, grade string, due int) []line {
	lines := booked(n, grade, due)
	lines[0].Fault = kind
	return lines
}

func polled(n, when int, state, code string) line {
	return line{At: at(when), Do: doPoll, Post: n, Status: 200, State: state, Code: code}
}

// stale returns the line of a post that was inserted with a due time long past.
func stale(n int) line {
	return line{At: at(0), Do: doStale, Post: n, Fault: lateOutage, Account: "account", Due: at(-90_000), Text: fmt.Sprintf("post %d as booked", n)}
}

func watchedLine(millis int64, note string, posts ...int) line {
	return line{At: at(60), Do: doProbes, Code: hang1, Posts: posts, Millis: millis, Note: note}
}

// drillCase has a ledger, the texts that the platform received, and the expected verdict.
type drillCase struct {
	lines []line
	from  int // when the platform received it
	texts []string
	want  verdict
}

func checkDrills(t *testing.T, cases map[string]drillCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			got := judge(c.lines, live(t, "account", c.from, c.texts...))
			findings := got.findings
			if bad := len(findings) > 0; got.clean() == bad {
				t.Errorf("clean() is %v with the findings %s", got.clean(), findings)
			}
			got.Suite, got.Posts, got.Drilled, got.Met, got.Hit, got.findings = "", 0, 0, nil, nil, nil
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %+v\nwant %+v\n%s", got, c.want, findings)
			}
		})
	}
}

func TestJudge_Silences(t *testing.T) {
	t.Parallel()
	ok := ended(1, "PUBLISHED", "")
	unknown, failed := ended(1, "ERROR", codeUnknown), ended(1, "ERROR", "retries_used_up")
	checkDrills(t, map[string]drillCase{
		"published after a silence": {
			lines: join(drilled(silence, 1, "A", 10), polled(1, 20, "UNKNOWN", ""), ok), from: 11,
			texts: []string{one},
			want:  verdict{},
		},
		"unknown after a silence": {
			lines: join(drilled(silence, 1, "C", 10), polled(1, 20, "ERROR", codeUnknown), unknown), from: 11,
			texts: []string{one},
			want:  verdict{},
		},
		"unknown without a call": {lines: join(drilled(silence, 1, "C", 10), unknown), from: 11, want: verdict{UnknownAC: 1}},
		"failed after a silence": {
			lines: join(drilled(silence, 1, "A", 10), failed), from: 11, texts: []string{one},
			want: verdict{FalseFailed: 1, UnknownForgotten: 1},
		},
		"failed in the silence for a while": {
			lines: join(drilled(silence, 1, "A", 10), polled(1, 20, "ERROR", "retries_used_up"), ok), from: 11,
			texts: []string{one},
			want:  verdict{UnknownForgotten: 1},
		},
		"failed before the platform had it": {
			lines: join(drilled(silence, 1, "A", 10), polled(1, 10, "ERROR", "retries_used_up"), ok), from: 11,
			texts: []string{one},
			want:  verdict{},
		},
		"an edit of a live post": {
			lines: join(drilled(silence, 1, "A", 10), did(1, doEdit, 20, 201), unknown), from: 11,
			texts: []string{one},
			want:  verdict{WrongContent: 1, UnknownForgotten: 1},
		},
		"an edit that was refused": {
			lines: join(drilled(silence, 1, "A", 10), did(1, doEdit, 20, 409), unknown), from: 11,
			texts: []string{one},
			want:  verdict{},
		},
		"an edit before the call": {
			lines: join(drilled(silence, 1, "A", 30), did(1, doEdit, 20, 201), ok), from: 30,
			texts: []string{edited},
			want:  verdict{},
		},
		"a schedule of a live post": {
			lines: join(drilled(silence, 1, "A", 10), did(1, doSchedule, 20, 200), unknown), from: 11,
			texts: []string{one},
			want:  verdict{UnknownForgotten: 1},
		},
		"a schedule of a live post that publishes again": {
			lines: join(drilled(silence, 1, "A", 10), did(1, doSchedule, 12, 200), ok), from: 11,
			texts: []string{one, one},
			want:  verdict{Twice: 1, UnknownForgotten: 1},
		},
		"an ordinary edit of a live post": {
			lines: join(booked(1, "A", 10), did(1, doEdit, 20, 201), ok), from: 11, texts: []string{one},
			want: verdict{WrongContent: 1, UnknownForgotten: 1},
		},
	})
}

func TestJudge_LateAndKnownOutcomes(t *testing.T) {
	t.Parallel()
	ok := ended(1, "PUBLISHED", "")
	unknown := ended(1, "ERROR", codeUnknown)
	checkDrills(t, map[string]drillCase{
		"missed":                   {lines: join(stale(1), ended(1, "ERROR", "missed")), want: verdict{}},
		"too old and published":    {lines: join(stale(1), ok), from: 11, texts: []string{one}, want: verdict{LatePublished: 1}},
		"too old and still queued": {lines: join(stale(1), ended(1, "QUEUE", "")), want: verdict{Lost: 1}},
		"too old and failed":       {lines: join(stale(1), ended(1, "ERROR", "rejected")), want: verdict{Lost: 1}},
		"missed in time":           {lines: join(booked(1, "A", 10), ended(1, "ERROR", "missed")), want: verdict{FalseFailed: 1}},
		"a known outcome":          {lines: join(drilled(noGrant, 1, "E", 10), ok), from: 11, texts: []string{one}, want: verdict{}},
		"a known outcome that was dropped": {
			lines: join(drilled(noGrant, 1, "E", 10), unknown), from: 11, texts: []string{one},
			want: verdict{FalseFailed: 1},
		},
	})
}

func TestJudge_Panics(t *testing.T) {
	t.Parallel()
	ok := ended(1, "PUBLISHED", "")
	failed := ended(1, "ERROR", "retries_used_up")
	checkDrills(t, map[string]drillCase{
		"a panic before the call":            {lines: join(drilled(panicsUnsent, 1, "C", 10), ended(1, "ERROR", "rejected")), want: verdict{}},
		"a panic before the call, published": {lines: join(drilled(panicsUnsent, 1, "C", 10), ok), want: verdict{FalseFailed: 1}},
		"a panic before the call, for ever": {
			lines: join(drilled(panicsUnsent, 1, "C", 10), line{Do: doStuck, Post: 1, Note: "in time"}, ended(1, "ERROR", "rejected")),
			want:  verdict{HeldUp: 1},
		},
		"a panic after the call": {lines: join(drilled(panics, 1, "A", 10), ok), from: 11, texts: []string{one}, want: verdict{}},
		"a panic that never ends": {
			lines: join(drilled(panics, 1, "A", 10), line{Do: doStuck, Post: 1, Note: "in time"}, failed),
			from:  11, texts: []string{one},
			want: verdict{HeldUp: 1, UnknownForgotten: 1},
		},
		"a process that panicked": {
			lines: join(booked(1, "A", 10), line{Do: doExit, Code: "2"}, ok), from: 11, texts: []string{one},
			want: verdict{Panicked: 1},
		},
		"a process that ended otherwise": {
			lines: join(booked(1, "A", 10), line{Do: doExit, Code: "1"}, ok), from: 11, texts: []string{one},
			want: verdict{},
		},
	})
}

func TestJudge_HeldUpPosts(t *testing.T) {
	t.Parallel()
	ok := ended(1, "PUBLISHED", "")
	checkDrills(t, map[string]drillCase{
		"stuck after a black hole": {
			lines: join(drilled(blackHole, 1, "A", 10), line{Do: doStuck, Post: 1, Note: "in time"}, ok),
			from:  11, texts: []string{one},
			want: verdict{HeldUp: 1},
		},
		"a single post in time": {
			lines: join(drilled(probe, 1, "A", 10), watchedLine(0, "", 1), ok), from: 13, texts: []string{one},
			want: verdict{},
		},
		"a single post that was held up": {
			lines: join(drilled(probe, 1, "A", 10), watchedLine(0, "", 1), ok), from: 14, texts: []string{one},
			want: verdict{HeldUp: 1},
		},
		"a single post on a machine that stood still": {
			lines: join(drilled(probe, 1, "A", 10), watchedLine(501, "", 1), ok), from: 14, texts: []string{one},
			want: verdict{},
		},
		"a single post that was late before the fault": {
			lines: join(drilled(probe, 1, "A", 10), watchedLine(0, "late", 1), ok), from: 14,
			texts: []string{one},
			want:  verdict{},
		},
		"a single post that never went out": {
			lines: join(drilled(probe, 1, "A", 10), watchedLine(0, "", 1), ended(1, "QUEUE", "")),
			want:  verdict{HeldUp: 1, Lost: 1},
		},
	})
}
