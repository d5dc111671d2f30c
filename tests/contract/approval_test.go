package contract

import (
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"crier/tenancy"
	"crier/tests/call"
)

// approvalRecord is a request for approval.
type approvalRecord struct {
	ID, PostID, Status, RequestedAt, ExpiresAt string
	Note, ReviewerNote, ReviewerName           *string
	ResolvedAt, ReviewURL                      *string
	AutoSchedule                               bool
	RequestedBy                                *struct{ ID, Email string }
}

type signedIn = func(method, path string, body any, headers ...string) answer

// colleague returns a session of another member of the organization.
func (o org) colleague(t *testing.T, role tenancy.Role) signedIn {
	t.Helper()
	_, link, err := o.app.Accounts.Invite(t.Context(), o.who, tenancy.NewInvitation{Role: role})
	if err != nil {
		t.Fatal(err)
	}
	in, err := o.app.Accounts.Register(t.Context(), tenancy.Registration{
		Email: fmt.Sprintf("colleague-%d@crier.test", o.names.Add(1)), Name: "Colleague", Password: password, Invitation: link,
		From: tenancy.Source{Client: "203.0.113.9", Site: "203.0.113.9"},
	})
	if err != nil {
		t.Fatal(err)
	}
	visitor := o
	visitor.prefix, visitor.key = "", ""
	return func(method, path string, body any, headers ...string) answer {
		t.Helper()
		return visitor.do(t, method, path, body, append(headers, "auth", in.Session, "showorg", o.who.Org.String())...)
	}
}

// guest returns a function that calls routes without a credential.
func (o org) guest(t *testing.T) signedIn {
	o.prefix, o.key = "", ""
	return func(method, path string, body any, headers ...string) answer {
		t.Helper()
		return o.do(t, method, path, body, headers...)
	}
}

func (o org) draft(t *testing.T, parts ...m) string {
	t.Helper()
	return o.create(t, request("draft", tomorrow(), entry(o.channel(t, "A").id, parts...)))
}

// token returns the token of a post's review link.
func token(t *testing.T, ask signedIn, post string) string {
	t.Helper()
	list := read[struct{ Approvals []approvalRecord }](t, ask(http.MethodGet, "/approvals?status=PENDING", nil).want(t, 200))
	for _, a := range list.Approvals {
		if a.PostID == post && a.ReviewURL != nil {
			if !strings.HasPrefix(*a.ReviewURL, base+"/review/") {
				t.Fatalf("the review link is %s, want one of the service", *a.ReviewURL)
			}
			return path.Base(*a.ReviewURL)
		}
	}
	t.Fatalf("the list %+v has no link for the post %s", list, post)
	return ""
}

// form submits the form of the review page, as a browser without JavaScript does.
func (o org) form(t *testing.T, token string, fields url.Values) answer {
	t.Helper()
	req, err := call.Request(t.Context(), http.MethodPost, base+"/review/"+token, fields.Encode(),
		"Content-Type", "application/x-www-form-urlencoded", "Origin", "null")
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	a, err := call.Send(o.http, req)
	if err != nil {
		t.Fatal(err)
	}
	return answer{Answer: a}
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	subjects(t, start(t, map[string]string{"TRUSTED_PROXIES": "127.0.0.1", "APP_LIMIT": "100000"}), map[string]subject{
		"are requested, listed and withdrawn with a key": testApprovalsByKey,
		"bad requests are refused":                       testBadApprovals,
		"are answered by members":                        testApprovalsByMembers,
		"are answered by guests":                         testReview,
		"are answered on a page without JavaScript":      testReviewPage,
		"of another organization do not exist":           testForeignApprovals,
		"of a guest are limited":                         testReviewLimit,
		"are in the audit log":                           testApprovalAudit,
	})
}

var approvalMembers = []string{
	"id", "postId", "status", "note", "reviewerNote", "reviewerName", "requestedBy", "requestedAt", "resolvedAt", "expiresAt",
	"autoSchedule", "reviewUrl",
}

