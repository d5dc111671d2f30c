package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// booked returns the lines of a post that was acknowledged a minute before it is due.
func booked(n int, grade string, due int) []line {
	key := fmt.Sprintf("create-%d", n)
	return []line{
		{
			At: at(-60), Do: doCreate, Ask: true, Post: n, Key: key, Account: "account", Grade: grade,
			Due: at(due), Text: fmt.Sprintf("post %d as booked", n),
		},
		{At: at(-60), Do: doCreate, Post: n, Key: key, Status: 201, ID: fmt.Sprintf("id-%d", n)},
	}
}

func ended(n int, state, code string) line {
	return line{At: at(900), Do: doRead, Post: n, Status: 200, State: state, Code: code}
}

func did(n int, do string, when, status int) []line {
	key := do + "-1"
	return []line{
		{At: at(when), Do: do, Ask: true, Post: n, Key: key, Due: at(10), Text: fmt.Sprintf("post %d as edited", n)},
		{At: at(when), Do: do, Post: n, Key: key, Status: status},
	}
}

func join(all ...any) (out []line) {
	for _, v := range all {
		switch v := v.(type) {
		case line:
			out = append(out, v)
		case []line:
			out = append(out, v...)
		}
	}
	return out
}

// live returns the journal of an account with these texts, one second apart, beginning at from.
func live(t *testing.T, account string, from int, texts ...string) []entry {
	t.Helper()
	rows := []string{`{"op":"account","account":{"id":"1","name":"` + account + `"}}`}
	for i, text := range texts {
		rows = append(rows, fmt.Sprintf(`{"op":"post","at":%q,"post":{"id":"p%d","account":"1","text":%q}}`, at(from+i).Format(time.RFC3339), i, text))
	}
	path := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(path, []byte(strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := readLines[entry](path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The texts of the judged posts.
const one, two, edited = "post 1 as booked", "post 2 as booked", "post 1 as edited"

// postsCase has a ledger, the texts that the platform received, and the expected verdict.
type postsCase struct {
	lines []line
	texts []string
	want  verdict
}

func checkPosts(t *testing.T, cases map[string]postsCase) {
	t.Helper()
	for name, c := range cases {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			got := judge(c.lines, live(t, "account", 10, c.texts...))
			c.want.Suite, c.want.Posts, c.want.Met, c.want.findings = got.Suite, got.Posts, got.Met, got.findings
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %+v\nwant %+v\n%s", got, c.want, got.findings)
			}
		})
	}
}

func TestJudge_Outcomes(t *testing.T) {
	t.Parallel()
	checkPosts(t, map[string]postsCase{
		"lost":            {lines: join(booked(1, "A", 10), ended(1, "QUEUE", "")), texts: nil, want: verdict{Lost: 1}},
		"gone":            {lines: join(booked(1, "A", 10), ended(1, "GONE", "")), texts: nil, want: verdict{Lost: 1}},
		"never answered":  {lines: join(booked(1, "A", 10)[:1], ended(1, "", "")), texts: nil, want: verdict{Lost: 1}},
		"false published": {lines: join(booked(1, "A", 10), ended(1, "PUBLISHED", "")), texts: nil, want: verdict{FalsePublished: 1}},
		"failed":          {lines: join(booked(1, "C", 10), ended(1, "ERROR", "rejected")), texts: nil, want: verdict{FalseFailed: 1}},
		"live and failed": {
			lines: join(booked(1, "C", 10), ended(1, "ERROR", "rejected")), texts: []string{one},
			want: verdict{FalseFailed: 1, UnknownForgotten: 1},
		},
		"live and queued": {lines: join(booked(1, "C", 10), ended(1, "QUEUE", "")), texts: []string{one}, want: verdict{FalseFailed: 1}},
		"unknown on C":    {lines: join(booked(1, "C", 10), ended(1, "ERROR", "outcome_unknown")), texts: nil, want: verdict{UnknownAC: 1}},
		"unknown on E":    {lines: join(booked(1, "E", 10), ended(1, "ERROR", "outcome_unknown")), texts: []string{one}, want: verdict{UnknownE: 1}},
		"all well":        {lines: join(booked(1, "A", 10), ended(1, "PUBLISHED", "")), texts: []string{one}, want: verdict{}},
		"an answer with 500": {
			lines: join(booked(1, "A", 10), did(1, doEdit, 0, 500), ended(1, "PUBLISHED", "")),
			texts: []string{one},
			want:  verdict{Errors500: 1},
		},
	})
}

func TestJudge_DuplicatesAndOrder(t *testing.T) {
	t.Parallel()
	moved := line{Do: doStored, Post: 1, Due: at(11)}
	checkPosts(t, map[string]postsCase{
		"twice": {lines: join(booked(1, "A", 10), ended(1, "PUBLISHED", "")), texts: []string{one, one}, want: verdict{Twice: 1}},
		"two ids for a key": {
			lines: join(booked(1, "A", 10), booked(1, "A", 10)[0], line{Do: doCreate, Post: 1, Key: "create-1", Status: 201, ID: "other"}, ended(1, "PUBLISHED", "")),
			texts: []string{one},
			want:  verdict{Twice: 1},
		},
		"out of order": {
			lines: join(booked(1, "A", 10), booked(2, "A", 11), ended(1, "PUBLISHED", ""), ended(2, "PUBLISHED", "")),
			texts: []string{two, one},
			want:  verdict{OutOfOrder: 1},
		},
		"a time of its own": {lines: join(booked(1, "A", 10), moved, ended(1, "PUBLISHED", "")), texts: []string{one}, want: verdict{DueMoved: 1}},
		"in order after all": {
			lines: join(booked(1, "A", 11), booked(2, "A", 10), ended(1, "PUBLISHED", ""), ended(2, "PUBLISHED", "")),
			texts: []string{two, one},
			want:  verdict{},
		},
		"booked after its due": {
			lines: join(booked(1, "A", -70), booked(2, "A", 10), ended(1, "PUBLISHED", ""), ended(2, "PUBLISHED", "")),
			texts: []string{two, one},
			want:  verdict{},
		},
	})
}

func TestJudge_Edits(t *testing.T) {
	t.Parallel()
	checkPosts(t, map[string]postsCase{
		"old text": {
			lines: join(booked(1, "A", 10), did(1, doEdit, 0, 201), ended(1, "PUBLISHED", "")),
			texts: []string{one},
			want:  verdict{WrongContent: 1},
		},
		"refused edit": {
			lines: join(booked(1, "A", 10), did(1, doEdit, 0, 409), ended(1, "PUBLISHED", "")),
			texts: []string{edited},
			want:  verdict{WrongContent: 1},
		},
		"open edit":  {lines: join(booked(1, "A", 10), did(1, doEdit, 0, 0), ended(1, "PUBLISHED", "")), texts: []string{edited}, want: verdict{}},
		"not booked": {lines: join(booked(1, "A", 10), ended(1, "PUBLISHED", "")), texts: []string{one, "hello"}, want: verdict{WrongContent: 1}},
	})
}

func TestJudge_DraftsAndDeletes(t *testing.T) {
	t.Parallel()
	checkPosts(t, map[string]postsCase{
		"sent as a draft": {
			lines: join(booked(1, "A", 10), did(1, doDraft, 0, 200), ended(1, "DRAFT", "")),
			texts: []string{one},
			want:  verdict{SentAfterStop: 1, FalseFailed: 1},
		},
		"a draft that may be out on E": {
			lines: join(booked(1, "E", 10), did(1, doDraft, 11, 200), ended(1, "DRAFT", ""), line{Do: doStored, Post: 1, Due: at(10), MaybeSent: true}),
			texts: []string{one},
			want:  verdict{UnknownE: 1},
		},
		"a draft that may be out on A": {
			lines: join(booked(1, "A", 10), did(1, doDraft, 11, 200), ended(1, "DRAFT", ""), line{Do: doStored, Post: 1, Due: at(10), MaybeSent: true}),
			texts: []string{one},
			want:  verdict{FalseFailed: 1},
		},
		"a draft": {lines: join(booked(1, "A", 10), did(1, doDraft, 0, 200), ended(1, "DRAFT", "")), texts: nil, want: verdict{}},
		"queued by a lost try": {
			lines: join(booked(1, "A", 10), did(1, doDraft, 0, 200), did(1, doSchedule, 1, 0), did(1, doSchedule, 12, 409)[1], ended(1, "PUBLISHED", "")),
			texts: []string{one},
			want:  verdict{},
		},
		"deleted on its way": {
			lines: join(booked(1, "A", 10), did(1, doDelete, 10, 200), ended(1, "GONE", "")),
			texts: []string{one},
			want:  verdict{},
		},
		"still there":          {lines: join(booked(1, "A", 10), did(1, doGroup, 0, 200), ended(1, "QUEUE", "")), texts: nil, want: verdict{LeftBehind: 1}},
		"deleted with a group": {lines: join(booked(1, "A", 10), did(1, doGroup, 0, 200), ended(1, "GONE", "")), texts: nil, want: verdict{}},
		"sent though deleted": {
			lines: join(booked(1, "A", 10), did(1, doGroup, 0, 200), ended(1, "GONE", "")), texts: []string{one},
			want: verdict{SentAfterStop: 1},
		},
	})
}

func TestJudge_WrongAccount(t *testing.T) {
	t.Parallel()
	if v := judge(join(booked(1, "A", 10), ended(1, "PUBLISHED", "")), live(t, "another", 10, "post 1 as booked")); v.WrongContent != 1 || v.clean() {
		t.Fatalf("got %+v, want one wrong content", v)
	}
}

func TestVerdict_EnoughNeedsEffectsInFullRun(t *testing.T) {
	t.Parallel()
	all := map[string]int{blackHole: 1}
	for _, kind := range drills() {
		all[kind] = leastDrills
	}
	few, dry := maps.Clone(all), maps.Clone(all)
	few[silence]--
	delete(dry, blackHole)
	for _, c := range []struct {
		v      verdict
		enough bool
	}{
		{v: verdict{Faults: 12}, enough: true},
		{v: verdict{Faults: 200, StopsCommitting: 20, DueDuringFaults: 0.8, Hit: all}, enough: true},
		{v: verdict{Faults: 200, StopsCommitting: 19, DueDuringFaults: 1, Hit: all}, enough: false},
		{v: verdict{Faults: 200, StopsCommitting: 50, DueDuringFaults: 0.79, Hit: all}, enough: false},
		{v: verdict{Faults: 200, StopsCommitting: 50, DueDuringFaults: 1, Hit: few}, enough: false},
		{v: verdict{Faults: 200, StopsCommitting: 50, DueDuringFaults: 1, Hit: dry}, enough: false},
		{v: verdict{Faults: 200, partial: true}, enough: true},
	} {
		if c.v.enough() != c.enough {
			t.Errorf("got enough %v, want %v, for %+v", c.v.enough(), c.enough, c.v)
		}
	}
}

func TestPlan_HasEveryKindOfFaultAndChange(t *testing.T) {
	t.Parallel()
	p := newPlan(settings{Faults: 200, Posts: 20000, Nodes: 3, Seed: 1, Pace: 3500 * time.Millisecond, Ahead: 3 * time.Minute}, 16*perOrganization)
	seen, changed, near, late := map[string]int{}, 0, 0, 0
	leaves := map[int]time.Duration{}
	for _, l := range p.Disconnects {
		leaves[l.Channel] = l.At
	}
	for _, s := range p.Faults {
		seen[s.Kind]++
	}
	for _, b := range p.Bookings {
		if at, gone := leaves[b.Channel]; gone && b.Due > at {
			changed++
		}
		if b.Book > 0 {
			late++
		}
		if b.Do == "" {
			continue
		}
		seen[b.Do]++
		changed++
		if d := b.At - b.Due; d >= -100*time.Millisecond && d <= 100*time.Millisecond {
			near++
		}
		if disconnects(b.Channel) {
			t.Fatalf("post %d is changed and goes with its channel", b.N)
		}
	}
	for _, kind := range drills() {
		if seen[kind] < leastDrills {
			t.Errorf("there are %d of %s, want %d or more", seen[kind], kind, leastDrills)
		}
	}
	for _, kind := range []string{blackHole, killed, stopped, haltKill, haltGo, haltLong, haltTwice, pgFast, pgNow, pgKill, redisLost, redisHang, cut,
		doEdit, doDraft, doSchedule, doDelete, doGroup, doPause} {
		if seen[kind] == 0 {
			t.Errorf("there is no %s", kind)
		}
	}
	if changed < len(p.Bookings)/4 || near < changed/2 || len(p.Disconnects) != 16 || late < len(p.Bookings)/7 {
		t.Errorf("%d changed, %d of these near their time, %d disconnected, %d booked while faults run", changed, near, len(p.Disconnects), late)
	}
}

func TestPlan_DependsOnSeedOnly(t *testing.T) {
	t.Parallel()
	s := settings{Faults: 50, Posts: 500, Nodes: 3, Seed: 7, Pace: time.Second}
	a, b := fmt.Sprint(newPlan(s, 12)), fmt.Sprint(newPlan(s, 12))
	s.Seed = 8
	if a != b || a == fmt.Sprint(newPlan(s, 12)) {
		t.Fatal("want equal schedules for equal seeds and another for another seed")
	}
}

func TestEveryMutant_FitsSources(t *testing.T) {
	t.Parallel()
	for _, x := range mutants() {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			if x.point != "" && !slices.Contains(failpoints(), x.point) {
				t.Errorf("there is no failpoint %q", x.point)
			}
			if (x.count == nil) != x.harmless {
				t.Error("a mutant must either be harmless or have a count")
			}
			path, err := mutate(x, t.TempDir(), "../..")
			if err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var overlay struct{ Replace map[string]string }
			if err := json.Unmarshal(raw, &overlay); err != nil {
				t.Fatal(err)
			}
			if len(overlay.Replace) == 0 && x.sql == "" {
				t.Fatalf("got the overlay %s, want a replaced file", raw)
			}
		})
	}
}

func TestMutate_FailsOnMissingText(t *testing.T) {
	t.Parallel()
	x := mutant{name: "stale", swaps: []swap{{file: claimFile, old: "a text that the file does not have", now: "", count: 1}}}
	if _, err := mutate(x, t.TempDir(), "../.."); err == nil {
		t.Fatal("want an error for a mutant whose text is not in the file")
	}
}

func TestPlan_OnlyRestrictsKinds(t *testing.T) {
	t.Parallel()
	p := newPlan(settings{Faults: 6, Posts: 10, Nodes: 1, Seed: 1, Pace: time.Second, Only: []string{silence, stopped, pgKill}}, 12)
	for i, s := range p.Faults {
		if want := []string{silence, stopped, pgKill}[i%3]; s.Kind != want || s.Nth != i/3 {
			t.Errorf("fault %d is the %d. of %s, want the %d. of %s", i, s.Nth, s.Kind, i/3, want)
		}
		if s.Kind == stopped && s.Hold < lease {
			t.Errorf("a process is stopped for %s, want longer than its lease", s.Hold)
		}
	}
}
