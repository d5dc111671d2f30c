package agents

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// mustAskLabel is the label of the box that limits an agent to drafts.
var mustAskLabel = regexp.MustCompile(`(?i)must ask|ask.*(approv|before)|approv.*(each|every|first)|only.*draft|drafts? only`)

func TestMustAsk(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	c := p.connect(t)
	key := rest{base: s.base, credential: p.key(t)}
	var tag struct{ ID string }
	key.want(t, &tag, http.MethodPost, "/tags", m{"name": "shared", "color": "#112233"})
	theirs := key.create(t, "draft", tomorrow(), c.id, "A draft of a person.")
	var asked struct{ ID string }
	key.want(t, &asked, http.MethodPost, "/posts/"+theirs+"/request-approval", m{})
	queued := key.create(t, "schedule", tomorrow(), c.id, "Queued by a person.")
	var thread struct{ Group string }
	key.want(t, &thread, http.MethodGet, "/posts/"+queued, nil)
	token := p.grant(t, s.native(t), func(f *form) { f.choose(t, mustAskLabel) }).Access
	a, r := agent{base: s.base, token: token}, rest{base: s.base, credential: token}
	draft := func(text string) string {
		t.Helper()
		var made []struct{ PostID string }
		a.must(t, &made, "service_create_post", m{"socialPost": []m{postEntry("draft", tomorrow(), c.id, text)}})
		return made[0].PostID
	}
	mine := draft(unique("draft "))

	for name, list := range map[string][]m{
		"service_create_post": {
			{"socialPost": []m{postEntry("now", tomorrow(), c.id, unique("now "))}}, {"socialPost": []m{postEntry("schedule", tomorrow(), c.id, unique("later "))}},
			{"socialPost": []m{postEntry("draft", tomorrow(), c.id, unique("draft ")), postEntry("schedule", tomorrow(), c.id, unique("later "))}},
			{"socialPost": []m{postEntry("schedule", tomorrow(), c.id, unique("later "))}, "allowDuplicate": true, "idempotencyKey": unique("key-")},
		},
		"service_change_post_status":   {{"id": mine, "status": "schedule"}, {"id": queued, "status": "draft"}, {"id": queued, "status": "schedule"}},
		"service_delete_post":          {{"id": queued, "confirm": true}},
		"service_update_post_settings": {{"id": queued, "settings": []m{}}, {"id": queued, "date": in(49 * time.Hour)}, {"id": queued, "postsAndComments": []m{{"content": "Changed."}}}},
		"service_request_approval":     {{"id": queued, "autoSchedule": true}},
	} {
		for _, arguments := range list {
			got, ok := a.try(t, name, arguments)
			if !ok || !got.IsError {
				t.Errorf("%s %v: got %v, want an error", name, arguments, got.answer)
			} else if text := got.mistake(t); !mixed(arguments) && name != "service_request_approval" && !strings.Contains(strings.ToLower(got.text()), "approval") {
				t.Errorf("%s %v: the error does not name the way to an approval: %+v", name, arguments, text)
			}
		}
	}

	edit := func(kind, post, group, date string) m {
		body := postBody(kind, date, c.id, unique("edited "))
		entry := body["posts"].([]m)[0]
		entry["group"] = group
		entry["value"].([]m)[0]["id"] = post
		return body
	}
	for _, x := range []struct {
		method, path string
		body         any
	}{
		{http.MethodPost, "/posts", postBody("now", tomorrow(), c.id, unique("now "))},
		{http.MethodPost, "/posts", postBody("schedule", tomorrow(), c.id, unique("later "))},
		{http.MethodPost, "/posts", edit("schedule", queued, thread.Group, tomorrow())},
		{http.MethodPost, "/posts", edit("now", queued, thread.Group, tomorrow())},
		{http.MethodPost, "/posts", edit("draft", queued, thread.Group, tomorrow())},
		{http.MethodPost, "/posts", edit("update", queued, thread.Group, tomorrow())},
		{http.MethodPost, "/posts", edit("schedule", mine, "", tomorrow())},
		{http.MethodPut, "/posts/" + mine + "/status", m{"status": "schedule"}},
		{http.MethodPut, "/posts/" + queued + "/status", m{"status": "draft"}},
		{http.MethodPut, "/posts/" + queued + "/settings", m{"settings": m{}}},
		{http.MethodDelete, "/posts/" + queued, nil},
		{http.MethodDelete, "/posts/group/" + thread.Group, nil},
		{http.MethodPut, "/posts/" + mine + "/release-id", m{"releaseId": "at://did:plc:abc/app.bsky.feed.post/3k"}},
		{http.MethodDelete, "/approvals/" + asked.ID, nil},
		{http.MethodPut, "/tags/" + tag.ID, m{"name": "renamed", "color": "#112233"}},
		{http.MethodDelete, "/tags/" + tag.ID, nil},
		{http.MethodPut, "/integrations/" + c.id + "/queue-plan", m{"time": []m{}}},
	} {
		wantRefusal(t, x.method+" "+x.path, r.ask(t, x.method, x.path, x.body), http.StatusForbidden)
	}

	id := s.askApproval(t, a, mine)
	resolve := "/approvals/" + id + "/resolve"
	for _, header := range [][]string{{"auth", token}, {"auth", "", "Authorization", token}, {"auth", "", "Authorization", "Bearer " + token}} {
		nobody := &person{s: s, address: address()}
		wantRefusal(t, "the agent answers its own request", nobody.ask(t, http.MethodPost, resolve, m{"action": "approve"}, header...), 401, 403)
	}
	if strings.Contains(a.rpc(t, "tools/call", m{"name": "service_get_approval_status", "arguments": m{"id": mine}}).Body, "/review/") {
		t.Error("the agent sees the review link")
	}

	if got := key.state(t, queued); got != "QUEUE" {
		t.Errorf("the post of a person is %s, want QUEUE", got)
	}
	if got := key.state(t, mine); got != "DRAFT" {
		t.Errorf("the draft is %s, want DRAFT", got)
	}
	var list []struct{ ID, State string }
	key.want(t, &list, http.MethodGet, "/posts?startDate="+in(-time.Hour)+"&endDate="+in(30*24*time.Hour), nil)
	for _, x := range list {
		if x.ID != queued && x.State != "DRAFT" {
			t.Errorf("the agent made a post in the state %s", x.State)
		}
	}
	if n := s.published(t, c); n != 0 {
		t.Errorf("%d posts are published, want none", n)
	}

	// What the agent wrote may be changed and deleted as long as it is a draft.
	other := draft(unique("draft "))
	a.must(t, nil, "service_update_post_settings", m{"id": other, "date": in(50 * time.Hour), "postsAndComments": []m{{"content": unique("changed ")}}})
	a.must(t, nil, "service_delete_post", m{"id": other, "confirm": true})
}

