package contract

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// checkResult is the result of POST /posts/check for one entry.
type checkResult struct {
	ID, Identifier, Name string
	Valid                bool
	SettingsError        bool
	Errors               json.RawMessage
	EmptyContent         bool
	TooLong              bool
	MaximumCharacters    int
	Length               int
	Problems             []string
}

type checkAnswer struct {
	Passed  bool
	Results []checkResult
}

func TestCheckPosts(t *testing.T) {
	t.Parallel()
	subjects(t, common(t), map[string]subject{
		"returns what is wrong with each entry": testCheck,
		"lists the problems of all parts":       testCheckOfThread,
		"accepts pasted white space around ids": testPastedReferences,
		"bad requests are refused":              testBadCheck,
		"what POST /posts refuses is refused":   testCheckAndCreate,
	})
}

func testCheck(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	ask := o.dashboard(t)
	body := m{"posts": []m{
		entry(c.id, part("short")), entry(c.id, part("")), entry(c.id, part(strings.Repeat("x", 5000))),
		entry("11111111-1111-4111-8111-111111111111", part("x")), entry(c.id, part("", m{"id": "none"})),
	}, "ai": false}
	a := ask(http.MethodPost, "/posts/check", body).want(t, http.StatusCreated)
	for _, result := range elements(t, members(t, a.raw(), "passed", "results")["results"]) {
		members(t, result, "id", "identifier", "name", "valid", "settingsError", "errors", "emptyContent", "tooLong",
			"maximumCharacters", "length", "problems", "checker")
	}
	got := read[checkAnswer](t, a)
	if got.Passed || len(got.Results) != 5 {
		t.Fatalf("got %+v, want five results that did not pass", got)
	}
	fine, empty, long, unknown, missing := got.Results[0], got.Results[1], got.Results[2], got.Results[3], got.Results[4]
	if !fine.Valid || string(fine.Errors) != "true" || fine.Length != 5 || fine.Identifier != "sandbox" || len(fine.Problems) > 0 {
		t.Errorf("got %+v, want a valid entry of 5 characters", fine)
	}
	if empty.Valid || !empty.EmptyContent || empty.TooLong || !strings.Contains(string(empty.Errors), "empty") {
		t.Errorf("got %+v, want an empty entry", empty)
	}
	if long.Valid || !long.TooLong || long.EmptyContent || long.Length != 5000 || long.MaximumCharacters >= 5000 {
		t.Errorf("got %+v, want an entry that is too long", long)
	}
	if unknown.Valid || unknown.Identifier != "" || !strings.Contains(string(unknown.Errors), "no channel") {
		t.Errorf("got %+v, want an unknown channel", unknown)
	}
	if missing.EmptyContent {
		t.Errorf("got %+v, want no empty content: its file is unknown", missing)
	}
	if missing.Valid || !strings.Contains(string(missing.Errors), "no file") {
		t.Errorf("got %+v, want an unknown file", missing)
	}
	o.wantCount(t, 0)
	only := m{"posts": []m{entry(c.id, part("short"))}}
	if got := read[checkAnswer](t, o.do(t, http.MethodPost, "/posts/check", only).want(t, 201)); !got.Passed {
		t.Errorf("got %+v, want a pass", got)
	}
}

// testCheckOfThread checks that a missing file in one part of a thread does not hide the problems
// of the other parts.
func testCheckOfThread(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	thread := entry(o.channel(t, "A").id, part("first"), part(strings.Repeat("x", 523)), part("\u200b"), part("", m{"id": "cat.png"}),
		part(strings.Repeat("x", 501), m{"id": "dog.png"}))
	got := read[checkAnswer](t, o.do(t, http.MethodPost, "/posts/check", m{"posts": []m{thread}}).want(t, 201)).Results[0]
	want := []string{
		"Part 2: The text is too long: it has 523 characters, and at most 500 are allowed.",
		"Part 3: This part is empty: write some text, or add an image or video.", `Part 4: There is no file with the id "cat.png".`,
		`Part 5: There is no file with the id "dog.png".`, "Part 5: The text is too long: it has 501 characters, and at most 500 are allowed.",
	}
	if !slices.Equal(got.Problems, want) {
		t.Errorf("got %q, want %q", got.Problems, want)
	}
}

func testPastedReferences(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	channel := "\ufeff" + strings.ToUpper(o.channel(t, "A").id) + " \n"
	file := o.stored(t, "a.png", png(t))
	for _, image := range []any{" " + strings.ToUpper(file.ID) + "\u200b", "\t" + file.Path + "?dl=1#top ", m{"path": file.Path + "\u00a0"}, m{"id": file.ID + "\n"}} {
		body := m{"posts": []m{entry(channel, m{"content": "x", "image": []any{image}})}}
		if got := read[checkAnswer](t, o.do(t, http.MethodPost, "/posts/check", body).want(t, 201)); !got.Passed {
			t.Errorf("%q: got %+v, want a pass", image, got)
		}
	}
}