func testApprovalsByKey(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	post := o.draft(t, part("x"))
	none := o.get(t, "/posts/"+post+"/approval").want(t, http.StatusOK)
	if none.Body != `{"status":"NONE"}`+"\n" && none.Body != `{"status":"NONE"}` {
		t.Errorf("without a request the answer is %s, want NONE alone", none.Body)
	}
	made := o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", m{"note": "Please look."}).want(t, http.StatusCreated)
	members(t, made.raw(), approvalMembers...)
	a := read[approvalRecord](t, made)
	if a.Status != "PENDING" || a.PostID != post || *a.Note != "Please look." || a.ReviewURL != nil || a.ResolvedAt != nil ||
		a.RequestedBy == nil || a.RequestedBy.Email != o.email || a.AutoSchedule {
		t.Errorf("got the request %+v, want one of the key's creator without a link", a)
	}
	o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", nil).refusal(t, http.StatusConflict)
	if got := o.get(t, "/posts/"+post+"/approval").want(t, http.StatusOK); read[approvalRecord](t, got).ID != a.ID {
		t.Errorf("the request of the post is %s, want %s", got.Body, a.ID)
	}
	if got := o.get(t, "/posts/"+post).want(t, http.StatusOK); !strings.Contains(got.Body, `"approval":{"status":"PENDING"}`) {
		t.Errorf("the post is %s, want that its request is pending", got.Body)
	}
	list := o.get(t, "/approvals").want(t, http.StatusOK)
	members(t, list.raw(), "approvals")
	for query, want := range map[string]int{
		"": 1, "?status=PENDING": 1, "?status=APPROVED": 0, "?status=REJECTED": 0, "?status=EXPIRED": 0, "?status=NONE": 0,
		"?limit=1": 1, "?before=" + a.ID: 0, "?before=": 1,
	} {
		got := read[struct{ Approvals []approvalRecord }](t, o.get(t, "/approvals"+query).want(t, http.StatusOK))
		if len(got.Approvals) != want {
			t.Errorf("%q lists %d requests, want %d", query, len(got.Approvals), want)
		}
	}
	gone := read[approvalRecord](t, o.do(t, http.MethodDelete, "/approvals/"+a.ID, nil).want(t, http.StatusOK))
	if gone.Status != "NONE" || gone.ID != a.ID {
		t.Errorf("the withdrawn request is %+v, want NONE", gone)
	}
	o.do(t, http.MethodDelete, "/approvals/"+a.ID, nil).refusal(t, http.StatusNotFound)
	o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", nil).want(t, http.StatusCreated)
	scheduled := o.create(t, later(o.channel(t, "A").id, part("x")))
	o.do(t, http.MethodPost, "/posts/"+scheduled+"/request-approval", m{}).refusal(t, http.StatusConflict)
	o.prefix = "/api/public/v1"
	o.get(t, "/approvals").want(t, http.StatusOK)
}

func testBadApprovals(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	post, ask := o.draft(t, part("x")), o.colleague(t, tenancy.RoleUser)
	for _, body := range []any{
		m{"note": strings.Repeat("x", 2001)}, m{"note": 1}, m{"reviewerEmail": "nobody"}, m{"reviewerEmail": o.email},
		m{"autoSchedule": "yes"}, m{"note": "a\x00b"}, "[]", "{", "1",
	} {
		o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", body).refusal(t, http.StatusBadRequest)
	}
	o.do(t, http.MethodPost, "/posts/none/request-approval", m{"note": strings.Repeat("x", 2001)}).refusal(t, http.StatusNotFound)
	o.get(t, "/posts/none/approval").refusal(t, http.StatusNotFound)
	for _, query := range []string{"status=maybe", "before=x", "limit=0", "limit=101", "limit=x"} {
		o.get(t, "/approvals?"+query).refusal(t, http.StatusBadRequest)
	}
	o.do(t, http.MethodDelete, "/approvals/x", nil).refusal(t, http.StatusNotFound)
	o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", m{"note": nil, "reviewerEmail": ""}).want(t, http.StatusCreated)
	a := read[approvalRecord](t, o.get(t, "/posts/"+post+"/approval"))
	for _, body := range []any{m{}, m{"action": "maybe"}, m{"action": 1}, m{"action": "reject", "note": strings.Repeat("x", 2001)}, "[]", "{", nil} {
		ask(http.MethodPost, "/approvals/"+a.ID+"/resolve", body).refusal(t, http.StatusBadRequest)
	}
	ask(http.MethodPost, "/approvals/x/resolve", m{"action": "approve"}).refusal(t, http.StatusNotFound)
	code := token(t, ask, post)
	for _, body := range []any{m{}, m{"action": "maybe"}, m{"action": "approve", "reviewerName": "a\nb"}, m{"action": "approve", "note": 1}, "[]"} {
		o.guest(t)(http.MethodPost, "/public/approval-review/"+code+"/resolve", body).refusal(t, http.StatusBadRequest)
	}
	if got := read[approvalRecord](t, o.get(t, "/posts/"+post+"/approval")); got.Status != "PENDING" {
		t.Errorf("after refused answers the request is %s, want PENDING", got.Status)
	}
}

