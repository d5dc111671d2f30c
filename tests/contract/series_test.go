package contract

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// clock runs a statement with the scheduler's role.
func (r *rig) clock(t *testing.T, sql string, args ...any) {
	t.Helper()
	r.as(t, "crier_clock", "", sql, args...)
}

// tenant runs a statement with the organization's role, for changes that no route makes yet.
func (o org) tenant(t *testing.T, sql string, args ...any) {
	t.Helper()
	o.as(t, "crier_tenant", o.who.Org.String(), sql, args...)
}

func (r *rig) as(t *testing.T, role, organization, sql string, args ...any) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), r.database)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	const enter = "select set_config('role', $1, false), set_config('app.org_id', $2, false)"
	if _, err := c.Exec(t.Context(), enter, role, organization); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// between lists the posts in a range of dates.
func (o org) between(t *testing.T, from, to time.Time) []record {
	t.Helper()
	return o.list(t, rangeQuery(from, to))
}

// rangeQuery returns the query for the posts in a range of dates.
func rangeQuery(from, to time.Time) string {
	q := url.Values{"startDate": {from.UTC().Format(time.RFC3339)}, "endDate": {to.UTC().Format(time.RFC3339)}}
	return q.Encode()
}

func dates(list []record) (out []string) {
	for _, v := range list {
		out = append(out, strings.Split(v.Date, "T")[0])
	}
	return out
}

// repeating returns a body with additional members, such as inter.
func repeating(body m, more m) m {
	maps.Copy(body, more)
	return body
}

// booked waits until the maintenance step has stored a listed occurrence, and returns its id.
func (o org) booked(t *testing.T, post string) string {
	t.Helper()
	var full record
	eventually(t, "the next occurrence", func() bool {
		full = o.post(t, post)
		return full.ActualDate == "" && full.State == "QUEUE"
	}, func() any { return full })
	return post
}

const day = 24 * time.Hour

// begin is the date of the first occurrence of the repeated posts in these tests.
var begin = time.Date(2040, 3, 20, 9, 0, 0, 0, time.UTC)

// daily creates a post that repeats every day from begin, and returns its id.
func (o org) daily(t *testing.T, c channel, parts ...m) string {
	t.Helper()
	return o.create(t, repeating(request("schedule", begin, entry(c.id, parts...)), m{"inter": 1}))
}

// alone changes the content and the date of one occurrence.
func (o org) alone(t *testing.T, c channel, at time.Time, occurrence record, content string) {
	t.Helper()
	o.create(t, request("schedule", at, entry(c.id, m{"id": occurrence.ID, "content": content})))
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	subjects(t, common(t), map[string]subject{
		"occurrences are listed":                       testOccurrences,
		"the end of an occurrence stores the next one": testNextOccurrence,
		"one occurrence changes":                       testOneOccurrence,
		"the series changes":                           testSeries,
		"a series stops after two failures":            testStop,
	})
}

func testOccurrences(t *testing.T, r *rig) {
	t.Parallel()
	t.Run("every occurrence of the range is listed, and only the next one is stored", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		weekly := request("schedule", begin, entry(c.id, part("weekly"), part("its reply")))
		id := o.create(t, repeating(weekly, m{"inter": 7}))
		from, to := begin.Add(-day), begin.Add(29*day)
		list := o.between(t, from, to)
		want := []string{"2040-03-20", "2040-03-27", "2040-04-03", "2040-04-10", "2040-04-17"}
		if got := dates(list); !slices.Equal(got, want) {
			t.Fatalf("listed are %v, want %v", got, want)
		}
		for _, item := range elements(t, o.get(t, "/posts?"+rangeQuery(from, to)).raw()) {
			itemShape(t, item)
		}
		seen := map[string]bool{}
		for i, v := range list {
			if v.IntervalInDays != 7 || v.Content != "weekly" || v.State != "QUEUE" || v.Status != "scheduled" {
				t.Fatalf("occurrence %d is %+v, want weekly every 7 days, QUEUE and scheduled", i, v)
			}
			if seen[v.ID] || seen[v.Group] {
				t.Fatalf("occurrence %d has an id or a group of another: %+v", i, v)
			}
			seen[v.ID], seen[v.Group] = true, true
			if i == 0 && (v.ID != id || v.ActualDate != "") {
				t.Fatalf("the first is %+v, want the id %s and no actualDate", v, id)
			}
			if i > 0 && v.ActualDate != "2040-03-20T09:00:00.000Z" {
				t.Fatalf("occurrence %d has the actualDate %q, want that of the first", i, v.ActualDate)
			}
			full := o.post(t, v.ID)
			if full.ID != v.ID || full.Group != v.Group || full.Date != v.Date || full.contents() != "weekly | its reply" {
				t.Fatalf("occurrence %d alone is %+v, want it as in the list: %+v", i, full, v)
			}
		}
		o.wantCount(t, 1)
		if middle := o.between(t, begin.Add(400*day), begin.Add(414*day)); len(middle) != 2 {
			t.Fatalf("two weeks of the next year have %v, want 2 occurrences", dates(middle))
		}
	})
	t.Run("none is later than the end", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		until := m{"inter": 1, "interUntil": begin.Add(2 * day).Format(time.RFC3339)}
		o.create(t, repeating(request("schedule", begin, entry(c.id, part("till then"))), until))
		if got := o.between(t, begin, begin.Add(60*day)); len(got) != 3 {
			t.Fatalf("listed are %v, want 3 occurrences", dates(got))
		}
	})
	t.Run("an ordinary post begins to repeat", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, request("schedule", begin, entry(c.id, part("once"))))
		often := entry(c.id, m{"id": id, "content": "often"})
		o.create(t, repeating(request("schedule", begin, often), m{"inter": 3}))
		if got := o.between(t, begin, begin.Add(7*day)); len(got) != 3 || got[2].Content != "often" {
			t.Fatalf("listed are %+v, want 3 occurrences with the content often", got)
		}
	})
}

