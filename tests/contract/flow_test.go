package contract

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPosts(t *testing.T) {
	t.Parallel()
	subjects(t, common(t), map[string]subject{
		"create":           testCreate,
		"change of status": testChangeStatus,
		"edit":             testEdit,
		"update changes the content and keeps the state": testUpdate,
		"an edit of a published post needs republish":    testRepublish,
		"a thread is a chain of replies":                 testThread,
		"a delayed part waits":                           testDelayedPart,
		"a deleted post is never published":              testDelete,
		"a deleted post stays on the platform":           testDeletePublished,
		"channels are listed":                            testListChannels,
	})
}

func testCreate(t *testing.T, r *rig) {
	t.Parallel()
	t.Run("now is published at once, with its whole record", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		cat := o.stored(t, "cat.png", png(t))
		const content = "<p>Hello <strong>you</strong></p>"
		body := now(c.id, part(content, m{"id": cat.ID, "alt": "A cat"}))
		a := o.do(t, http.MethodPost, "/posts", body).want(t, http.StatusCreated)
		made := read[[]created](t, a)
		if len(made) != 1 || made[0].Integration != c.id {
			t.Fatalf("created are %+v, want one post on %s", made, c.id)
		}
		members(t, elements(t, a.raw())[0], "postId", "integration")
		full := o.reaches(t, made[0].PostID, "PUBLISHED")
		fullShape(t, o.get(t, "/posts/"+full.ID))
		out := r.published(t, c)
		if len(out) != 1 || out[0].Text != "Hello you" || len(out[0].Media) != 1 || out[0].Media[0].Alt != "A cat" {
			t.Fatalf("published are %+v, want Hello you with one picture that has a description", out)
		}
		if full.ReleaseID != out[0].ID || !strings.Contains(full.ReleaseURL, out[0].ID) || full.Content != content {
			t.Fatalf("the record is %+v, want the content %s and the release %s", full, content, out[0].ID)
		}
		if got, want := full.events(), []string{"written", "claimed", "confirmed"}; !slices.Equal(got, want) {
			t.Fatalf("the timeline has %v, want %v", got, want)
		}
	})
	t.Run("each channel has its entry, in order, with its own content", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		a, c, e := o.channel(t, "A"), o.channel(t, "C"), o.channel(t, "E")
		made := o.created(t, request("now", time.Now(),
			entry(a.id, part("for a")), entry(c.id, part("for c")), entry(e.id, part("for e"))))
		for i, ch := range []channel{a, c, e} {
			if made[i].Integration != ch.id {
				t.Fatalf("entry %d is of the channel %s, want %s", i, made[i].Integration, ch.id)
			}
			o.reaches(t, made[i].PostID, "PUBLISHED")
		}
		r.wantTexts(t, a, "for a")
		r.wantTexts(t, c, "for c")
		r.wantTexts(t, e, "for e")
	})
	t.Run("schedule is published at its time", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		due := time.Now().Add(3 * time.Second).Truncate(time.Second)
		id := o.create(t, request("schedule", due, entry(c.id, part("in time"))))
		full := o.wantState(t, id, "QUEUE")
		if want := due.UTC().Format("2006-01-02T15:04:05.000Z"); full.Date != want {
			t.Fatalf("the date is %s, want %s", full.Date, want)
		}
		o.reaches(t, id, "PUBLISHED")
		if at := r.published(t, c)[0].At; at.Before(due) {
			t.Fatalf("published at %v, want not before %v", at, due)
		}
	})
	t.Run("a date in the past is published at once", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		late := request("schedule", time.Now().Add(-time.Hour), entry(c.id, part("late")))
		o.reaches(t, o.create(t, late), "PUBLISHED")
	})
}

