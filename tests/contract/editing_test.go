package contract

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestEditing_DocumentedStepsWork runs the samples on the page about editing, moving and canceling
// a post.
func TestEditing_DocumentedStepsWork(t *testing.T) {
	t.Parallel()
	common(t).inEachLanguage(t, "/docs/editing", func(t *testing.T, l *reader) {
		c := l.channel(t, "A")
		id := l.create(t, later(c.id, part("first"), part("its reply")))
		date := l.post(t, id).PublishDate
		l.sets("CHANNEL_ID="+c.id, "POST_ID="+id, "PUBLISH_DATE="+date)
		wants := func(step, state, date string) {
			t.Helper()
			got := l.post(t, id)
			if got.State != state || got.contents() != "Hello again." || !strings.HasPrefix(got.PublishDate, date) {
				t.Errorf("after %s the post is %s, %q at %s, want %s, %q at %s",
					step, got.State, got.contents(), got.PublishDate, state, "Hello again.", date)
			}
		}
		var read record
		l.step(t, "get-post", &read)
		if read.ID != id || read.values()[0].ID != id {
			t.Errorf("got the post %s whose first part is %s, want %s for both", read.ID, read.values()[0].ID, id)
		}
		var edited []created
		l.step(t, "edit", &edited)
		wants("the edit", "QUEUE", date)
		const moved = "2035-02-01T09:00"
		l.sets("PUBLISH_DATE=" + moved + ":00Z")
		l.step(t, "move", &edited)
		wants("the move", "QUEUE", moved)
		var draft named
		l.step(t, "unschedule", &draft)
		wants("the cancellation", "DRAFT", moved)
		l.step(t, "move", &edited)
		wants("the move of a draft", "QUEUE", moved)
		var gone named
		l.step(t, "delete-post", &gone)
		l.get(t, "/posts/"+id).refusal(t, http.StatusNotFound)
		l.wantCount(t, 0)
	})
}

// TestEditing_ReplacesTheWholePost checks that everything an edit leaves out is removed, except the
// tags.
func TestEditing_ReplacesTheWholePost(t *testing.T) {
	t.Parallel()
	r := common(t)
	o := r.organization(t)
	c := o.channel(t, "A")
	o.tag(t, "News")
	cat := o.stored(t, "cat.png", png(t))
	body := later(c.id, part("one", cat), part("two"))
	body["tags"] = []string{"News"}
	body["posts"].([]m)[0]["settings"] = m{"who": "all"}
	id := o.create(t, body)
	before := o.post(t, id)
	keep := m{"id": before.values()[1].ID, "content": "two"}
	edit := request("update", tomorrow(), entry(c.id, m{"id": id, "content": "1"}, keep, part("three")))
	delete(edit, "tags")
	o.edits(t, id, edit)
	got := o.post(t, id)
	if got.contents() != "1 | two | three" || got.values()[1].ID != before.values()[1].ID || len(got.Media) != 0 || got.Settings["who"] != nil {
		t.Errorf("got %+v, want three parts of which the second has its id, without the file and the settings", got)
	}
	o.wantTags(t, id, "News")
	o.edits(t, id, request("update", tomorrow(), byGroup(c.id, before.Group, part("alone"))))
	if got := o.post(t, id).contents(); got != "alone" {
		t.Errorf("got the parts %q after an edit by the group, want alone", got)
	}
	other := request("schedule", tomorrow(), byGroup(c.id, "11111111-1111-4111-8111-111111111111", part("new")))
	if made := o.create(t, other); made == id {
		t.Error("an unknown group replaced the post, want a new one")
	}
	of := o.channel(t, "A")
	for name, wrong := range map[string]m{
		"an unknown part":        request("update", tomorrow(), entry(c.id, m{"id": "11111111-1111-4111-8111-111111111111", "content": "x"})),
		"another channel":        request("update", tomorrow(), byGroup(of.id, before.Group, part("x"))),
		"an update of nothing":   request("update", tomorrow(), entry(c.id, part("x"))),
		"two entries for a post": request("update", tomorrow(), byGroup(c.id, before.Group, part("x")), byGroup(c.id, before.Group, part("y"))),
		"a rule of the platform": request("schedule", tomorrow(), byGroup(c.id, before.Group, part(strings.Repeat("x", 5000)))),
	} {
		if a := o.do(t, http.MethodPost, "/posts", wrong); a.Status != http.StatusBadRequest {
			t.Errorf("%s is answered with %v, want 400", name, a)
		}
	}
}

// TestConflict_HasRetryAfterIfTransient checks that a 409 has the header only if the conflict ends
// by itself, as the page about errors says.
func TestConflict_HasRetryAfterIfTransient(t *testing.T) {
	t.Parallel()
	r := common(t)
	o := r.organization(t)
	c, busy := o.channel(t, "A"), o.channel(t, "A")
	out := o.create(t, now(c.id, part("out")))
	o.reaches(t, out, "PUBLISHED")
	r.fault(t, busy, "hold", posting(), nil)
	held := o.create(t, now(busy.id, part("held")))
	r.holds(t)
	o.tag(t, "News")
	edit := func(c channel, id string) m {
		return request("update", tomorrow(), entry(c.id, m{"id": id, "content": "x"}))
	}
	for name, one := range map[string]struct {
		a     answer
		again bool
	}{
		"an edit while it is published":     {a: o.do(t, http.MethodPost, "/posts", edit(busy, held)), again: true},
		"a draft while it is published":     {a: o.changeStatus(t, held, m{"status": "draft"}), again: true},
		"settings while it is published":    {a: o.do(t, http.MethodPut, "/posts/"+held+"/settings", m{"settings": m{}}), again: true},
		"an edit of a published post":       {a: o.do(t, http.MethodPost, "/posts", edit(c, out))},
		"a change of a published post":      {a: o.changeStatus(t, out, m{"status": "draft"})},
		"a second tag of one name":          {a: o.do(t, http.MethodPost, "/tags", m{"name": "News", "color": "#112233"})},
		"a request of approval of no draft": {a: o.do(t, http.MethodPost, "/posts/"+out+"/request-approval", m{})},
		"a second release id of one post":   {a: o.do(t, http.MethodPut, "/posts/"+out+"/release-id", m{"releaseId": "x"})},
	} {
		one.a.refusal(t, http.StatusConflict)
		if got := one.a.Header.Get("Retry-After"); (got != "") != one.again {
			t.Errorf("%s: Retry-After is %q, want one: %v", name, got, one.again)
		}
	}
	if err := r.judge().Clear(t.Context(), busy.account); err != nil {
		t.Fatal(err)
	}
	o.reaches(t, held, "PUBLISHED")
	o.do(t, http.MethodPost, "/posts", edit(busy, held)).refusal(t, http.StatusConflict)
}

// holds waits until the sandbox holds a request back.
func (r *rig) holds(t *testing.T) {
	t.Helper()
	var held map[string]int
	eventually(t, "the call that is held", func() bool {
		var err error
		held, err = r.judge().Held(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.Max(slices.Collect(maps.Values(held))) > 0
	}, func() any { return held })
}
