package contract

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// clock runs a statement with the role of the scheduler.
func (r *rig) clock(t *testing.T, sql string, args ...any) {
	t.Helper()
	r.as(t, "crier_clock", "", sql, args...)
}

// tenant runs a statement with the role of the organization, for changes that no route makes yet.
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
	if _, err := c.Exec(t.Context(), "select set_config('role', $1, false), set_config('app.org_id', $2, false)", role, organization); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// between lists the posts of a range of dates.
func (o org) between(t *testing.T, from, to time.Time) []m {
	t.Helper()
	q := url.Values{"startDate": {from.UTC().Format(time.RFC3339)}, "endDate": {to.UTC().Format(time.RFC3339)}}
	return o.get(t, "/posts?"+q.Encode()).want(t, http.StatusOK).list(t)
}

func dates(list []m) (out []string) {
	for _, v := range list {
		at, err := time.Parse(time.RFC3339, v["date"].(string))
		if err != nil {
			return []string{err.Error()}
		}
		out = append(out, at.Format(time.DateOnly))
	}
	return out
}

func repeating(body m, more m) m {
	for k, v := range more {
		body[k] = v
	}
	return body
}

// booked waits until the maintenance step has stored a listed occurrence, and returns its id.
func (o org) booked(t *testing.T, post string) string {
	t.Helper()
	var full m
	eventually(t, "the next occurrence", func() bool {
		full = o.get(t, "/posts/"+post).want(t, http.StatusOK).object(t)
		return full["actualDate"] == nil && full["state"] == "QUEUE"
	}, func() any { return full })
	return post
}