func testApprovalsByMembers(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	own, other := o.dashboard(t), o.colleague(t, tenancy.RoleUser)
	post := o.draft(t, part("x"))
	a := read[approvalRecord](t, o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", m{"autoSchedule": true}).want(t, 201))
	own(http.MethodPost, "/approvals/"+a.ID+"/resolve", m{"action": "approve"}).refusal(t, http.StatusForbidden)
	if text := own(http.MethodGet, "/approvals", nil).want(t, http.StatusOK).Body; strings.Contains(text, "/review/") {
		t.Errorf("who asked sees the link: %s", text)
	}
	other(http.MethodDelete, "/approvals/"+a.ID, nil).refusal(t, http.StatusForbidden)
	done := other(http.MethodPost, "/approvals/"+a.ID+"/resolve", m{"action": "approve", "note": "Nice."}).want(t, http.StatusCreated)
	members(t, done.raw(), approvalMembers...)
	got := read[approvalRecord](t, done)
	if got.Status != "APPROVED" || *got.ReviewerNote != "Nice." || !strings.HasPrefix(*got.ReviewerName, "colleague-") || got.ResolvedAt == nil {
		t.Errorf("the answer is %+v, want an approval of the colleague", got)
	}
	full := o.wantState(t, post, "QUEUE")
	if want := "written approval_requested approved scheduled"; strings.Join(full.events(), " ") != want {
		t.Errorf("the timeline has %v, want %s", full.events(), want)
	}
	other(http.MethodPost, "/approvals/"+a.ID+"/resolve", m{"action": "reject"}).refusal(t, http.StatusConflict)
	// An edit ends the request for approval, so it can no longer be answered.
	second := o.draft(t, part("x"))
	b := read[approvalRecord](t, o.do(t, http.MethodPost, "/posts/"+second+"/request-approval", nil).want(t, 201))
	code := token(t, other, second)
	o.do(t, http.MethodPut, "/posts/"+second+"/settings", m{"settings": m{}}).want(t, http.StatusOK)
	other(http.MethodPost, "/approvals/"+b.ID+"/resolve", m{"action": "approve"}).refusal(t, http.StatusGone)
	o.guest(t)(http.MethodGet, "/public/approval-review/"+code, nil).refusal(t, http.StatusGone)
	if got := o.get(t, "/posts/"+second+"/approval"); !strings.Contains(got.Body, `"NONE"`) {
		t.Errorf("after an edit the approval is %s, want NONE", got.Body)
	}
}

func testReview(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	ask, guest := o.colleague(t, tenancy.RoleAdmin), o.guest(t)
	cat := o.stored(t, "cat.png", png(t))
	post := o.draft(t, part("First", m{"id": cat.ID, "alt": "A cat"}), part("Second"))
	o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", m{"note": "For you"}).want(t, http.StatusCreated)
	code := token(t, ask, post)
	shown := guest(http.MethodGet, "/public/approval-review/"+code, nil).want(t, http.StatusOK)
	v := members(t, shown.raw(), "status", "organization", "post", "note", "requestedAt", "expiresAt")
	members(t, v["organization"], "name")
	p := members(t, v["post"], "publishDate", "content", "contentType", "image", "thread", "channel")
	members(t, p["channel"], "name", "picture", "providerIdentifier", "profile")
	for _, text := range []string{`"First"`, `"Second"`, `"A cat"`, `"For you"`, cat.URL, `"PENDING"`} {
		if !strings.Contains(shown.Body, text) {
			t.Errorf("the guest sees %s, want %s", shown.Body, text)
		}
	}
	if shown.Header.Get("X-Robots-Tag") == "" || shown.Header.Get("Referrer-Policy") != "no-referrer" || strings.Contains(shown.Body, o.who.Org.String()) {
		t.Errorf("the answer has the headers %v and the body %s", shown.Header, shown.Body)
	}
	done := guest(http.MethodPost, "/public/approval-review/"+code+"/resolve", m{"action": "reject", "note": "No.", "reviewerName": "Ada"}, "Origin", "https://elsewhere.test").
		want(t, http.StatusCreated)
	members(t, done.raw(), "status", "resolvedAt")
	if got := read[approvalRecord](t, done); got.Status != "REJECTED" || *got.ResolvedAt == "" {
		t.Errorf("the answer is %s, want a rejection", done.Body)
	}
	guest(http.MethodPost, "/public/approval-review/"+code+"/resolve", m{"action": "approve"}).refusal(t, http.StatusConflict)
	if got := guest(http.MethodGet, "/public/approval-review/"+code, nil).want(t, http.StatusOK); !strings.Contains(got.Body, `"REJECTED"`) {
		t.Errorf("after the answer the guest sees %s", got.Body)
	}
	o.wantState(t, post, "DRAFT")
	a := read[approvalRecord](t, o.get(t, "/posts/"+post+"/approval"))
	if *a.ReviewerName != "Ada" || *a.ReviewerNote != "No." {
		t.Errorf("the answer is stored as %+v", a)
	}
	ask(http.MethodDelete, "/approvals/"+a.ID, nil).want(t, http.StatusOK)
	unknown := guest(http.MethodGet, "/public/approval-review/"+strings.Repeat("x", 44), nil)
	malformed := guest(http.MethodGet, "/public/approval-review/%00", nil)
	if unknown.refusal(t, http.StatusNotFound) != malformed.refusal(t, http.StatusNotFound) {
		t.Errorf("an unknown token answers %s and a malformed one %s, want the same", unknown.Body, malformed.Body)
	}
	if withdrawn := guest(http.MethodGet, "/public/approval-review/"+code, nil); strings.Contains(withdrawn.want(t, http.StatusGone).Body, "Organization") {
		t.Errorf("a withdrawn link says whose it was: %s", withdrawn.Body)
	}
	guest(http.MethodPost, "/public/approval-review/"+strings.Repeat("x", 44)+"/resolve", m{"action": "maybe"}).refusal(t, http.StatusNotFound)
}

func testReviewPage(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	ask, guest := o.colleague(t, tenancy.RoleUser), o.guest(t)
	cat := o.stored(t, "cat.png", png(t))
	post := o.draft(t, part("Hello <script>alert(1)</script> & you", m{"id": cat.ID, "alt": `A "cat"`}))
	o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", m{"note": "<b>bold</b>", "autoSchedule": true}).want(t, http.StatusCreated)
	code := token(t, ask, post)
	page := guest(http.MethodGet, "/review/"+code, nil).want(t, http.StatusOK)
	policy := page.Header.Get("Content-Security-Policy")
	for what, ok := range map[string]bool{
		"a strict policy":   strings.HasPrefix(policy, "default-src 'none'; img-src 'self'; style-src 'sha256-") && strings.Contains(policy, "form-action 'self'") && strings.Contains(policy, "frame-ancestors 'none'") && !strings.Contains(policy, "unsafe"),
		"no referrer":       page.Header.Get("Referrer-Policy") == "no-referrer",
		"noindex":           strings.Contains(page.Header.Get("X-Robots-Tag"), "noindex") && strings.Contains(page.Body, `content="noindex"`),
		"no caching":        page.Header.Get("Cache-Control") == "no-store",
		"HTML":              strings.HasPrefix(page.Header.Get("Content-Type"), "text/html"),
		"no script":         !strings.Contains(page.Body, "<script") && !strings.Contains(page.Body, "<b>bold"),
		"the escaped note":  strings.Contains(page.Body, "&lt;b&gt;bold"),
		"the image":         strings.Contains(page.Body, `<img src="`+strings.TrimPrefix(cat.URL, base)+`"`),
		"the text":          strings.Contains(page.Body, "Hello"),
		"a form of its own": strings.Contains(page.Body, `<form method="post">`) && strings.Contains(page.Body, `value="approve"`),
	} {
		if !ok {
			t.Errorf("the page has not %s: %v %s", what, page.Header, page.Body)
		}
	}
	refused := o.form(t, code, url.Values{"action": {"reject"}, "reviewerName": {`Ada "L"`}}).want(t, http.StatusBadRequest)
	if !strings.Contains(refused.Body, "should change") || !strings.Contains(refused.Body, "Ada &#34;L&#34;") || !strings.Contains(refused.Body, "<form") {
		t.Errorf("a rejection without a note answers %s, want the form with what was entered", refused.Body)
	}
	o.form(t, code, url.Values{}).want(t, http.StatusBadRequest)
	o.form(t, code, url.Values{"action": {"maybe"}}).want(t, http.StatusBadRequest)
	o.form(t, code, url.Values{"action": {"approve"}, "note": {strings.Repeat("x", 2001)}}).want(t, http.StatusBadRequest)
	o.form(t, code, url.Values{"action": {"approve"}, "note": {strings.Repeat("x", 40_000)}}).want(t, http.StatusRequestEntityTooLarge)
	guest(http.MethodPost, "/review/"+code, m{"action": "approve"}).want(t, http.StatusBadRequest)
	o.wantState(t, post, "DRAFT")
	done := o.form(t, code, url.Values{"action": {"approve"}, "note": {"Two\r\nlines"}, "reviewerName": {"Ada"}}).want(t, http.StatusSeeOther)
	if got := done.Header.Get("Location"); got != code {
		t.Errorf("the form leads to %s, want the page", got)
	}
	o.wantState(t, post, "QUEUE")
	answered := guest(http.MethodGet, "/review/"+code, nil).want(t, http.StatusOK)
	if strings.Contains(answered.Body, "<form") || !strings.Contains(answered.Body, "was approved") || !strings.Contains(answered.Body, "Two\nlines") {
		t.Errorf("the page after the answer is %s, want the answer and no form", answered.Body)
	}
	again := o.form(t, code, url.Values{"action": {"reject"}, "note": {"x"}}).want(t, http.StatusConflict)
	if !strings.Contains(again.Body, "already been answered") {
		t.Errorf("a second answer says %s", again.Body)
	}
	o.wantState(t, post, "QUEUE")
	lost := guest(http.MethodGet, "/review/"+strings.Repeat("x", 44), nil).want(t, http.StatusNotFound)
	if !strings.Contains(lost.Body, "not valid") || strings.Contains(lost.Body, "<form") {
		t.Errorf("the page of a wrong link is %s", lost.Body)
	}
	o.form(t, strings.Repeat("x", 44), url.Values{"action": {"approve"}}).want(t, http.StatusNotFound)
}

func testForeignApprovals(t *testing.T, r *rig) {
	t.Parallel()
	o, other := r.organization(t), r.organization(t)
	post := o.draft(t, part("x"))
	a := read[approvalRecord](t, o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", nil).want(t, 201))
	other.do(t, http.MethodPost, "/posts/"+post+"/request-approval", nil).refusal(t, http.StatusNotFound)
	other.get(t, "/posts/"+post+"/approval").refusal(t, http.StatusNotFound)
	other.do(t, http.MethodDelete, "/approvals/"+a.ID, nil).refusal(t, http.StatusNotFound)
	other.colleague(t, tenancy.RoleAdmin)(http.MethodPost, "/approvals/"+a.ID+"/resolve", m{"action": "approve"}).refusal(t, http.StatusNotFound)
	if list := other.get(t, "/approvals").want(t, http.StatusOK).Body; strings.Contains(list, a.ID) {
		t.Errorf("another organization lists %s", list)
	}
}

func testReviewLimit(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	guest, limited := o.guest(t), false
	link := strings.Repeat("y", 44)
	for i := range 80 {
		a := guest(http.MethodGet, "/public/approval-review/"+link, nil, "X-Forwarded-For", "198.51.100.7")
		if a.Status == http.StatusTooManyRequests {
			limited = i >= 60
			break
		}
	}
	if !limited {
		t.Error("80 uses of a token were not limited after 60")
	}
	page := guest(http.MethodGet, "/review/"+link, nil, "X-Forwarded-For", "198.51.100.7").want(t, http.StatusTooManyRequests)
	if !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
		t.Errorf("the page is answered with %s, want HTML", page.Header.Get("Content-Type"))
	}
	// The limit belongs to the link, so a guest with another link behind the same proxy is not
	// limited.
	guest(http.MethodGet, "/review/x", nil, "X-Forwarded-For", "198.51.100.7").want(t, http.StatusNotFound)
}

func testApprovalAudit(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	ask := o.colleague(t, tenancy.RoleUser)
	post := o.draft(t, part("x"))
	o.do(t, http.MethodPost, "/posts/"+post+"/request-approval", nil).want(t, http.StatusCreated)
	code := token(t, ask, post)
	o.guest(t)(http.MethodPost, "/public/approval-review/"+code+"/resolve", m{"action": "approve", "reviewerName": "Ada"}).want(t, 201)
	log := o.dashboard(t)(http.MethodGet, "/settings/audit", nil).want(t, http.StatusOK)
	for _, text := range []string{`"approval.requested"`, `"approval.approved"`, `"guest Ada"`, `"guest"`, post} {
		if !strings.Contains(log.Body, text) {
			t.Errorf("the audit log is %s, want %s", log.Body, text)
		}
	}
	if strings.Contains(log.Body, code) {
		t.Error("the audit log has the token")
	}
}
