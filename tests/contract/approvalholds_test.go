package contract

import (
	"bytes"
	"image"
	imagepng "image/png"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"crier/apps/edge"
	"crier/tenancy"
)

// desk is an organization with two files and two people: the owner, whose key requests approvals,
// and the reviewer.
type desk struct {
	org
	cat, dog      medium
	own, reviewer signedIn
}

func (r *rig) desk(t *testing.T) desk {
	t.Helper()
	o := r.organization(t)
	return desk{
		org: o, own: o.dashboard(t), reviewer: o.colleague(t, tenancy.RoleAdmin),
		cat: o.stored(t, "cat.png", square(t, 2)), dog: o.stored(t, "dog.png", square(t, 3)),
	}
}

// square returns a square PNG with the given side.
func square(t *testing.T, size int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := imagepng.Encode(&out, image.NewGray(image.Rect(0, 0, size, size))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// approvedPost is a post that is queued because the reviewer approved it.
type approvedPost struct {
	desk
	c                   channel
	id, group, approval string
}

// outcome is what a request may do to an approved post.
type outcome string

const (
	// keeps means that the post stays in the queue as it was approved.
	keeps outcome = "keeps"
	// drafts means that the post becomes a draft and the approval is void.
	drafts outcome = "drafts"
	// refuses means that the request fails and changes nothing.
	refuses outcome = "refuses"
	// removes means that the post is gone.
	removes outcome = "removes"
)

// approvalChange is one request to a route, with its effect on an approved post.
type approvalChange struct {
	name string
	want outcome
	do   func(t *testing.T, a approvedPost) answer
}

// approved returns a post that is approved and queued. more holds additional members for the
// request that creates the post.
func (d desk) approved(t *testing.T, more m) approvedPost {
	t.Helper()
	a := approvedPost{desk: d, c: d.channel(t, "A")}
	body := repeating(a.request("draft", tomorrow(), nil), more)
	a.id = a.create(t, body)
	a.approves(t)
	a.group = a.wantState(t, a.id, "QUEUE").Group
	return a
}

// parts returns the parts with the approved content.
func (d desk) parts() []m {
	return []m{
		part("first", m{"id": d.cat.ID, "alt": "A cat"}, m{"id": d.dog.ID, "alt": "A dog"}), part("second"),
		{"content": "a minute later", "delay": 1},
	}
}

// approves requests approval of the draft with autoSchedule, and has the reviewer approve it.
func (a *approvedPost) approves(t *testing.T) {
	t.Helper()
	made := a.do(t, http.MethodPost, "/posts/"+a.id+"/request-approval", m{"autoSchedule": true}).want(t, http.StatusCreated)
	a.approval = read[approvalRecord](t, made).ID
	a.reviewer(http.MethodPost, "/approvals/"+a.approval+"/resolve", m{"action": "approve"}).want(t, http.StatusCreated)
}

// request returns a body with the approved content, after change has been applied to the entry and
// its parts.
func (a approvedPost) request(kind string, at time.Time, change func(e m, parts []m)) m {
	parts := a.parts()
	e := byGroup(a.c.id, a.group, parts...)
	e["settings"] = m{"title": "Approved"}
	if change != nil {
		change(e, parts)
	}
	return request(kind, at, e)
}

// approvalEdits returns the changes that POST /posts can make with one type.
func approvalEdits(kind string) (out []approvalChange) {
	changes := map[string]func(e m, parts []m){
		"another text":            func(_ m, parts []m) { parts[0]["content"] = "changed" },
		"another text of a reply": func(_ m, parts []m) { parts[1]["content"] = "changed" },
		"another follow-up":       func(_ m, parts []m) { parts[2]["content"] = "changed" },
		"another delay":           func(_ m, parts []m) { parts[2]["delay"] = 5 },
		"another format":          func(_ m, parts []m) { parts[0]["contentType"] = "html" },
		"a new part":              func(e m, parts []m) { e["value"] = append(parts, part("new")) },
		"one part less":           func(e m, parts []m) { e["value"] = parts[:2] },
		"parts in another order":  func(e m, parts []m) { e["value"] = []m{parts[1], parts[0], parts[2]} },
		"files in another order":  func(_ m, parts []m) { slices.Reverse(parts[0]["image"].([]any)) },
		"one file less":           func(_ m, parts []m) { parts[0]["image"] = parts[0]["image"].([]any)[:1] },
		"another alternative text": func(_ m, parts []m) {
			parts[0]["image"].([]any)[0] = m{"id": parts[0]["image"].([]any)[0].(m)["id"], "alt": "No cat"}
		},
		"other settings": func(e m, _ []m) { e["settings"] = m{"title": "Changed"} },
		"fewer settings": func(e m, _ []m) { e["settings"] = m{} },
	}
	for name, change := range changes {
		out = append(out, approvalChange{name: kind + " with " + name, want: drafts, do: func(t *testing.T, a approvedPost) answer {
			return a.do(t, http.MethodPost, "/posts", a.request(kind, tomorrow(), change))
		}})
	}
	return out
}

// sends returns a change that sends one request with the key.
func sends(name string, want outcome, method string, path func(a approvedPost) string, body any) approvalChange {
	return approvalChange{name: name, want: want, do: func(t *testing.T, a approvedPost) answer {
		return a.do(t, method, path(a), body)
	}}
}

// asks is like sends but uses a session of the owner.
func asks(name string, want outcome, method string, path func(a approvedPost) string, body any) approvalChange {
	return approvalChange{name: name, want: want, do: func(_ *testing.T, a approvedPost) answer {
		return a.own(method, path(a), body)
	}}
}

func postPath(suffix string) func(approvedPost) string {
	return func(a approvedPost) string { return "/posts/" + a.id + suffix }
}

// approvalRoutes returns the changes that can be made through each route that affects a post, its
// files or its channel.
func approvalRoutes() map[string][]approvalChange {
	posts := slices.Concat(approvalEdits("update"), approvalEdits("schedule"), []approvalChange{
		{name: "update with another date", want: keeps, do: func(t *testing.T, a approvedPost) answer {
			return a.do(t, http.MethodPost, "/posts", a.request("update", tomorrow().AddDate(0, 0, 3), nil))
		}},
		{name: "schedule with another date", want: keeps, do: func(t *testing.T, a approvedPost) answer {
			return a.do(t, http.MethodPost, "/posts", a.request("schedule", tomorrow().AddDate(0, 0, 3), nil))
		}},
		{name: "now with another text", want: drafts, do: func(t *testing.T, a approvedPost) answer {
			return a.do(t, http.MethodPost, "/posts", a.request("now", time.Now(), func(_ m, parts []m) { parts[0]["content"] = "changed" }))
		}},
		{name: "by the id of its first part", want: drafts, do: func(t *testing.T, a approvedPost) answer {
			return a.do(t, http.MethodPost, "/posts", request("schedule", tomorrow(), entry(a.c.id, m{"id": a.id, "content": "changed"})))
		}},
		{name: "that begins to repeat with another text", want: drafts, do: func(t *testing.T, a approvedPost) answer {
			body := a.request("schedule", tomorrow(), func(_ m, parts []m) { parts[0]["content"] = "changed" })
			return a.do(t, http.MethodPost, "/posts", repeating(body, m{"inter": 1}))
		}},
		{name: "with other tags", want: keeps, do: func(t *testing.T, a approvedPost) answer {
			a.tag(t, "News")
			return a.do(t, http.MethodPost, "/posts", repeating(a.request("update", tomorrow(), nil), m{"tags": []string{"News"}}))
		}},
	})
	file := func(a approvedPost) string { return "/media/" + a.cat.ID }
	channel := func(suffix string) func(approvedPost) string {
		return func(a approvedPost) string { return "/integrations/" + a.c.id + suffix }
	}
	return map[string][]approvalChange{
		"POST /public/v1/posts": posts,
		"PUT /public/v1/posts/{id}/settings": {
			sends("another setting", drafts, http.MethodPut, postPath("/settings"), m{"settings": m{"title": "Changed"}}),
			sends("a new setting", drafts, http.MethodPut, postPath("/settings"), m{"settings": m{"other": 1}}),
			sends("a setting less", drafts, http.MethodPut, postPath("/settings"), m{"settings": m{"title": nil}}),
			sends("the same setting", keeps, http.MethodPut, postPath("/settings"), m{"settings": m{"title": "Approved"}}),
		},
		"PUT /public/v1/posts/{id}/status": {
			sends("schedule", keeps, http.MethodPut, postPath("/status"), m{"status": "schedule"}),
			{name: "draft and schedule", want: keeps, do: func(t *testing.T, a approvedPost) answer {
				a.changeStatus(t, a.id, m{"status": "draft"}).want(t, http.StatusOK)
				return a.changeStatus(t, a.id, m{"status": "schedule"})
			}},
		},
		"DELETE /public/v1/posts/{id}":                {sends("delete", removes, http.MethodDelete, postPath(""), nil)},
		"DELETE /public/v1/posts/group/{group}":       {sends("delete", removes, http.MethodDelete, func(a approvedPost) string { return "/posts/group/" + a.group }, nil)},
		"PUT /public/v1/posts/{id}/release-id":        {sends("release", refuses, http.MethodPut, postPath("/release-id"), m{"releaseId": "x"})},
		"PUT /posts/{id}/release-id":                  {asks("release", refuses, http.MethodPut, postPath("/release-id"), m{"releaseId": "x"})},
		"POST /public/v1/posts/{id}/request-approval": {sends("again", refuses, http.MethodPost, postPath("/request-approval"), m{})},
		"DELETE /public/v1/approvals/{id}":            {sends("withdraw", drafts, http.MethodDelete, func(a approvedPost) string { return "/approvals/" + a.approval }, nil)},
		"DELETE /approvals/{id}":                      {asks("withdraw", drafts, http.MethodDelete, func(a approvedPost) string { return "/approvals/" + a.approval }, nil)},
		"POST /approvals/{id}/resolve": {{name: "a second answer", want: refuses, do: func(_ *testing.T, a approvedPost) answer {
			return a.reviewer(http.MethodPost, "/approvals/"+a.approval+"/resolve", m{"action": "reject", "note": "No."})
		}}},
		"DELETE /public/v1/media/{id}": {sends("delete", refuses, http.MethodDelete, file, nil)},
		"DELETE /media/{id}":           {asks("delete", refuses, http.MethodDelete, file, nil)},
		"POST /media/information": {{name: "another alternative text", want: keeps, do: func(_ *testing.T, a approvedPost) answer {
			return a.own(http.MethodPost, "/media/information", m{"id": a.cat.ID, "alt": "No cat"})
		}}},
		"PUT /public/v1/integrations/{id}/queue-plan": {sends("other times", keeps, http.MethodPut, channel("/queue-plan"), m{"time": []m{{"time": 60}}})},
		"PUT /integrations/{id}/queue-plan":           {asks("other times", keeps, http.MethodPut, channel("/queue-plan"), m{"time": []m{{"time": 60}}})},
		"POST /integrations/{id}/time":                {asks("other times", keeps, http.MethodPost, channel("/time"), m{"time": []m{{"time": 60}}})},
		"PUT /integrations/{id}/pause":                {asks("pause", keeps, http.MethodPut, channel("/pause"), m{"paused": true})},
		"PUT /settings/pause":                         {asks("pause", keeps, http.MethodPut, func(approvedPost) string { return "/settings/pause" }, m{"paused": true})},
		"PUT /settings/organization":                  {asks("another name", keeps, http.MethodPut, func(approvedPost) string { return "/settings/organization" }, m{"name": "Other"})},
		"DELETE /public/v1/integrations/{id}":         {sends("disconnect", removes, http.MethodDelete, channel(""), nil)},
	}
}

// harmless lists the other routes that change something, by part of their path, with the reason why
// the published content stays the same.
var harmless = map[string]string{
	"/auth/": "it is about a session", "/user/": "it is about a person or a membership", "/enterprise/": "it makes an account",
	"/settings/api-keys": "it is about a key", "/settings/delete": "nothing is published any more",
	"/settings/invitations": "it is about a membership", "/settings/team": "it is about a membership",
	"/settings/provider-credentials": "the application of a channel is not part of a post",
	"/webhooks":                      "it only sends what has happened", "/tags": "tags are not published", "/public/t": "it counts a visit",
	"/posts/check": "it stores nothing", "/upload": "a new file is in no post",
	"/connect/": "a channel that is connected again is the same account", "/integrations/social-connect": "as /connect/",
	"/provider/": "as /connect/", "/connectors/": "as /connect/", "/integration-trigger/": "it asks the platform",
	"/integrations/function": "it asks the platform", "/review/": "a second answer is refused: see approvals",
	"/approval-review/": "as /review/", "/customers/{id}/pause": "as the pause of a channel",
	"/oauth/": "it is about an app's access", "/device": "as /oauth/", "/settings/agents": "as /oauth/",
	"/mcp": "its tools call the use cases of the other routes",
}

// unsafeRoutes returns the routes that may change something, without the second mount of the public
// API.
func unsafeRoutes() (out []string) {
	for _, r := range edge.Routes() {
		if r.State == edge.Built && r.Method != http.MethodGet && !strings.HasPrefix(r.Path, "/api/public/") {
			out = append(out, r.String())
		}
	}
	return out
}

// TestApprovalHolds_OnEveryRoute fails for a new route that may change something until
// approvalRoutes has a case for it or harmless has a reason.
func TestApprovalHolds_OnEveryRoute(t *testing.T) {
	t.Parallel()
	cases := approvalRoutes()
	for _, route := range unsafeRoutes() {
		isHarmless := false
		for part := range harmless {
			isHarmless = isHarmless || strings.Contains(route, part)
		}
		if (len(cases[route]) > 0) == isHarmless {
			t.Errorf("%s has %d cases, and harmless: %v; want one of them", route, len(cases[route]), isHarmless)
		}
	}
	r := start(t, map[string]string{"TRUSTED_PROXIES": "127.0.0.1", "APP_LIMIT": "100000"})
	for route, changes := range cases {
		if !slices.Contains(unsafeRoutes(), route) {
			t.Errorf("there is no route %s", route)
		}
		t.Run(route, func(t *testing.T) {
			t.Parallel()
			d := r.desk(t)
			for _, c := range changes {
				a := d.approved(t, nil)
				before := a.post(t, a.id)
				a.check(t, c, before, c.do(t, a))
			}
		})
	}
}

// check checks that a change had the expected outcome.
func (a approvedPost) check(t *testing.T, c approvalChange, before record, got answer) {
	t.Helper()
	if (got.Status >= 400) != (c.want == refuses) {
		t.Fatalf("%s is answered with %v, want that it %s", c.name, got, c.want)
	}
	if c.want == removes {
		return // a post that was deleted or has no channel is not published
	}
	state, approval := "QUEUE", `"status":"APPROVED"`
	if c.want == drafts {
		state, approval = "DRAFT", `"status":"NONE"`
	}
	after := a.wantState(t, a.id, state)
	if status := a.get(t, "/posts/"+a.id+"/approval").want(t, http.StatusOK); !strings.Contains(status.Body, approval) {
		t.Errorf("%s: the approval is %s, want %s", c.name, status.Body, approval)
	}
	if c.want != drafts && after.contents() != before.contents() {
		t.Errorf("%s: the content is %q, want %q", c.name, after.contents(), before.contents())
	}
	if c.want == drafts && got.Status == http.StatusCreated {
		for _, member := range []string{`"state":"DRAFT"`, `"approval":"VOID"`} {
			if !strings.Contains(got.Body, member) {
				t.Errorf("%s is answered with %s, want %s in it", c.name, got.Body, member)
			}
		}
	}
	if c.want == drafts && !slices.Contains(after.events(), "approval_void") {
		t.Errorf("%s: the timeline has %v, want approval_void", c.name, after.events())
	}
}

func TestApprovalHolds(t *testing.T) {
	t.Parallel()
	box := &inbox{}
	server := httptest.NewServer(box)
	t.Cleanup(server.Close)
	r := start(t, map[string]string{
		"TRUSTED_PROXIES": "127.0.0.1", "APP_LIMIT": "100000", "OUTBOUND_ALLOW": strings.TrimPrefix(server.URL, "http://"),
	})
	subjects(t, r, map[string]subject{
		"whoever asked and approved is told":          func(t *testing.T, r *rig) { testApprovalEndIsTold(t, r, server.URL) },
		"an administrator may override":               testApprovalOverride,
		"changed content is not scheduled":            testApprovalScheduling,
		"a new approval schedules the new content":    testApprovalAgain,
		"a repeated request has the first answer":     testApprovalReplay,
		"an edited draft loses its approval":          testApprovedDraft,
		"a series repeats what was approved":          testApprovedSeries,
		"a series does not begin before its approval": testUnapprovedSeries,
		"a withdrawal holds the series":               testWithdrawnSeries,
		"the sender publishes only what was approved": testApprovalOfSender,
		"members are named as they are called today":  testReviewerNames,
	})
}

// changes replaces the text of an approved post.
func (a approvedPost) changes(t *testing.T, kind string, more m) answer {
	t.Helper()
	body := a.request(kind, tomorrow(), func(_ m, parts []m) { parts[0]["content"] = "changed" })
	return a.do(t, http.MethodPost, "/posts", repeating(body, more))
}

func testApprovalEndIsTold(t *testing.T, r *rig, receiver string) {
	t.Parallel()
	d := r.desk(t)
	h := read[hook](t, d.do(t, http.MethodPost, "/webhooks", m{"name": "All", "url": receiver}).want(t, http.StatusCreated))
	a := d.approved(t, nil)
	asked, approved := unread(t, a.own), unread(t, a.reviewer)
	a.changes(t, "update", nil).want(t, http.StatusCreated)
	if n, of := unread(t, a.own), unread(t, a.reviewer); n != asked+1 || of != approved+1 {
		t.Errorf("got %d and %d unread after %d and %d, want one more for each", n, of, asked, approved)
	}
	for who, ask := range map[string]signedIn{"who asked": a.own, "who approved": a.reviewer} {
		list := ask(http.MethodGet, "/notifications/list", nil).want(t, http.StatusOK)
		if !strings.Contains(list.Body, "The approval of the post for") || !strings.Contains(list.Body, "no longer applies: The post was changed.") {
			t.Errorf("%s is told %s, want that the approval no longer applies", who, list.Body)
		}
	}
	var bodies []string
	eventually(t, "the event of the end", func() bool {
		list := read[[]delivery](t, a.get(t, "/webhooks/"+h.ID+"/deliveries?limit=50").want(t, http.StatusOK))
		bodies = nil
		for _, x := range list {
			if x.Event == "approval.resolved" {
				bodies = append(bodies, x.Body)
			}
		}
		return len(bodies) == 2
	}, func() any { return bodies })
	if !strings.Contains(strings.Join(bodies, " "), `"status":"VOID"`) {
		t.Errorf("the webhook got %v, want one of the status VOID", bodies)
	}
	a.tenant(t, `select 1 / count(*)::int from notification n join member m on m.person_id = n.person_id
		where n.answer = 'void' and n.mail_at is not null having count(distinct n.person_id) = 2`)
}

func testApprovalOverride(t *testing.T, r *rig) {
	t.Parallel()
	d := r.desk(t)
	for name, change := range map[string]func(a approvedPost) answer{
		"POST /posts": func(a approvedPost) answer { return a.changes(t, "update", m{"override": true}) },
		"PUT /posts/{id}/settings": func(a approvedPost) answer {
			return a.do(t, http.MethodPut, "/posts/"+a.id+"/settings", m{"settings": m{"title": "Changed"}, "override": true})
		},
		"PUT /posts/{id}/status": func(a approvedPost) answer {
			a.changes(t, "update", nil).want(t, http.StatusCreated)
			return a.changeStatus(t, a.id, m{"status": "schedule", "override": true})
		},
	} {
		a := d.approved(t, nil)
		if got := change(a); got.Status >= 400 {
			t.Fatalf("%s with override is answered with %v", name, got)
		}
		a.wantState(t, a.id, "QUEUE")
		if got := a.get(t, "/posts/"+a.id+"/approval"); !strings.Contains(got.Body, `"NONE"`) {
			t.Errorf("%s: after an override the approval is %s, want NONE", name, got.Body)
		}
		log := a.own(http.MethodGet, "/settings/audit?action=approval.overridden", nil).want(t, http.StatusOK)
		if !strings.Contains(log.Body, "post "+a.id+" by "+d.email) {
			t.Errorf("%s: the audit log is %s, want the override by %s", name, log.Body, d.email)
		}
		a.changeStatus(t, a.id, m{"status": "draft"}).want(t, http.StatusOK)
		a.changeStatus(t, a.id, m{"status": "schedule"}).want(t, http.StatusOK)
	}
	a := d.approved(t, nil)
	a.tenant(t, `update api_key set created_by = null`)
	key, _, err := d.app.Accounts.CreateKey(t.Context(), asOperator(d.who), tenancy.NewKey{Name: "other"})
	if err != nil {
		t.Fatal(err)
	}
	a.tenant(t, `update api_key set created_by = null where name = 'other'`)
	a.key = key
	a.changes(t, "update", m{"override": true}).refusal(t, http.StatusForbidden)
	a.wantState(t, a.id, "QUEUE")
	a.do(t, http.MethodPost, "/posts", repeating(a.request("update", tomorrow(), nil), m{"override": "yes"})).refusal(t, http.StatusBadRequest)
}

func testApprovalScheduling(t *testing.T, r *rig) {
	t.Parallel()
	a := r.desk(t).approved(t, nil)
	a.changes(t, "update", nil).want(t, http.StatusCreated)
	refused := a.changeStatus(t, a.id, m{"status": "schedule"})
	refused.refusal(t, http.StatusConflict)
	if !strings.Contains(refused.Body, "not what was approved") {
		t.Errorf("got %s, want the reason", refused.Body)
	}
	for _, kind := range []string{"schedule", "now"} {
		a.changes(t, kind, nil).want(t, http.StatusCreated)
		a.wantState(t, a.id, "DRAFT")
	}
	// The approval has ended, so even the approved content needs a new approval.
	a.do(t, http.MethodPost, "/posts", a.request("schedule", tomorrow(), nil)).want(t, http.StatusCreated)
	a.wantState(t, a.id, "DRAFT")
	a.changeStatus(t, a.id, m{"status": "schedule"}).refusal(t, http.StatusConflict)
}

func testApprovalAgain(t *testing.T, r *rig) {
	t.Parallel()
	a := r.desk(t).approved(t, nil)
	a.changes(t, "update", nil).want(t, http.StatusCreated)
	a.approves(t)
	if got := a.wantState(t, a.id, "QUEUE"); !strings.HasPrefix(got.contents(), "changed") {
		t.Errorf("the post is %q, want the new content", got.contents())
	}
}

func testApprovalReplay(t *testing.T, r *rig) {
	t.Parallel()
	a := r.desk(t).approved(t, nil)
	body := a.request("update", tomorrow(), func(_ m, parts []m) { parts[0]["content"] = "changed" })
	first := a.do(t, http.MethodPost, "/posts", body, "Idempotency-Key", "once").want(t, http.StatusCreated)
	second := a.do(t, http.MethodPost, "/posts", body, "Idempotency-Key", "once").want(t, http.StatusCreated)
	if first.Body != second.Body || !strings.Contains(second.Body, `"VOID"`) {
		t.Errorf("the answers are %s and %s, want the same", first.Body, second.Body)
	}
}

func testApprovedDraft(t *testing.T, r *rig) {
	t.Parallel()
	d := r.desk(t)
	a := approvedPost{desk: d, c: d.channel(t, "A")}
	a.id = a.create(t, a.request("draft", tomorrow(), nil))
	made := a.do(t, http.MethodPost, "/posts/"+a.id+"/request-approval", m{}).want(t, http.StatusCreated)
	a.approval, a.group = read[approvalRecord](t, made).ID, a.post(t, a.id).Group
	a.reviewer(http.MethodPost, "/approvals/"+a.approval+"/resolve", m{"action": "approve"}).want(t, http.StatusCreated)
	got := a.changes(t, "draft", nil).want(t, http.StatusCreated)
	if strings.Contains(got.Body, `"state"`) || !strings.Contains(got.Body, `"approval":"VOID"`) {
		t.Errorf("the answer is %s, want the approval alone", got.Body)
	}
	a.changeStatus(t, a.id, m{"status": "schedule"}).refusal(t, http.StatusConflict)
}

// occurrences returns the first occurrences of the repeated post, starting at begin.
func (a approvedPost) occurrences(t *testing.T) []record {
	t.Helper()
	return a.between(t, begin.Add(-time.Hour), begin.Add(3*day+time.Hour))
}

func testApprovedSeries(t *testing.T, r *rig) {
	t.Parallel()
	a := r.desk(t).approved(t, m{"date": begin.Format(time.RFC3339), "inter": 1})
	list := a.occurrences(t)
	if len(list) != 4 {
		t.Fatalf("got %d occurrences, want 4", len(list))
	}
	// One occurrence is changed alone before it is stored. It must not be published without a new
	// approval.
	a.do(t, http.MethodPost, "/posts", request("update", begin.Add(2*day), entry(a.c.id, m{"id": list[2].ID, "content": "alone"}))).want(t, 201)
	a.wantState(t, list[2].ID, "DRAFT")
	// This skips the first. The next one is stored with the approved content.
	a.deletes(t, "/posts/", a.id)
	next := a.wantState(t, list[1].ID, "QUEUE")
	if !strings.HasPrefix(next.contents(), "first") {
		t.Errorf("the next occurrence is %q", next.contents())
	}
	// The series is changed. No occurrence may be published before the new content is approved.
	body := request("update", begin.Add(day), byGroup(a.c.id, next.Group, part("new")))
	got := a.do(t, http.MethodPost, "/posts", repeating(body, m{"inter": 1})).want(t, http.StatusCreated)
	if !strings.Contains(got.Body, `"state":"DRAFT"`) {
		t.Errorf("the answer is %s, want a draft", got.Body)
	}
	a.deletes(t, "/posts/", next.ID)
	for _, o := range a.between(t, begin, begin.Add(30*day)) {
		if o.ActualDate == "" && o.State != "DRAFT" {
			t.Errorf("the occurrence of %s has the state %s, want DRAFT", o.Date, o.State)
		}
	}
}

func testUnapprovedSeries(t *testing.T, r *rig) {
	t.Parallel()
	d := r.desk(t)
	a := approvedPost{desk: d, c: d.channel(t, "A")}
	a.id = a.create(t, repeating(a.request("draft", begin, nil), m{"inter": 1}))
	made := a.do(t, http.MethodPost, "/posts/"+a.id+"/request-approval", m{}).want(t, http.StatusCreated)
	a.approval = read[approvalRecord](t, made).ID
	a.deletes(t, "/posts/", a.id)
	var next record
	eventually(t, "the next occurrence", func() bool {
		for _, o := range a.occurrences(t) {
			next = a.post(t, o.ID)
			if next.ActualDate == "" {
				return true
			}
		}
		return false
	}, func() any { return next })
	a.wantState(t, next.ID, "DRAFT")
	a.changeStatus(t, next.ID, m{"status": "schedule"}).refusal(t, http.StatusConflict)
	a.id = next.ID
	a.approves(t)
	a.wantState(t, next.ID, "QUEUE")
	a.deletes(t, "/posts/", next.ID)
	a.wantState(t, a.occurrences(t)[0].ID, "QUEUE")
}

func testWithdrawnSeries(t *testing.T, r *rig) {
	t.Parallel()
	a := r.desk(t).approved(t, m{"date": begin.Format(time.RFC3339), "inter": 1})
	a.do(t, http.MethodDelete, "/approvals/"+a.approval, nil).want(t, http.StatusOK)
	a.wantState(t, a.id, "DRAFT")
	a.deletes(t, "/posts/", a.id)
	for _, o := range a.occurrences(t) {
		if o.ActualDate == "" && o.State != "DRAFT" {
			t.Errorf("the occurrence of %s has the state %s, want DRAFT", o.Date, o.State)
		}
	}
}

// testApprovalOfSender checks that content changed by code that ignores approvals is not published.
func testApprovalOfSender(t *testing.T, r *rig) {
	t.Parallel()
	a := r.desk(t).approved(t, nil)
	a.tenant(t, `update part set content = 'forged' where post_id = $1`, a.id)
	a.tenant(t, `update post set due = now(), publish_date = now() where id = $1`, a.id)
	got := a.reaches(t, a.id, "ERROR")
	if !strings.Contains(a.get(t, "/posts/"+a.id).Body, `"errorCode":"unapproved"`) {
		t.Errorf("got the post %+v, want the code unapproved", got)
	}
	whole := a.desk.approved(t, nil)
	whole.tenant(t, `update post set due = now(), publish_date = now() where id = $1`, whole.id)
	var events []string
	eventually(t, "the first part", func() bool {
		events = whole.post(t, whole.id).events()
		return slices.Contains(events, "sent")
	}, func() any { return events })
}

func testReviewerNames(t *testing.T, r *rig) {
	t.Parallel()
	d := r.desk(t)
	a := d.approved(t, nil)
	found := read[approvalRecord](t, a.get(t, "/posts/"+a.id+"/approval").want(t, http.StatusOK))
	if found.ReviewerName == nil || !strings.HasPrefix(*found.ReviewerName, "colleague-") {
		t.Errorf("the reviewer is %v, want the member", found.ReviewerName)
	}
	a.tenant(t, `select 1 / (select count(*)::int from approval where resolved_by is not null and reviewer_name is null)`)
	team := read[struct {
		Users []struct {
			Role string
			User struct{ ID string }
		}
	}](t, a.own(http.MethodGet, "/settings/team", nil).want(t, http.StatusOK))
	for _, member := range team.Users {
		if member.Role != "SUPERADMIN" {
			a.own(http.MethodDelete, "/settings/team/"+member.User.ID, nil).want(t, http.StatusOK)
		}
	}
	found = read[approvalRecord](t, a.get(t, "/posts/"+a.id+"/approval").want(t, http.StatusOK))
	if *found.ReviewerName != "a former member" {
		t.Errorf("the reviewer is %q, want a former member", *found.ReviewerName)
	}
}