func TestRepeats(t *testing.T) {
	t.Parallel()
	r := start(t, nil)
	day := 24 * time.Hour
	begin := time.Date(2040, 3, 20, 9, 0, 0, 0, time.UTC)

	t.Run("every occurrence of the range is listed, and only the next one is stored", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, repeating(request("schedule", begin, entry(c.id, part("weekly"), part("its reply"))), m{"inter": 7}))
		list := o.between(t, begin.Add(-day), begin.Add(29*day))
		if got := fmt.Sprint(dates(list)); got != "[2040-03-20 2040-03-27 2040-04-03 2040-04-10 2040-04-17]" {
			t.Fatal(got)
		}
		seen := map[any]bool{}
		for i, v := range list {
			itemShape(t, v)
			if v["intervalInDays"] != 7.0 || v["content"] != "weekly" || v["state"] != "QUEUE" || v["status"] != "scheduled" || seen[v["id"]] || seen[v["group"]] {
				t.Fatalf("%v", v)
			}
			seen[v["id"]], seen[v["group"]] = true, true
			if i == 0 && (v["id"] != id || v["actualDate"] != nil) || i > 0 && v["actualDate"] != "2040-03-20T09:00:00.000Z" {
				t.Fatalf("%d: %v", i, v)
			}
			full := o.get(t, "/posts/"+v["id"].(string)).want(t, 200).object(t)
			if full["id"] != v["id"] || full["group"] != v["group"] || full["date"] != v["date"] || contents(full) != "weekly | its reply" {
				t.Fatalf("%v", full)
			}
		}
		if o.count(t) != "1" {
			t.Fatalf("%s are stored", o.count(t))
		}
		if middle := o.between(t, begin.Add(400*day), begin.Add(414*day)); len(middle) != 2 {
			t.Fatalf("%v", dates(middle))
		}
	})
	t.Run("until its end", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		o.create(t, repeating(request("schedule", begin, entry(c.id, part("till then"))), m{"inter": 1, "interUntil": begin.Add(2 * day).Format(time.RFC3339)}))
		if got := o.between(t, begin, begin.Add(60*day)); len(got) != 3 {
			t.Fatal(dates(got))
		}
	})
	t.Run("the end of an occurrence stores the next one, twice", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		began := time.Now()
		id := o.create(t, repeating(now(c.id, part("again and again")), m{"inter": 1, "interCount": 3}))
		for n := range 3 {
			o.reaches(t, id, "PUBLISHED")
			list := o.between(t, began.Add(-time.Hour), began.Add(5*day))
			if len(list) != 3 || list[n]["id"] != id {
				t.Fatalf("%v", list)
			}
			if n == 2 {
				break
			}
			id = o.booked(t, list[n+1]["id"].(string))
			r.clock(t, `update post set due = now() where id = $1`, id)
		}
		if got := r.texts(t, c); got != "again and again | again and again | again and again" || o.count(t) != "3" {
			t.Fatal(got, o.count(t))
		}
	})
	t.Run("one is skipped", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		o.create(t, repeating(request("schedule", begin, entry(c.id, part("daily"))), m{"inter": 1}))
		all := o.between(t, begin, begin.Add(4*day))
		for _, i := range []int{0, 2} {
			gone := all[i]["id"].(string)
			if a := o.do(t, http.MethodDelete, "/posts/"+gone, nil).want(t, 200).object(t); a["id"] != gone {
				t.Fatalf("%v", a)
			}
			o.get(t, "/posts/"+gone).refusal(t, 404)
			o.do(t, http.MethodDelete, "/posts/"+gone, nil).refusal(t, 404)
		}
		if got := fmt.Sprint(dates(o.between(t, begin, begin.Add(4*day)))); got != "[2040-03-21 2040-03-23 2040-03-24]" {
			t.Fatal(got)
		}
	})
	t.Run("one is edited, moved or made a draft alone", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		o.create(t, repeating(request("schedule", begin, entry(c.id, part("daily"), m{"content": "in a while", "delay": 5})), m{"inter": 1}))
		all := o.between(t, begin, begin.Add(5*day))
		by := values(o.get(t, "/posts/"+all[2]["id"].(string)).object(t))
		o.create(t, request("schedule", begin.Add(2*day+time.Hour), entry(c.id, m{"id": by[0]["id"], "content": "only today"}, m{"id": by[1]["id"], "content": "a reply", "delay": 7})))
		if again := values(o.get(t, "/posts/"+all[2]["id"].(string)).object(t)); again[1]["id"] != by[1]["id"] || again[1]["delay"] != 7.0 {
			t.Fatalf("%v became %v", by, again)
		}
		o.create(t, request("schedule", begin.Add(3*day), m{"integration": m{"id": c.id}, "group": all[3]["group"], "value": []m{part("by its group")}}))
		o.do(t, http.MethodPut, "/posts/"+all[4]["id"].(string)+"/status", m{"status": "draft"}).want(t, 200)
		var got []string
		for _, v := range o.between(t, begin, begin.Add(5*day)) {
			got = append(got, fmt.Sprint(v["date"].(string)[8:13], " ", v["content"], " ", v["state"], " ", v["actualDate"] != nil))
		}
		want := []string{"20T09 daily QUEUE false", "21T09 daily QUEUE true", "22T10 only today QUEUE false", "23T09 by its group QUEUE false", "24T09 daily DRAFT false", "25T09 daily QUEUE true"}
		if !slices.Equal(got, want) {
			t.Fatalf("%q", got)
		}
		msg := o.do(t, http.MethodPost, "/posts", repeating(request("schedule", begin, entry(c.id, m{"id": all[5]["id"], "content": "from here"})), m{"inter": 2})).refusal(t, 400)
		if !strings.Contains(msg, "next occurrence") || len(o.between(t, begin, begin.Add(5*day))) != 6 {
			t.Fatal(msg)
		}
	})
	t.Run("all later occurrences are changed with the next one", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, repeating(request("schedule", begin, entry(c.id, part("daily"))), m{"inter": 1}))
		all := o.between(t, begin, begin.Add(4*day))
		o.do(t, http.MethodDelete, "/posts/"+all[1]["id"].(string), nil).want(t, 200)
		o.create(t, request("schedule", begin.Add(2*day), entry(c.id, m{"id": all[2]["id"], "content": "alone"})))
		o.create(t, repeating(request("schedule", begin.Add(time.Hour), entry(c.id, m{"id": id, "content": "every other day"})), m{"inter": 2, "interCount": 3}))
		var got []string
		for _, v := range o.between(t, begin, begin.Add(9*day)) {
			got = append(got, fmt.Sprint(v["date"].(string)[8:13], " ", v["content"], " ", v["intervalInDays"]))
		}
		if want := []string{"20T10 every other day 2", "22T10 every other day 2", "24T10 every other day 2"}; !slices.Equal(got, want) {
			t.Fatalf("%q", got)
		}
	})
	t.Run("an ordinary post begins to repeat", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, request("schedule", begin, entry(c.id, part("once"))))
		o.create(t, repeating(request("schedule", begin, entry(c.id, m{"id": id, "content": "often"})), m{"inter": 3}))
		if got := o.between(t, begin, begin.Add(7*day)); len(got) != 3 || got[2]["content"] != "often" {
			t.Fatalf("%v", got)
		}
	})
	t.Run("it ends with its group", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		for _, at := range []int{0, 2} { // by the next one, or by a later one
			o.create(t, repeating(request("schedule", begin, entry(c.id, part("no more"))), m{"inter": 1}))
			all := o.between(t, begin, begin.Add(4*day))
			o.create(t, request("schedule", begin.Add(day), entry(c.id, m{"id": all[1]["id"], "content": "alone"})))
			group := all[at]["group"].(string)
			if a := o.do(t, http.MethodDelete, "/posts/group/"+group, nil).want(t, 200).object(t); a["id"] != group {
				t.Fatalf("%v", a)
			}
			if left := o.between(t, begin, begin.Add(90*day)); len(left) != 0 || o.count(t) != "0" {
				t.Fatalf("%v", left)
			}
			o.do(t, http.MethodDelete, "/posts/group/"+group, nil).refusal(t, 404)
		}
	})
	t.Run("it stops after two failures in a row", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, repeating(later(c.id, part("refused")), m{"inter": 1}))
		o.tenant(t, `update channel set disabled = true where id = $1`, c.id)
		for n := range 2 {
			list := o.between(t, time.Now(), tomorrow().Add(90*time.Hour))
			if len(list) != 4-n || list[0]["id"] != id {
				t.Fatalf("%v", list)
			}
			r.clock(t, `update post set due = now() where id = $1`, id)
			full := o.reaches(t, id, "ERROR")
			if n == 0 {
				o.tenant(t, `update post set publish_date = now() - interval '1 hour' where id = $1`, id)
				id = o.booked(t, list[1]["id"].(string))
			}
			if got := slices.Contains(happened(full), "stopped"); got && n == 0 {
				t.Fatalf("it stopped after one failure: %v", full)
			}
		}
		eventually(t, "the stop in the timeline", func() bool {
			return slices.Contains(happened(o.get(t, "/posts/"+id).want(t, http.StatusOK).object(t)), "stopped")
		}, func() any { return o.get(t, "/posts/"+id) })
		o.tenant(t, `update post set publish_date = now() - interval '1 hour' where id = $1`, id)
		if left := o.between(t, time.Now(), tomorrow().Add(90*time.Hour)); len(left) != 0 {
			t.Fatalf("%v", left)
		}
	})
}

