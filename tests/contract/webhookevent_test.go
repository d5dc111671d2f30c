package contract

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"crier/tenancy"
)

// eventCase is an action on a post and the events that it sends.
type eventCase struct {
	name string
	do   func(t *testing.T) (post string)
	want []string
}

// TestWebhookEvents_MatchThePage does with posts everything that the webhooks page names, including
// what sends nothing, and compares the deliveries of each post.
func TestWebhookEvents_MatchThePage(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&inbox{})
	t.Cleanup(server.Close)
	r := start(t, map[string]string{"OUTBOUND_ALLOW": strings.TrimPrefix(server.URL, "http://")})
	o := r.organization(t)
	h := read[hook](t, o.do(t, http.MethodPost, "/webhooks", m{"name": "All", "url": server.URL}).want(t, http.StatusCreated))
	posts, seen := map[string]string{}, map[string]bool{}
	all := append(o.stateCases(), o.approvalCases(t)...)
	for _, c := range all {
		posts[c.name] = c.do(t)
		for _, event := range c.want {
			seen[event] = true
		}
	}
	last := o.create(t, now(o.channel(t, "A").id, part("last")))
	o.reaches(t, last, "PUBLISHED")
	var log map[string][]string
	eventually(t, "the last event", func() bool {
		log = o.eventsOf(t, h)
		return len(log[last]) > 0
	}, func() any { return log })
	for _, c := range all {
		if got := log[posts[c.name]]; !slices.Equal(got, c.want) {
			t.Errorf("%s: got the events %v, want %v", c.name, got, c.want)
		}
	}
	if got, want := slices.Sorted(maps.Keys(seen)), r.pageEvents(t); !slices.Equal(got, want) {
		t.Errorf("the cases send %v, the page names %v, want the same", got, want)
	}
}

// eventsOf returns the events of a webhook's deliveries, keyed by post, oldest first.
func (o org) eventsOf(t *testing.T, h hook) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	list := read[[]delivery](t, o.get(t, "/webhooks/"+h.ID+"/deliveries?limit=50").want(t, http.StatusOK))
	for _, d := range slices.Backward(list) {
		if d.PostID != nil {
			out[*d.PostID] = append(out[*d.PostID], d.Event)
		}
	}
	return out
}

// pageEvents returns the events that the page of webhooks describes, sorted.
func (r *rig) pageEvents(t *testing.T) (out []string) {
	t.Helper()
	page, err := html.Parse(strings.NewReader(org{rig: r}.get(t, "/docs/webhooks").want(t, http.StatusOK).Body))
	if err != nil {
		t.Fatal(err)
	}
	for n := range page.Descendants() {
		if event, ok := strings.CutPrefix(attribute(n, "id"), "event-"); ok {
			out = append(out, event)
		}
	}
	slices.Sort(out)
	return out
}

func (o org) stateCases() []eventCase {
	const published, failed, changed = "post.published", "post.failed", "post.status_changed"
	draft := m{"status": "draft"}
	again := m{"status": "schedule", "republish": true}
	return []eventCase{
		{name: "a scheduled post is edited, moved and deleted", do: func(t *testing.T) string {
			c := o.channel(t, "A")
			id := o.create(t, later(c.id, part("x")))
			group := o.post(t, id).Group
			o.edits(t, id, request("update", tomorrow(), byGroup(c.id, group, part("y"))))
			o.edits(t, id, request("schedule", tomorrow().AddDate(0, 0, 1), byGroup(c.id, group, part("y"))))
			o.do(t, http.MethodPut, "/posts/"+id+"/settings", m{"settings": m{}}).want(t, http.StatusOK)
			o.deletes(t, "/posts/", id)
			return id
		}},
		{name: "a post is published", want: []string{published}, do: func(t *testing.T) string {
			id := o.create(t, now(o.channel(t, "A").id, part("x")))
			o.reaches(t, id, "PUBLISHED")
			return id
		}},
		{name: "a draft is scheduled by its status", want: []string{changed}, do: func(t *testing.T) string {
			id := o.draft(t, part("x"))
			o.changeStatus(t, id, m{"status": "schedule"}).want(t, http.StatusOK)
			return id
		}},
		{name: "a draft is scheduled by an edit", want: []string{changed}, do: func(t *testing.T) string {
			c := o.channel(t, "A")
			id := o.create(t, request("draft", tomorrow(), entry(c.id, part("x"))))
			o.edits(t, id, request("schedule", tomorrow(), byGroup(c.id, o.post(t, id).Group, part("x"))))
			return id
		}},
		{name: "a scheduled post is made a draft", want: []string{changed}, do: func(t *testing.T) string {
			id := o.create(t, later(o.channel(t, "A").id, part("x")))
			o.changeStatus(t, id, draft).want(t, http.StatusOK)
			return id
		}},
		{name: "a published post is published again", want: []string{published, changed, published}, do: func(t *testing.T) string {
			c := o.channel(t, "A")
			id := o.create(t, now(c.id, part("x")))
			o.reaches(t, id, "PUBLISHED")
			o.changeStatus(t, id, again).want(t, http.StatusOK)
			o.publishes(t, c, 2)
			o.reaches(t, id, "PUBLISHED")
			return id
		}},
		{name: "a post fails and is made a draft", want: []string{failed, changed}, do: func(t *testing.T) string {
			c := o.channel(t, "A")
			id := o.create(t, later(c.id, part("x")))
			o.fails(t, c, "rejected", "It was refused.")
			o.changeStatus(t, id, draft).want(t, http.StatusOK)
			return id
		}},
	}
}

func (o org) approvalCases(t *testing.T) []eventCase {
	const requested, resolved, changed = "approval.requested", "approval.resolved", "post.status_changed"
	ask := o.colleague(t, tenancy.RoleAdmin)
	asked := func(t *testing.T, body m) (post, request string) {
		post = o.draft(t, part("x"))
		a := o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", body).want(t, http.StatusCreated)
		return post, read[approvalRecord](t, a).ID
	}
	return []eventCase{
		{name: "a request is withdrawn", want: []string{requested, resolved}, do: func(t *testing.T) string {
			post, request := asked(t, m{})
			o.do(t, http.MethodDelete, "/approvals/"+request, nil).want(t, http.StatusOK)
			return post
		}},
		{name: "a post is approved and scheduled", want: []string{requested, resolved, changed}, do: func(t *testing.T) string {
			post, _ := asked(t, m{"autoSchedule": true})
			path := "/public/approval-review/" + token(t, ask, post) + "/resolve"
			o.guest(t)(http.MethodPost, path, m{"action": "approve", "reviewerName": "Ada"}).want(t, http.StatusCreated)
			return post
		}},
		{name: "a post is edited that waits for approval", want: []string{requested, resolved}, do: func(t *testing.T) string {
			c := o.channel(t, "A")
			post := o.create(t, request("draft", tomorrow(), entry(c.id, part("x"))))
			o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", m{}).want(t, http.StatusCreated)
			o.edits(t, post, request("draft", tomorrow(), byGroup(c.id, o.post(t, post).Group, part("y"))))
			return post
		}},
	}
}