func testChangeStatus(t *testing.T, r *rig) {
	t.Parallel()
	t.Run("a draft stays until it is scheduled", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, request("draft", time.Now().Add(-time.Minute), entry(c.id, part("first a draft"))))
		if full := o.wantState(t, id, "DRAFT"); full.Status != "draft" {
			t.Fatalf("the status is %s, want draft", full.Status)
		}
		a := o.changeStatus(t, id, m{"status": "schedule"}).want(t, http.StatusOK)
		members(t, a.raw(), "id", "state")
		if got, want := read[named](t, a), (named{ID: id, State: "QUEUE"}); got != want {
			t.Fatalf("the answer is %+v, want %+v", got, want)
		}
		o.reaches(t, id, "PUBLISHED")
		r.wantTexts(t, c, "first a draft")
	})
	t.Run("a draft that breaks the platform's rules cannot be scheduled", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		long := part(strings.Repeat("x", 501))
		id := o.create(t, request("draft", tomorrow(), entry(o.channel(t, "A").id, long)))
		msg := o.changeStatus(t, id, m{"status": "schedule"}).refusal(t, http.StatusBadRequest)
		if !strings.Contains(msg, "501") {
			t.Fatalf("the refusal is %q, want it to name 501", msg)
		}
		o.wantState(t, id, "DRAFT")
	})
	t.Run("a queued post becomes a draft and is queued again", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		id := o.create(t, later(o.channel(t, "A").id, part("to and fro")))
		for _, step := range [][2]string{
			{"draft", "DRAFT"}, {"draft", "DRAFT"}, {"schedule", "QUEUE"}, {"schedule", "QUEUE"},
		} {
			a := o.changeStatus(t, id, m{"status": step[0]}).want(t, http.StatusOK)
			if got := read[named](t, a).State; got != step[1] {
				t.Fatalf("%s answered with the state %s, want %s", step[0], got, step[1])
			}
			o.wantState(t, id, step[1])
		}
	})
	t.Run("a published post is refused without republish, and a wrong body always", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, now(c.id, part("once")))
		o.reaches(t, id, "PUBLISHED")
		for _, word := range []string{"draft", "schedule"} {
			o.changeStatus(t, id, m{"status": word}).refusal(t, http.StatusConflict)
		}
		for _, body := range []any{
			m{"status": "DRAFT"}, m{"status": ""}, m{"status": nil}, m{}, m{"status": 1}, "[]", "null", "{", "",
			m{"status": "schedule", "republish": "x"},
		} {
			o.changeStatus(t, id, body).refusal(t, http.StatusBadRequest)
		}
		o.changeStatus(t, id, m{"status": "schedule", "republish": true}).want(t, http.StatusOK)
		r.publishes(t, c, 2)
		o.reaches(t, id, "PUBLISHED")
	})
}

func testEdit(t *testing.T, r *rig) {
	t.Parallel()
	t.Run("a post is replaced by its group", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, later(c.id, part("old"), part("old reply")))
		group := o.post(t, id).Group
		o.edits(t, id, request("now", time.Now(), byGroup(c.id, group, part("new"))))
		if got := o.reaches(t, id, "PUBLISHED").Group; got != group {
			t.Fatalf("the group is %s, want %s as before", got, group)
		}
		r.wantTexts(t, c, "new")
		o.wantCount(t, 1)
	})
	t.Run("parts that are sent with their ids keep them", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, later(c.id, part("one"), part("two"), part("three")))
		before := o.post(t, id).values()
		edit := func(parts ...m) []value {
			o.edits(t, id, later(c.id, parts...))
			return o.post(t, id).values()
		}
		named := func(i int, content string) m { return m{"id": before[i].ID, "content": content} }
		again := edit(named(0, "1"), named(1, "2"), named(2, "3"))
		for i := range before {
			if again[i].ID != before[i].ID {
				t.Fatalf("part %d has the id %s, want %s as before", i, again[i].ID, before[i].ID)
			}
		}
		edit(named(2, "3"), named(0, "1"), named(0, "again"), m{"content": "4"})
		edit(named(0, "1"), m{"content": "x", "delay": 3})
		edit(named(0, "a"), m{"content": "b"})
		if got := o.post(t, id).contents(); got != "a | b" {
			t.Fatalf("the contents are %q, want a | b", got)
		}
		o.wantCount(t, 1)
		o.changeStatus(t, id, m{"status": "draft"}).want(t, http.StatusOK)
		o.create(t, request("now", time.Now(), entry(c.id, m{"id": id, "content": "a"}, m{"content": "b"})))
		o.reaches(t, id, "PUBLISHED")
		r.wantTexts(t, c, "a | b")
	})
	t.Run("two entries cannot replace one post", func(t *testing.T) {
		t.Parallel()
		o := r.organization(t)
		c := o.channel(t, "A")
		id := o.create(t, later(c.id, part("kept")))
		o.do(t, http.MethodPost, "/posts", request("schedule", tomorrow(),
			entry(c.id, m{"id": id, "content": "x"}), entry(c.id, m{"id": id, "content": "y"}),
		)).refusal(t, http.StatusBadRequest)
		if got := o.post(t, id).contents(); got != "kept" {
			t.Fatalf("the contents are %q, want kept", got)
		}
	})
}