func testNextOccurrence(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	began := time.Now()
	id := o.create(t, repeating(now(c.id, part("again and again")), m{"inter": 1, "interCount": 3}))
	for n := range 3 {
		o.reaches(t, id, "PUBLISHED")
		list := o.between(t, began.Add(-time.Hour), began.Add(5*day))
		if len(list) != 3 || list[n].ID != id {
			t.Fatalf("listed are %+v, want 3 occurrences, of which %d is %s", list, n, id)
		}
		if n == 2 {
			break
		}
		id = o.booked(t, list[n+1].ID)
		r.clock(t, `update post set due = now() where id = $1`, id)
	}
	r.wantTexts(t, c, "again and again | again and again | again and again")
	o.wantCount(t, 3)
}

func testOneOccurrence(t *testing.T, r *rig) {
	t.Parallel()
	t.Run("one occurrence is skipped", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		o.daily(t, c, part("daily"))
		all := o.between(t, begin, begin.Add(4*day))
		for _, i := range []int{0, 2} {
			gone := all[i].ID
			o.deletes(t, "/posts/", gone)
			o.get(t, "/posts/"+gone).refusal(t, http.StatusNotFound)
			o.do(t, http.MethodDelete, "/posts/"+gone, nil).refusal(t, http.StatusNotFound)
		}
		got, want := dates(o.between(t, begin, begin.Add(4*day))), []string{"2040-03-21", "2040-03-23", "2040-03-24"}
		if !slices.Equal(got, want) {
			t.Fatalf("listed are %v, want %v", got, want)
		}
	})
	t.Run("one occurrence is edited, moved or made a draft alone", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		o.daily(t, c, part("daily"), m{"content": "in a while", "delay": 5})
		all := o.between(t, begin, begin.Add(5*day))
		by := o.post(t, all[2].ID).values()
		o.create(t, request("schedule", begin.Add(2*day+time.Hour), entry(c.id,
			m{"id": by[0].ID, "content": "only today"}, m{"id": by[1].ID, "content": "a reply", "delay": 7})))
		if again := o.post(t, all[2].ID).values(); again[1].ID != by[1].ID || again[1].Delay != 7 {
			t.Fatalf("the second part is %+v, want the id %s and a delay of 7", again[1], by[1].ID)
		}
		o.create(t, request("schedule", begin.Add(3*day), byGroup(c.id, all[3].Group, part("by its group"))))
		o.changeStatus(t, all[4].ID, m{"status": "draft"}).want(t, http.StatusOK)
		var got []string
		for _, v := range o.between(t, begin, begin.Add(5*day)) {
			got = append(got, fmt.Sprint(v.Date[8:13], " ", v.Content, " ", v.State, " ", v.ActualDate != ""))
		}
		want := []string{
			"20T09 daily QUEUE false", "21T09 daily QUEUE true", "22T10 only today QUEUE false",
			"23T09 by its group QUEUE false", "24T09 daily DRAFT false", "25T09 daily QUEUE true",
		}
		if !slices.Equal(got, want) {
			t.Fatalf("listed are %q, want %q", got, want)
		}
		later := request("schedule", begin, entry(c.id, m{"id": all[5].ID, "content": "from here"}))
		msg := o.do(t, http.MethodPost, "/posts", repeating(later, m{"inter": 2})).refusal(t, http.StatusBadRequest)
		if !strings.Contains(msg, "next occurrence") {
			t.Fatalf("the refusal is %q, want it to name the next occurrence", msg)
		}
		if n := len(o.between(t, begin, begin.Add(5*day))); n != 6 {
			t.Fatalf("%d occurrences are listed after a refusal, want 6", n)
		}
	})
}