// TestRepeats_BeforeTheStep: between the end of an occurrence and the step that stores the next one, the API lists and
// changes later occurrences as usual.
func TestRepeats_BeforeTheStep(t *testing.T) {
	t.Parallel()
	r := start(t, map[string]string{"SWEEP": "1h"})
	o := r.organization(t)
	c := o.channel(t, "A")
	began := time.Now()
	list := func() []m { return o.between(t, began.Add(-time.Hour), began.Add(75*time.Hour)) }
	for _, way := range []string{"change", "skip", "end"} {
		id := o.create(t, repeating(now(c.id, part(way)), m{"inter": 1}))
		o.reaches(t, id, "PUBLISHED")
		all := list()
		if len(all) != 4 || all[1]["actualDate"] == nil {
			t.Fatalf("%s: the step came too early, or %d are listed: %v", way, len(all), all)
		}
		next := all[1]["id"].(string)
		switch way {
		case "change":
			o.create(t, repeating(request("schedule", began.Add(24*time.Hour), entry(c.id, m{"id": next, "content": "changed"})), m{"inter": 2}))
			if got := list(); len(got) != 3 || got[1]["content"] != "changed" || got[2]["content"] != "changed" {
				t.Errorf("after the change there are %v", got)
			}
			next = list()[1]["group"].(string)
			o.do(t, http.MethodDelete, "/posts/group/"+next, nil).want(t, http.StatusOK)
		case "skip":
			o.do(t, http.MethodDelete, "/posts/"+next, nil).want(t, http.StatusOK)
			got := list()
			if len(got) != 3 || got[1]["id"] != all[2]["id"] || got[1]["actualDate"] != nil {
				t.Errorf("after the skip there are %v", got)
			}
			o.do(t, http.MethodDelete, "/posts/group/"+got[1]["group"].(string), nil).want(t, http.StatusOK)
		default:
			o.do(t, http.MethodDelete, "/posts/group/"+all[1]["group"].(string), nil).want(t, http.StatusOK)
		}
		if got := list(); len(got) != 1 {
			t.Fatalf("%s: after the end there are %v", way, got)
		}
		o.do(t, http.MethodDelete, "/posts/"+id, nil).want(t, http.StatusOK)
	}
}
