package contract

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"crier/tenancy"
)

// bell is the response of GET /public/v1/notifications.
type bell struct {
	Notifications []notification
	Total, Page   int
	Limit         int
	HasMore       bool
}

type notification struct {
	ID, Content, CreatedAt, UpdatedAt, Kind string
	Link, IntegrationID, Picture            *string
	PostID, ErrorCode                       *string
	Count                                   int
	Closed                                  bool
}

var notificationMembers = []string{
	"id", "content", "link", "createdAt", "updatedAt", "kind", "count", "closed", "integrationId", "picture", "postId", "errorCode",
}

func (o org) bell(t *testing.T, query string) bell {
	t.Helper()
	return read[bell](t, o.get(t, "/notifications"+query).want(t, http.StatusOK))
}

// rings waits until the newest notification has this content, and returns the page.
func (o org) rings(t *testing.T, content string) (page bell) {
	t.Helper()
	eventually(t, content, func() bool {
		page = o.bell(t, "?page=0")
		return len(page.Notifications) > 0 && page.Notifications[0].Content == content
	}, func() any { return page })
	return page
}

// fails makes the scheduled posts of a channel fail.
func (o org) fails(t *testing.T, c channel, code, reason string) {
	t.Helper()
	o.tenant(t, `update post set state = 'ERROR', error = $2, error_code = $3 where channel_id = $1 and state = 'QUEUE'`, c.id, reason, code)
}

// unread returns the number of unread notifications that a session is shown.
func unread(t *testing.T, ask signedIn) int {
	t.Helper()
	a := ask(http.MethodGet, "/notifications", nil).want(t, http.StatusOK)
	members(t, a.raw(), "total")
	return read[struct{ Total int }](t, a).Total
}

type readList struct {
	LastReadNotifications string
	Notifications         []notification
}

func TestNotifications(t *testing.T) {
	t.Parallel()
	subjects(t, start(t, map[string]string{"TRUSTED_PROXIES": "127.0.0.1", "APP_LIMIT": "100000"}), map[string]subject{
		"count what happens to a channel":         testIncident,
		"name a channel to connect again":         testDeadChannel,
		"are read by each person":                 testRead,
		"of approvals":                            testApprovalBell,
		"have pages that are bounded":             testBellPages,
		"are read page by page":                   testReadPages,
		"of another organization do not exist":    testForeignBell,
		"that a person switched off are not told": testMutedBell,
	})
}

func testIncident(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	empty := o.get(t, "/notifications").want(t, http.StatusOK)
	members(t, empty.raw(), "notifications", "total", "page", "limit", "hasMore")
	if got := read[bell](t, empty); got.Total != 0 || got.Limit != 100 || got.HasMore || len(got.Notifications) != 0 {
		t.Errorf("got %+v for an organization without notifications", got)
	}
	c := o.channel(t, "A")
	o.tenant(t, `update channel set name = e'Ca\nfé <b>', picture = 'https://pictures.example/1' where id = $1`, c.id)
	first := o.create(t, later(c.id, part("one")))
	o.create(t, later(c.id, part("two")))
	o.fails(t, c, "rejected", "The text is too long.")
	page := o.rings(t, "2 posts on “Ca fé <b>” (Sandbox) failed: The text is too long.")
	o.create(t, later(c.id, part("three")))
	o.fails(t, c, "retries_used_up", "The platform is away.")
	again := o.rings(t, "3 posts on “Ca fé <b>” (Sandbox) failed: The text is too long.")
	for _, e := range elements(t, members(t, o.get(t, "/notifications").raw(), "notifications", "total", "page", "limit", "hasMore")["notifications"]) {
		members(t, e, notificationMembers...)
	}
	n := again.Notifications[0]
	if again.Total != 1 || n.ID != page.Notifications[0].ID || n.Count != 3 || n.Kind != "failed" || n.Closed || *n.IntegrationID != c.id || *n.ErrorCode != "rejected" || n.Link != nil {
		t.Errorf("got %+v, want one notification of the kind failed with the count 3", again)
	}
	if n.Picture == nil || *n.Picture != "https://pictures.example/1" {
		t.Errorf("got the picture %v, want that of the channel", n.Picture)
	}
	if n.PostID == nil || n.CreatedAt > n.UpdatedAt || o.post(t, *n.PostID).Posts == nil {
		t.Errorf("got %+v, want its first post, such as %s", n, first)
	}
	published := o.create(t, request("now", tomorrow(), entry(c.id, part("out"))))
	o.reaches(t, published, "PUBLISHED")
	out := o.rings(t, "Published 1 post on “Ca fé <b>” (Sandbox).")
	if len(out.Notifications) != 2 || !out.Notifications[1].Closed || out.Notifications[0].Kind != "published" {
		t.Errorf("got %+v, want the incident closed by the success", out)
	}
}