// mixed reports whether a call has several posts. They must have the same type, which is checked
// first.
func mixed(arguments m) bool {
	list, _ := arguments["socialPost"].([]m)
	return len(list) > 1
}

// askApproval lets the agent ask for an approval that queues the post, and returns the request's
// id.
func (s *service) askApproval(t testing.TB, a agent, post string) string {
	t.Helper()
	var asked struct{ ID, Status string }
	a.must(t, &asked, "service_request_approval", m{"id": post, "autoSchedule": true, "note": "Please look at this."})
	if asked.ID == "" || asked.Status != "PENDING" {
		t.Fatalf("got %+v, want a pending request", asked)
	}
	return asked.ID
}

// TestMustAsk_PublishedOnceAfterApproval checks that the person whose agent asked can approve, and
// that the post then goes out once.
func TestMustAsk_PublishedOnceAfterApproval(t *testing.T) {
	t.Parallel()
	s := common(t)
	p := s.owner(t)
	c := p.connect(t)
	a := agent{base: s.base, token: p.grant(t, s.native(t), func(f *form) { f.choose(t, mustAskLabel) }).Access}
	var made []struct{ PostID string }
	a.must(t, &made, "service_create_post", m{"socialPost": []m{postEntry("draft", in(8*time.Second), c.id, "Approved by a person.")}})
	id := s.askApproval(t, a, made[0].PostID)
	p.want(t, nil, http.MethodPost, "/approvals/"+id+"/resolve", m{"action": "approve"})
	key := rest{base: s.base, credential: p.key(t)}
	await(t, "the publication", func() bool { return key.state(t, made[0].PostID) == "PUBLISHED" }, func() string { return key.state(t, made[0].PostID) })
	if answer := p.ask(t, http.MethodPost, "/approvals/"+id+"/resolve", m{"action": "approve"}); answer.Status < 400 || answer.Status >= 500 {
		t.Errorf("the second approval: got %v, want a refusal", answer)
	}
	if n := s.published(t, c); n != 1 {
		t.Errorf("got %d posts on the platform, want 1", n)
	}
	var status struct{ Status string }
	a.must(t, &status, "service_get_approval_status", m{"id": made[0].PostID})
	if status.Status != "APPROVED" {
		t.Errorf("the agent sees %s, want APPROVED", status.Status)
	}
}
