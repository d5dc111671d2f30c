package contract

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// tagRecord is a tag.
type tagRecord struct{ ID, Name, Color, OrgID, CreatedAt, UpdatedAt, DeletedAt string }

// tagged holds the tags of a post.
type tagged struct {
	Tags []struct {
		Tag struct{ ID, Name, Color string }
	}
}

func (g tagged) names() string {
	var out []string
	for _, t := range g.Tags {
		out = append(out, t.Tag.Name)
	}
	return strings.Join(out, ",")
}

func (o org) tag(t *testing.T, name string) tagRecord {
	t.Helper()
	return read[tagRecord](t, o.do(t, http.MethodPost, "/tags", m{"name": name, "color": "#1F6FEB"}).want(t, 201))
}

func (o org) wantTags(t *testing.T, post, want string) {
	t.Helper()
	if got := read[tagged](t, o.get(t, "/posts/"+post).want(t, http.StatusOK)).names(); got != want {
		t.Fatalf("the post has the tags %q, want %q", got, want)
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	subjects(t, common(t), map[string]subject{
		"are created, changed, listed and deleted": testTags,
		"bad requests are refused":                 testBadTags,
		"of a post":                                testTagsOfPost,
		"of a repeated post":                       testTagsOfSeries,
		"of another organization do not exist":     testForeignTags,
	})
}

func testTags(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	ask := o.dashboard(t)
	made := o.do(t, http.MethodPost, "/tags", m{"name": " News ", "color": "#1F6FEB"}).want(t, 201)
	members(t, made.raw(), "id", "name", "color", "orgId", "createdAt", "updatedAt", "deletedAt")
	first := read[tagRecord](t, made)
	if first.Name != "News" || first.Color != "#1f6feb" || first.OrgID != o.who.Org.String() {
		t.Errorf("got the tag %+v, want News in #1f6feb", first)
	}
	o.do(t, http.MethodPost, "/tags", m{"name": "NEWS", "color": "#000000"}).refusal(t, http.StatusConflict)
	second := read[tagRecord](t, ask(http.MethodPost, "/posts/tags", m{"name": "Archive", "color": "#000000"}).want(t, 201))
	list := read[struct{ Tags []tagRecord }](t, ask(http.MethodGet, "/posts/tags", nil).want(t, http.StatusOK))
	if len(list.Tags) != 2 || list.Tags[0].ID != second.ID || list.Tags[1].ID != first.ID {
		t.Errorf("got the tags %+v, want Archive and News", list.Tags)
	}
	renamed := read[tagRecord](t, o.do(t, http.MethodPut, "/tags/"+first.ID, m{"name": "news", "color": "#ffffff"}).want(t, 200))
	if renamed.ID != first.ID || renamed.Name != "news" || renamed.Color != "#ffffff" {
		t.Errorf("got the tag %+v, want news in #ffffff", renamed)
	}
	ask(http.MethodPut, "/posts/tags/"+first.ID, m{"name": "archive", "color": "#ffffff"}).refusal(t, http.StatusConflict)
	deleted := read[tagRecord](t, ask(http.MethodDelete, "/posts/tags/"+first.ID, nil).want(t, http.StatusOK))
	if deleted.ID != first.ID || deleted.DeletedAt == "" {
		t.Errorf("got the tag %+v, want it with the time of its deletion", deleted)
	}
	o.do(t, http.MethodDelete, "/tags/"+first.ID, nil).refusal(t, http.StatusNotFound)
}

func testBadTags(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	tag := o.tag(t, "kept")
	for _, body := range []any{
		m{}, m{"name": "x"}, m{"color": "#000000"}, m{"name": "", "color": "#000000"}, m{"name": "x", "color": "red"},
		m{"name": "x", "color": "#00000g"}, m{"name": strings.Repeat("x", 65), "color": "#000000"},
		m{"name": "a\nb", "color": "#000000"}, m{"name": "a\x00b", "color": "#000000"}, m{"name": 1, "color": "#000000"}, "[]", "{",
	} {
		o.do(t, http.MethodPost, "/tags", body).refusal(t, http.StatusBadRequest)
		o.do(t, http.MethodPut, "/tags/"+tag.ID, body).refusal(t, http.StatusBadRequest)
	}
	for _, id := range []string{"x", "11111111-1111-4111-8111-111111111111"} {
		o.do(t, http.MethodPut, "/tags/"+id, m{"name": "x", "color": "#000000"}).refusal(t, http.StatusNotFound)
		o.do(t, http.MethodDelete, "/tags/"+id, nil).refusal(t, http.StatusNotFound)
	}
	list := read[struct{ Tags []tagRecord }](t, o.get(t, "/tags").want(t, http.StatusOK))
	if len(list.Tags) != 1 || list.Tags[0] != tag {
		t.Errorf("got the tags %+v, want the first one unchanged", list.Tags)
	}
}

func testTagsOfPost(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	news := o.tag(t, "News")
	o.tag(t, "Team")
	body := later(c.id, part("tagged"))
	body["tags"] = []any{m{"value": "x", "label": "team"}, "NEWS", m{"value": "Team", "label": ""}, "unknown"}
	id := o.create(t, body)
	o.wantTags(t, id, "Team,News")
	between := "startDate=" + time.Now().UTC().Format(time.DateOnly) + "&endDate=" + tomorrow().Add(48*time.Hour).UTC().Format(time.DateOnly)
	if list := read[[]tagged](t, o.get(t, "/posts?"+between).want(t, http.StatusOK)); len(list) != 1 || list[0].names() != "Team,News" {
		t.Errorf("the list has %+v, want one post with the tags Team and News", list)
	}
	edit := later(c.id, part("edited"))
	delete(edit, "tags")
	edit["posts"].([]m)[0]["value"].([]m)[0]["id"] = id
	o.create(t, edit)
	o.wantTags(t, id, "Team,News")
	o.do(t, http.MethodDelete, "/tags/"+news.ID, nil).want(t, http.StatusOK)
	o.wantTags(t, id, "Team")
	edit["tags"] = []any{}
	o.create(t, edit)
	o.wantTags(t, id, "")
	edit["tags"] = make([]string, 101)
	o.do(t, http.MethodPost, "/posts", edit).refusal(t, http.StatusBadRequest)
}

func testTagsOfSeries(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	o.tag(t, "Weekly")
	body := later(c.id, part("again"))
	body["tags"], body["inter"] = []any{"Weekly"}, 7
	o.create(t, body)
	between := fmt.Sprintf("startDate=%s&endDate=%s", time.Now().UTC().Format(time.DateOnly),
		tomorrow().Add(16*24*time.Hour).UTC().Format(time.DateOnly))
	list := read[[]tagged](t, o.get(t, "/posts?"+between).want(t, http.StatusOK))
	if len(list) != 3 {
		t.Fatalf("the list has %d posts, want 3 occurrences", len(list))
	}
	for i, got := range list {
		if got.names() != "Weekly" {
			t.Errorf("occurrence %d has the tags %q, want Weekly", i, got.names())
		}
	}
}

func testForeignTags(t *testing.T, r *rig) {
	t.Parallel()
	o, other := r.organization(t), r.organization(t)
	tag := other.tag(t, "Theirs")
	o.do(t, http.MethodPut, "/tags/"+tag.ID, m{"name": "x", "color": "#000000"}).refusal(t, http.StatusNotFound)
	o.do(t, http.MethodDelete, "/tags/"+tag.ID, nil).refusal(t, http.StatusNotFound)
	body := later(o.channel(t, "A").id, part("mine"))
	body["tags"] = []any{"Theirs"}
	o.wantTags(t, o.create(t, body), "")
}