func testDeadChannel(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	o.tenant(t, `update channel set name = 'acme', refresh_needed = true, refresh_problem = 'The access was revoked.' where id = $1`, c.id)
	o.rings(t, "“acme” (Sandbox) must be reconnected: The access was revoked.")
	o.create(t, later(c.id, part("one")))
	o.fails(t, c, "missed", "Too late.")
	page := o.rings(t, "“acme” (Sandbox) must be reconnected, and 1 post could not be published in the meantime: The access was revoked.")
	if page.Total != 1 || page.Notifications[0].Kind != "reconnect" {
		t.Errorf("got %+v, want one notification", page)
	}
}

func testRead(t *testing.T, r *rig) {
	t.Parallel()
	o, other := r.organization(t), r.organization(t)
	ask, bob, elsewhere := o.dashboard(t), o.colleague(t, tenancy.RoleUser), other.dashboard(t)
	c := o.channel(t, "A")
	o.create(t, later(c.id, part("one")))
	o.fails(t, c, "rejected", "No.")
	eventually(t, "the notification", func() bool { return o.bell(t, "").Total == 1 }, func() any { return o.bell(t, "") })
	if a, b := unread(t, ask), unread(t, bob); a != 1 || b != 1 {
		t.Fatalf("got %d and %d unread, want 1 for each", a, b)
	}
	answer := ask(http.MethodGet, "/notifications/list", nil).want(t, http.StatusOK)
	members(t, answer.raw(), "lastReadNotifications", "notifications")
	first := read[readList](t, answer)
	if len(first.Notifications) != 1 || first.LastReadNotifications >= first.Notifications[0].UpdatedAt {
		t.Errorf("got %+v, want one notification that is newer than what was read", first)
	}
	if a, b, c := unread(t, ask), unread(t, bob), unread(t, elsewhere); a != 0 || b != 1 || c != 0 {
		t.Errorf("got %d unread for the reader, %d for a colleague and %d elsewhere, want 0, 1, 0", a, b, c)
	}
	second := read[readList](t, ask(http.MethodGet, "/notifications/list", nil).want(t, http.StatusOK))
	if second.LastReadNotifications != first.Notifications[0].UpdatedAt || len(second.Notifications) != 1 {
		t.Errorf("got %+v, want what was read until %s", second, first.Notifications[0].UpdatedAt)
	}
	o.create(t, later(c.id, part("two")))
	o.fails(t, c, "rejected", "No.")
	eventually(t, "the further failure", func() bool { return unread(t, ask) == 1 }, func() any { return o.bell(t, "") })
	late := o.colleague(t, tenancy.RoleUser)
	if n := unread(t, late); n != 0 {
		t.Errorf("got %d unread for a new member, want none of those before", n)
	}
	o.guest(t)(http.MethodGet, "/notifications", nil).refusal(t, http.StatusUnauthorized)
	o.guest(t)(http.MethodGet, "/notifications/list", nil).refusal(t, http.StatusUnauthorized)
}

func testApprovalBell(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	ask, bob := o.dashboard(t), o.colleague(t, tenancy.RoleUser)
	post := o.draft(t, part("x"))
	o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", m{"note": "Please\nread."}).want(t, http.StatusCreated)
	page := o.bell(t, "")
	if len(page.Notifications) != 1 {
		t.Fatalf("got %+v, want the request", page)
	}
	name := page.Notifications[0]
	if name.Kind != "approval" || !strings.HasSuffix(name.Content, "is waiting for approval: Please read.") || *name.PostID != post || name.IntegrationID != nil {
		t.Errorf("got %+v, want the request", name)
	}
	if a, b := unread(t, ask), unread(t, bob); a != 1 || b != 1 {
		t.Errorf("got %d and %d unread, want the request for each", a, b)
	}
	o.form(t, token(t, bob, post), url.Values{"action": {"reject"}, "note": {"Too long."}, "name": {"Client"}})
	if got := o.bell(t, "").Notifications[0]; !strings.Contains(got.Content, "was rejected: Too long.") {
		t.Errorf("got %+v, want the answer for the key of the person who asked", got)
	}
	if a, b := unread(t, ask), unread(t, bob); a != 2 || b != 1 {
		t.Errorf("got %d unread for who asked and %d for a colleague, want 2 and 1", a, b)
	}
}