func testSeries(t *testing.T, r *rig) {
	t.Parallel()
	t.Run("all later occurrences are changed with the next one", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.daily(t, c, part("daily"))
		all := o.between(t, begin, begin.Add(4*day))
		o.deletes(t, "/posts/", all[1].ID)
		o.alone(t, c, begin.Add(2*day), all[2], "alone")
		changed := request("schedule", begin.Add(time.Hour), entry(c.id, m{"id": id, "content": "every other day"}))
		o.create(t, repeating(changed, m{"inter": 2, "interCount": 3}))
		var got []string
		for _, v := range o.between(t, begin, begin.Add(9*day)) {
			got = append(got, fmt.Sprint(v.Date[8:13], " ", v.Content, " ", v.IntervalInDays))
		}
		want := []string{"20T10 every other day 2", "22T10 every other day 2", "24T10 every other day 2"}
		if !slices.Equal(got, want) {
			t.Fatalf("listed are %q, want %q", got, want)
		}
	})
	t.Run("deleting its group ends the series", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		for _, at := range []int{0, 2} { // deletes by the next occurrence or by a later one
			o.daily(t, c, part("no more"))
			all := o.between(t, begin, begin.Add(4*day))
			o.alone(t, c, begin.Add(day), all[1], "alone")
			group := all[at].Group
			o.deletes(t, "/posts/group/", group)
			if left := o.between(t, begin, begin.Add(90*day)); len(left) != 0 {
				t.Fatalf("listed are %+v, want none", left)
			}
			o.wantCount(t, 0)
			o.do(t, http.MethodDelete, "/posts/group/"+group, nil).refusal(t, http.StatusNotFound)
		}
	})
}

func testStop(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	id := o.create(t, repeating(later(c.id, part("refused")), m{"inter": 1}))
	o.tenant(t, `update channel set disabled = true where id = $1`, c.id)
	const past = `update post set publish_date = now() - interval '1 hour' where id = $1`
	for n := range 2 {
		list := o.between(t, time.Now(), tomorrow().Add(90*time.Hour))
		if len(list) != 4-n || list[0].ID != id {
			t.Fatalf("after %d failures listed are %+v, want %d occurrences from %s on", n, list, 4-n, id)
		}
		r.clock(t, `update post set due = now() where id = $1`, id)
		full := o.reaches(t, id, "ERROR")
		if n > 0 {
			continue
		}
		o.tenant(t, past, id)
		id = o.booked(t, list[1].ID)
		if got := full.events(); slices.Contains(got, "stopped") {
			t.Fatalf("after one failure the timeline has %v, want no stop", got)
		}
	}
	var full record
	eventually(t, "the stop in the timeline", func() bool {
		full = o.post(t, id)
		return slices.Contains(full.events(), "stopped")
	}, func() any { return full.events() })
	o.tenant(t, past, id)
	if left := o.between(t, time.Now(), tomorrow().Add(90*time.Hour)); len(left) != 0 {
		t.Fatalf("listed are %+v, want none after the stop", left)
	}
}

// TestRepeats_WorkBeforeMaintenanceStep checks that the API lists and changes later occurrences as
// usual after an occurrence has ended and before the step that stores the next one.
func TestRepeats_WorkBeforeMaintenanceStep(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"SWEEP_INTERVAL": "1h"})
	o := r.organization(t)
	c := o.channel(t, "A")
	began := time.Now()
	list := func() []record { return o.between(t, began.Add(-time.Hour), began.Add(75*time.Hour)) }
	for _, way := range []string{"change", "skip", "end"} {
		id := o.create(t, repeating(now(c.id, part(way)), m{"inter": 1}))
		o.reaches(t, id, "PUBLISHED")
		all := list()
		if len(all) != 4 || all[1].ActualDate == "" {
			t.Fatalf("%s: listed are %+v, want 4 occurrences, the second not stored yet", way, all)
		}
		ends := all[1].Group
		switch way {
		case "change":
			changed := entry(c.id, m{"id": all[1].ID, "content": "changed"})
			o.create(t, repeating(request("schedule", began.Add(day), changed), m{"inter": 2}))
			got := list()
			if len(got) != 3 || got[1].Content != "changed" || got[2].Content != "changed" {
				t.Fatalf("after the change listed are %+v, want 3, the last two changed", got)
			}
			ends = got[1].Group
		case "skip":
			o.deletes(t, "/posts/", all[1].ID)
			got := list()
			if len(got) != 3 || got[1].ID != all[2].ID || got[1].ActualDate != "" {
				t.Fatalf("after the skip listed are %+v, want 3, the second stored with the id %s", got, all[2].ID)
			}
			ends = got[1].Group
		}
		o.deletes(t, "/posts/group/", ends)
		if got := list(); len(got) != 1 {
			t.Fatalf("%s: after the end listed are %+v, want 1", way, got)
		}
		o.deletes(t, "/posts/", id)
	}
}
