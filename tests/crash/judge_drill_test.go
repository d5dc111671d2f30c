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

// stale returns the line of a post that was written with a due time long past.
func stale(n int) line {
	return line{At: at(0), Do: doStale, Post: n, Fault: lateOutage, Account: "account", Due: at(-90_000), Text: fmt.Sprintf("post %d as booked", n)}
}

func watchedLine(millis int64, note string, posts ...int) line {
	return line{At: at(60), Do: doProbes, Code: hang1, Posts: posts, Millis: millis, Note: note}
}

func TestJudge_Drills(t *testing.T) {
	t.Parallel()
	const one, edited = "post 1 as booked", "post 1 as edited"
	ok := ended(1, "PUBLISHED", "")
	unknown, failed := ended(1, "ERROR", codeUnknown), ended(1, "ERROR", "retries_used_up")
	for name, c := range map[string]struct {
		lines []line
		from  int // when the platform received it
		texts []string
		want  verdict
	}{
		"published after a silence":          {join(drilled(silence, 1, "A", 10), polled(1, 20, "UNKNOWN", ""), ok), 11, []string{one}, verdict{}},
		"unknown after a silence":            {join(drilled(silence, 1, "C", 10), polled(1, 20, "ERROR", codeUnknown), unknown), 11, []string{one}, verdict{}},
		"unknown without a call":             {join(drilled(silence, 1, "C", 10), unknown), 11, nil, verdict{UnknownAC: 1}},
		"failed after a silence":             {join(drilled(silence, 1, "A", 10), failed), 11, []string{one}, verdict{FalseFailed: 1, UnknownForgotten: 1}},
		"failed in the silence for a while":  {join(drilled(silence, 1, "A", 10), polled(1, 20, "ERROR", "retries_used_up"), ok), 11, []string{one}, verdict{UnknownForgotten: 1}},
		"failed before the platform had it":  {join(drilled(silence, 1, "A", 10), polled(1, 10, "ERROR", "retries_used_up"), ok), 11, []string{one}, verdict{}},
		"an edit of a live post":             {join(drilled(silence, 1, "A", 10), did(1, doEdit, 20, 201), unknown), 11, []string{one}, verdict{WrongContent: 1, UnknownForgotten: 1}},
		"an edit that was refused":           {join(drilled(silence, 1, "A", 10), did(1, doEdit, 20, 409), unknown), 11, []string{one}, verdict{}},
		"an edit before the call":            {join(drilled(silence, 1, "A", 30), did(1, doEdit, 20, 201), ok), 30, []string{edited}, verdict{}},
		"a schedule of a live post":          {join(drilled(silence, 1, "A", 10), did(1, doSchedule, 20, 200), unknown), 11, []string{one}, verdict{UnknownForgotten: 1}},
		"and a second publication":           {join(drilled(silence, 1, "A", 10), did(1, doSchedule, 12, 200), ok), 11, []string{one, one}, verdict{Twice: 1, UnknownForgotten: 1}},
		"an ordinary edit of a live post":    {join(booked(1, "A", 10), did(1, doEdit, 20, 201), ok), 11, []string{one}, verdict{WrongContent: 1, UnknownForgotten: 1}},
		"missed":                             {join(stale(1), ended(1, "ERROR", "missed")), 0, nil, verdict{}},
		"too old and published":              {join(stale(1), ok), 11, []string{one}, verdict{LatePublished: 1}},
		"too old and still queued":           {join(stale(1), ended(1, "QUEUE", "")), 0, nil, verdict{Lost: 1}},
		"too old and failed":                 {join(stale(1), ended(1, "ERROR", "rejected")), 0, nil, verdict{Lost: 1}},
		"missed in time":                     {join(booked(1, "A", 10), ended(1, "ERROR", "missed")), 0, nil, verdict{FalseFailed: 1}},
		"a known outcome":                    {join(drilled(noGrant, 1, "E", 10), ok), 11, []string{one}, verdict{}},
		"a known outcome that was dropped":   {join(drilled(noGrant, 1, "E", 10), unknown), 11, []string{one}, verdict{FalseFailed: 1}},
		"a panic before the call":            {join(drilled(panicsUnsent, 1, "C", 10), ended(1, "ERROR", "rejected")), 0, nil, verdict{}},
		"a panic before the call, published": {join(drilled(panicsUnsent, 1, "C", 10), ok), 0, nil, verdict{FalseFailed: 1}},
		"a panic before the call, for ever":  {join(drilled(panicsUnsent, 1, "C", 10), line{Do: doStuck, Post: 1, Note: "in time"}, ended(1, "ERROR", "rejected")), 0, nil, verdict{HeldUp: 1}},
		"a panic after the call":             {join(drilled(panics, 1, "A", 10), ok), 11, []string{one}, verdict{}},
		"a panic that never ends":            {join(drilled(panics, 1, "A", 10), line{Do: doStuck, Post: 1, Note: "in time"}, failed), 11, []string{one}, verdict{HeldUp: 1, UnknownForgotten: 1}},
		"a process that panicked":            {join(booked(1, "A", 10), line{Do: doExit, Code: "2"}, ok), 11, []string{one}, verdict{Panicked: 1}},
		"a process that ended otherwise":     {join(booked(1, "A", 10), line{Do: doExit, Code: "1"}, ok), 11, []string{one}, verdict{}},
		"stuck after a black hole":           {join(drilled(blackHole, 1, "A", 10), line{Do: doStuck, Post: 1, Note: "in time"}, ok), 11, []string{one}, verdict{HeldUp: 1}},
		"a single post in time":              {join(drilled(probe, 1, "A", 10), watchedLine(0, "", 1), ok), 13, []string{one}, verdict{}},
		"a single post that was held up":     {join(drilled(probe, 1, "A", 10), watchedLine(0, "", 1), ok), 14, []string{one}, verdict{HeldUp: 1}},
		"on a machine that stood still":      {join(drilled(probe, 1, "A", 10), watchedLine(501, "", 1), ok), 14, []string{one}, verdict{}},
		"that was late before the fault":     {join(drilled(probe, 1, "A", 10), watchedLine(0, "late", 1), ok), 14, []string{one}, verdict{}},
		"a single post that never went out":  {join(drilled(probe, 1, "A", 10), watchedLine(0, "", 1), ended(1, "QUEUE", "")), 0, nil, verdict{HeldUp: 1, Lost: 1}},
	} {
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