func testBellPages(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	o.tenant(t, `insert into notification (org_id, id, kind, channel_id, posts, created_at, last_at, closed_at)
		select $1::text::uuid, gen_random_uuid(), 'failed', $2::text::uuid, n, now(), now() - n / 10 * interval '1 minute', now()
		from generate_series(1, 250) n`, o.who.Org.String(), c.id)
	seen := map[string]bool{}
	before := ""
	for page, want := range []int{100, 100, 50, 0} {
		got := o.bell(t, fmt.Sprint("?page=", page))
		if len(got.Notifications) != want || got.Total != 250 || got.Page != page || got.HasMore != (page < 2) {
			t.Errorf("page %d: got %d of %d, more %t, want %d of 250", page, len(got.Notifications), got.Total, got.HasMore, want)
		}
		for _, n := range got.Notifications {
			if seen[n.ID] || before != "" && n.UpdatedAt > before {
				t.Errorf("page %d: %s is there twice or is newer than the one before", page, n.ID)
			}
			seen[n.ID], before = true, n.UpdatedAt
		}
	}
	for _, query := range []string{"page=-1", "page=100", "page=x", "page=1.5", "page=99999999999999999999", "page=0x1", "page=%00"} {
		o.get(t, "/notifications?"+query).refusal(t, http.StatusBadRequest)
	}
	if got := o.bell(t, "?page="); got.Page != 0 || len(got.Notifications) != 100 {
		t.Errorf("got the page %d with %d for an empty number, want the first", got.Page, len(got.Notifications))
	}
	o.bell(t, "?page=99")
	list := read[readList](t, o.dashboard(t)(http.MethodGet, "/notifications/list", nil).want(t, http.StatusOK))
	if len(list.Notifications) != 100 {
		t.Errorf("got %d notifications, want the newest 100", len(list.Notifications))
	}
}

// testReadPages checks that notifications that a page of the list does not return stay unread.
func testReadPages(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A")
	o.tenant(t, `insert into notification (org_id, id, kind, channel_id, posts, created_at, last_at, closed_at)
		select $1::text::uuid, gen_random_uuid(), 'failed', $2::text::uuid, n, now(), now() + n / 10 * interval '1 second', now()
		from generate_series(1, 250) n`, o.who.Org.String(), c.id)
	ask := o.dashboard(t)
	for _, step := range []struct {
		query        string
		shown, after int
	}{
		{query: "", shown: 100, after: 150}, {query: "?page=0", shown: 100, after: 150},
		{query: "?page=2", shown: 50, after: 100}, {query: "?page=1", shown: 100, after: 0}, {query: "?page=3", shown: 0, after: 0},
	} {
		list := read[readList](t, ask(http.MethodGet, "/notifications/list"+step.query, nil).want(t, http.StatusOK))
		if n := unread(t, ask); len(list.Notifications) != step.shown || n != step.after {
			t.Errorf("list%s: got %d notifications and %d unread after it, want %d and %d",
				step.query, len(list.Notifications), n, step.shown, step.after)
		}
	}
	o.tenant(t, `update notification set last_at = now() + interval '1 minute' where posts = 7`)
	if n := unread(t, ask); n != 1 {
		t.Errorf("got %d unread after one was counted again, want 1", n)
	}
	ask(http.MethodGet, "/notifications/list?page=100", nil).refusal(t, http.StatusBadRequest)
}

func testForeignBell(t *testing.T, r *rig) {
	t.Parallel()
	mine, theirs := r.organization(t), r.organization(t)
	c := theirs.channel(t, "A")
	theirs.create(t, later(c.id, part("one")))
	theirs.fails(t, c, "rejected", "No.")
	eventually(t, "the notification", func() bool { return theirs.bell(t, "").Total == 1 }, func() any { return theirs.bell(t, "") })
	if got := mine.bell(t, ""); got.Total != 0 || len(got.Notifications) != 0 {
		t.Errorf("got %+v of another organization", got)
	}
	if n := unread(t, mine.dashboard(t)); n != 0 {
		t.Errorf("got %d unread of another organization", n)
	}
	list := read[readList](t, mine.dashboard(t)(http.MethodGet, "/notifications/list", nil).want(t, http.StatusOK))
	if len(list.Notifications) != 0 {
		t.Errorf("got %+v of another organization", list)
	}
}

func testMutedBell(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	ask, bob := o.dashboard(t), o.colleague(t, tenancy.RoleUser)
	bob(http.MethodPost, "/user/email-notifications", m{
		"sendSuccessEmails": false, "sendFailureEmails": false, "sendStreakEmails": false, "events": m{"channel": "off", "approval": "off"},
	}).want(t, http.StatusCreated)
	c := o.channel(t, "A")
	o.tenant(t, `update channel set refresh_needed = true where id = $1`, c.id)
	o.do(t, http.MethodPost, "/posts/"+o.draft(t, part("x"))+"/request-approval", nil).want(t, http.StatusCreated)
	eventually(t, "both", func() bool { return unread(t, ask) == 2 }, func() any { return o.bell(t, "") })
	list := read[readList](t, bob(http.MethodGet, "/notifications/list", nil).want(t, http.StatusOK))
	if n := unread(t, bob); n != 0 || len(list.Notifications) != 0 {
		t.Errorf("got %d unread and %+v for who switched them off, want none", n, list)
	}
	o.create(t, later(c.id, part("one")))
	o.fails(t, c, "rejected", "No.")
	eventually(t, "the failed post", func() bool { return unread(t, bob) == 1 }, func() any { return o.bell(t, "") })
	list = read[readList](t, bob(http.MethodGet, "/notifications/list", nil).want(t, http.StatusOK))
	if len(list.Notifications) != 1 || list.Notifications[0].Kind != "reconnect" || list.Notifications[0].Count != 1 {
		t.Errorf("got %+v for who switched channels off, want the one whose post has failed", list)
	}
}