// edits sends a body to POST /posts and ends the test unless it changed the post.
func (o org) edits(t *testing.T, id string, body any) {
	t.Helper()
	if got := o.create(t, body); got != id {
		t.Fatalf("the edit answered with the post %s, want %s", got, id)
	}
}

// byGroup returns an entry that replaces the group's post.
func byGroup(channel, group string, parts ...m) m {
	e := entry(channel, parts...)
	e["group"] = group
	return e
}

func testUpdate(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	draft := o.create(t, request("draft", time.Now().Add(-time.Hour), entry(c.id, part("draft"))))
	queued := o.create(t, later(c.id, part("queued")))
	for id, state := range map[string]string{draft: "DRAFT", queued: "QUEUE"} {
		o.create(t, request("update", tomorrow(), entry(c.id, m{"id": id, "content": "changed"})))
		if full := o.wantState(t, id, state); full.Content != "changed" {
			t.Fatalf("the content is %q, want changed", full.Content)
		}
	}
	nothing := request("update", tomorrow(), entry(c.id, part("nothing to update")))
	o.do(t, http.MethodPost, "/posts", nothing).refusal(t, http.StatusBadRequest)
	o.wantCount(t, 2)
}

func testRepublish(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	id := o.create(t, now(c.id, part("out")))
	o.reaches(t, id, "PUBLISHED")
	again := m{"id": id, "content": "again"}
	for _, kind := range []string{"now", "schedule", "draft", "update"} {
		body := request(kind, time.Now(), entry(c.id, again))
		o.do(t, http.MethodPost, "/posts", body).refusal(t, http.StatusConflict)
	}
	body := now(c.id, again)
	body["republish"] = true
	o.create(t, body)
	r.publishes(t, c, 2)
	r.wantTexts(t, c, "out | again")
}

func testThread(t *testing.T, r *rig) {
	t.Parallel()
	for _, grade := range []string{"A", "C", "E"} {
		o := r.organization(t)
		c := o.channel(t, grade)
		o.reaches(t, o.create(t, now(c.id, part("1"), part("2"), part("3"))), "PUBLISHED")
		r.wantTexts(t, c, "1 | 2 | 3")
		out := r.published(t, c)
		if out[0].ReplyTo != "" || out[1].ReplyTo != out[0].ID || out[2].ReplyTo != out[1].ID {
			t.Fatalf("on the grade %s published are %+v, want a reply to each by the next", grade, out)
		}
	}
}

func testDelayedPart(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	hour := m{"content": "in an hour", "delay": 60}
	id := o.create(t, now(c.id, part("at once"), part("with it"), hour))
	r.publishes(t, c, 2)
	var full record
	eventually(t, "the end of the first post", func() bool {
		full = o.post(t, id)
		return slices.Contains(full.events(), "confirmed") && full.ReleaseID != ""
	}, func() any { return full })
	if full.State != "QUEUE" || full.Status != "scheduled" {
		t.Fatalf("a part waits, and the thread is %+v, want QUEUE and scheduled", full)
	}
	if v := full.values(); len(v) != 3 || v[0].Delay != 0 || v[1].Delay != 0 || v[2].Delay != 60 {
		t.Fatalf("the parts are %+v, want delays of 0, 0 and 60", v)
	}
	o.deletes(t, "/posts/", id)
	r.wantTexts(t, c, "at once | with it")
}

func testDelete(t *testing.T, r *rig) {
	t.Parallel()
	// A machine too slow to delete them in time gets more time.
	for lead := 2 * time.Second; ; lead *= 2 {
		o := r.organization(t)
		c := o.channel(t, "A")
		due := time.Now().Add(lead)
		gone := o.create(t, request("schedule", due, entry(c.id, part("deleted"))))
		root := o.create(t, request("schedule", due, entry(c.id, part("deleted by group"), part("with its reply"))))
		stays := o.create(t, request("schedule", due.Add(time.Second), entry(c.id, part("stays"))))
		group := o.post(t, root).Group
		o.deletes(t, "/posts/", gone)
		o.deletes(t, "/posts/group/", group)
		inTime := time.Now().Before(due)
		for _, path := range []string{"/posts/" + gone, "/posts/" + root, "/posts/group/" + group} {
			o.do(t, http.MethodDelete, path, nil).refusal(t, http.StatusNotFound)
		}
		o.get(t, "/posts/"+gone).refusal(t, http.StatusNotFound)
		if !inTime {
			continue
		}
		o.reaches(t, stays, "PUBLISHED")
		r.wantTexts(t, c, "stays")
		return
	}
}