func testBadCheck(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	for _, body := range []any{
		m{}, m{"posts": nil}, m{"posts": []m{}}, m{"posts": "x"}, m{"posts": []any{1}}, m{"posts": []m{{}}},
		m{"posts": []m{entry("x")}}, m{"posts": []m{entry("x", part("x"))}, "ai": "perhaps"}, "[]", "{", "",
	} {
		o.do(t, http.MethodPost, "/posts/check", body).refusal(t, http.StatusBadRequest)
	}
}

// testCheckAndCreate sends bodies with one invalid member to both routes, which must respond alike.
// The check also accepts each optional member alone.
func testCheckAndCreate(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	channel := o.channel(t, "A").id
	for field, wrong := range map[string]m{
		"type":         {"type": "bogus"},
		"date":         {"date": "not a date"},
		"date missing": {"date": nil},
		"date far":     {"date": "2900-01-01"},
		"inter":        {"inter": 9999},
		"inter type":   {"inter": "often"},
		"interCount":   {"inter": 1, "interCount": 20_000},
		"interUntil":   {"inter": 1, "interUntil": "2020-01-01"},
		"until alone":  {"interUntil": "2099-01-01"},
		"tags":         {"tags": "news"},
		"republish":    {"republish": "perhaps"},
	} {
		body := m{"type": "schedule", "date": tomorrow(), "posts": []m{entry(channel, part("x"))}}
		maps.Copy(body, wrong)
		created, checked := o.do(t, http.MethodPost, "/posts", body), o.do(t, http.MethodPost, "/posts/check", body)
		if created.refusal(t, 400); string(checked.Body) != string(created.Body) || checked.Status != 400 {
			t.Errorf("%s: the check answers %d %s, want what POST /posts answers: %s", field, checked.Status, checked.Body, created.Body)
		}
	}
	posts := []m{entry(channel, part("x"))}
	for _, alone := range []m{{}, {"date": tomorrow()}, {"inter": 7}, {"tags": []string{"news"}}, {"type": nil, "date": nil}} {
		body := m{"posts": posts}
		maps.Copy(body, alone)
		if got := read[checkAnswer](t, o.do(t, http.MethodPost, "/posts/check", body).want(t, 201)); !got.Passed {
			t.Errorf("%v: got %+v, want a pass", alone, got)
		}
	}
	o.wantCount(t, 0)
}

func TestChangeSettings(t *testing.T) {
	t.Parallel()
	subjects(t, common(t), map[string]subject{
		"of a post that is not published": testSettings,
		"bad requests are refused":        testBadSettings,
	})
}

func testSettings(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	for _, body := range []m{later(c.id, part("queued")), request("draft", tomorrow(), entry(c.id, part("draft")))} {
		id := o.create(t, body)
		before := o.post(t, id)
		a := o.do(t, http.MethodPut, "/posts/"+id+"/settings", `{"settings":{"__type":"x","big":12345678901234567890}}`).want(t, 200)
		members(t, a.raw(), "postId", "publishDate")
		if got := read[struct{ PostID, PublishDate string }](t, a); got.PostID != id || got.PublishDate != before.PublishDate {
			t.Errorf("got %+v, want the id %s and the date %s", got, id, before.PublishDate)
		}
		if got := o.get(t, "/posts/"+id).want(t, 200); !strings.Contains(string(got.Body), `"settings":{"big":12345678901234567890,"__type":"sandbox"}`) &&
			!strings.Contains(string(got.Body), `"settings":{"__type":"sandbox","big":12345678901234567890}`) {
			t.Errorf("got the post %s, want the new settings with the platform as __type", got.Body)
		}
		if after := o.post(t, id); after.State != before.State || after.events()[len(after.events())-1] != "edited" {
			t.Errorf("got the state %s and the events %v, want the state %s and an edit", after.State, after.events(), before.State)
		}
	}
	published := o.create(t, now(c.id, part("out")))
	o.reaches(t, published, "PUBLISHED")
	o.do(t, http.MethodPut, "/posts/"+published+"/settings", m{"settings": m{}}).refusal(t, http.StatusConflict)
}

func testBadSettings(t *testing.T, r *rig) {
	t.Parallel()
	o, other := r.organization(t), r.organization(t)
	id := o.create(t, later(o.channel(t, "A").id, part("x")))
	for _, body := range []any{
		m{}, m{"settings": nil}, m{"settings": "x"}, m{"settings": []int{1}}, `{"settings":{"x":1e999}}`, "[]", "{", "",
		m{"settings": m{"x": "a\x00b"}}, m{"settings": m{"x": strings.Repeat("x", 100_000)}},
	} {
		o.do(t, http.MethodPut, "/posts/"+id+"/settings", body).refusal(t, http.StatusBadRequest)
	}
	for _, path := range []string{"x", "11111111-1111-4111-8111-111111111111"} {
		o.do(t, http.MethodPut, "/posts/"+path+"/settings", m{"settings": m{}}).refusal(t, http.StatusNotFound)
	}
	other.do(t, http.MethodPut, "/posts/"+id+"/settings", m{"settings": m{}}).refusal(t, http.StatusNotFound)
}