func testDeletePublished(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	id := o.create(t, now(c.id, part("out")))
	o.reaches(t, id, "PUBLISHED")
	o.deletes(t, "/posts/", id)
	r.wantTexts(t, c, "out")
	o.wantCount(t, 0)
}

func testListChannels(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	if a := o.get(t, "/integrations").want(t, http.StatusOK); strings.TrimSpace(a.Body) != "[]" {
		t.Fatalf("without channels the answer is %v, want []", a)
	}
	c := o.channel(t, "A")
	channelShape(t, elements(t, o.get(t, "/integrations").raw())[0])
	want := []channelRecord{{ID: c.id, Name: c.account, Identifier: "sandbox"}}
	if got := o.channels(t); !slices.Equal(got, want) {
		t.Fatalf("the channels are %+v, want %+v", got, want)
	}
	a := o.get(t, "/is-connected").want(t, http.StatusOK)
	if got := string(members(t, a.raw(), "connected")["connected"]); got != "true" {
		t.Fatalf("connected is %s, want true", got)
	}
}

// first is the date of the first post that TestList_Posts lists.
var first = time.Date(2040, 1, 1, 12, 0, 0, 0, time.UTC)

func TestList_Posts(t *testing.T) {
	t.Parallel()
	o := common(t).organization(t)
	c := o.channel(t, "A")
	var ids []string
	for i := range 23 {
		at := first.Add(time.Duration(i) * time.Hour)
		ids = append(ids, o.create(t, request("schedule", at, entry(c.id, part("listed"), part("reply")))))
	}
	alias := o
	alias.prefix = "/api/public/v1"
	for _, o := range []org{o, alias} {
		for query, want := range map[string][]string{
			dateQuery(2, time.UTC, 5, time.UTC):                                          ids[2:6],
			dateQuery(2, time.FixedZone("", 19800), 5, time.FixedZone("", -12600)):       ids[2:6],
			"startDate=2040-01-01T14:00:00&endDate=2040-01-01T15:30:00&page=7&ignored=1": ids[2:4],
			"startDate=2040-01-01&endDate=2040-01-02":                                    ids[0:13],
			"startDate=2039-01-01&endDate=2039-01-02":                                    nil,
			"page=0":           ids[0:20],
			"page=1":           ids[20:23],
			"limit=5":          ids[0:5],
			"page=2&limit=10":  ids[20:23],
			"page=9&limit=100": nil,
		} {
			if got := o.listed(t, query); !slices.Equal(got, want) {
				t.Errorf("%s: the list has %v, want %v", query, got, want)
			}
		}
	}
	for query, more := range map[string]string{
		"page=0": "true", "page=1": "false", "limit=23": "false", "limit=22": "true",
	} {
		h := o.get(t, "/posts?"+query).Header
		if total, got := h.Get("X-Total-Count"), h.Get("X-Has-More"); total != "23" || got != more {
			t.Errorf("%s: X-Total-Count is %s and X-Has-More %s, want 23 and %s", query, total, got, more)
		}
	}
	fullShape(t, o.get(t, "/posts/"+ids[0]))
	full := o.post(t, ids[0])
	if got := full.contents(); got != "listed | reply" {
		t.Errorf("the contents are %q, want listed | reply", got)
	}
	if full.CreationMethod != "API" || full.Settings["__type"] != "sandbox" {
		t.Errorf("got the method %s and the settings %v, want API and sandbox", full.CreationMethod, full.Settings)
	}
}

// dateQuery returns the query for the posts between two times, given in hours after first and
// written in a zone each.
func dateQuery(from int, fromZone *time.Location, to int, toZone *time.Location) string {
	at := func(hours int, zone *time.Location) string {
		return url.QueryEscape(first.Add(time.Duration(hours) * time.Hour).In(zone).Format(time.RFC3339))
	}
	return "startDate=" + at(from, fromZone) + "&endDate=" + at(to, toZone)
}

// listed checks the shape of a list and returns the ids of its posts.
func (o org) listed(t *testing.T, query string) (ids []string) {
	t.Helper()
	list := o.get(t, "/posts?"+query).want(t, http.StatusOK).raw()
	if strings.HasPrefix(o.prefix, "/api") {
		list = members(t, list, "posts")["posts"]
	}
	for _, item := range elements(t, list) {
		itemShape(t, item)
		ids = append(ids, decode[record](t, item).ID)
	}
	return ids
}
