package contract

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/publishing"
	"crier/tenancy"
	"crier/tests/sandboxtest"
)

// smallPlans is a plan file with small limits.
const smallPlans = `{"default": "TEAM", "plans": {
	"FREE": {"channels": 0, "posts": 0, "webhooks": 0, "members": 1},
	"TEAM": {"channels": 2, "posts": 3, "webhooks": 1, "members": 2, "monthPrice": 39, "yearPrice": 390},
	"PRO": {"channels": null, "posts": null, "webhooks": null, "members": null, "monthPrice": 49, "yearPrice": 490}}}`

func TestQuota(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "plans.json")
	if err := os.WriteFile(file, []byte(smallPlans), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startOAuthWith(t, map[string]string{"PLANS_FILE": file})
	subjects(t, r, map[string]subject{
		"posts of a billing month":                    testPostQuota,
		"drafts, changes and batches":                 testPostQuotaOfChanges,
		"one of many posts at the limit":              testPostQuotaInParallel,
		"channels with a form":                        testChannelQuota,
		"one of many channels at the limit":           testChannelQuotaInParallel,
		"a choice of an account":                      testChannelQuotaOfChoice,
		"webhooks":                                    testWebhookQuota,
		"members and invitations":                     testMemberQuota,
		"the routes of plans return the same plan":    testPlanRoutes,
		"what a check asks counts for nothing":        testCheckCountsForNothing,
		"an occurrence that is settled in the future": testPostQuotaOfOccurrences,
	})
}

// overLimit is the body of a response with 402.
type overLimit struct {
	StatusCode int
	Msg        string
	Message    string
	URL        string
	Limit      string
	Current    int
	Allowed    int
}

// wantOver ends the test unless the response is a complete refusal by the plan.
func (a answer) wantOver(t *testing.T, limit string, current, allowed int) {
	t.Helper()
	got := read[overLimit](t, a.want(t, http.StatusPaymentRequired))
	want := overLimit{
		StatusCode: 402, Msg: got.Msg, Message: got.Msg, URL: base + "/app/billing", Limit: limit, Current: current,
		Allowed: allowed,
	}
	if got != want || !strings.Contains(got.Msg, "TEAM") || !strings.Contains(got.Msg, limit) {
		t.Fatalf("the answer is %+v, want %+v with a sentence about the plan", got, want)
	}
}

// scheduled returns a body that schedules a post, either in the billing month that began today or
// in the next one.
func scheduled(channel string, nextMonth bool, parts ...m) m {
	at := tomorrow()
	if nextMonth {
		at = at.AddDate(0, 0, 35)
	}
	return request("schedule", at, entry(channel, parts...))
}

func testPostQuota(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A").id
	var posts []string
	for n := range 3 {
		posts = append(posts, o.create(t, later(c, part(fmt.Sprint("post ", n))), "Idempotency-Key", fmt.Sprint("key-", n)))
	}
	o.do(t, http.MethodPost, "/posts", later(c, part("one more"))).wantOver(t, "posts", 3, 3)
	o.do(t, http.MethodPost, "/posts", now(c, part("one more"))).wantOver(t, "posts", 3, 3)
	replayed := o.created(t, later(c, part("post 1")), "Idempotency-Key", "key-1")
	if replayed[0].PostID != posts[1] {
		t.Errorf("the replay answers with the post %s, want %s", replayed[0].PostID, posts[1])
	}
	o.wantCount(t, 3)
	o.create(t, scheduled(c, true, part("of the next month")))
	o.do(t, http.MethodDelete, "/posts/"+posts[0], nil).want(t, http.StatusOK)
	published := o.create(t, now(c, part("in the place of the deleted one")))
	o.reaches(t, published, "PUBLISHED")
	o.do(t, http.MethodDelete, "/posts/"+published, nil).want(t, http.StatusOK)
	o.do(t, http.MethodPost, "/posts", later(c, part("one more"))).wantOver(t, "posts", 3, 3)
	o.do(t, http.MethodPost, "/posts", later(c, part("one more")), "Idempotency-Key", "refused").wantOver(t, "posts", 3, 3)
	o.changeStatus(t, posts[1], m{"status": "draft"}).want(t, http.StatusOK)
	o.create(t, later(c, part("a refusal is no answer of its key")), "Idempotency-Key", "refused")
	o.changeStatus(t, posts[1], m{"status": "schedule"}).wantOver(t, "posts", 3, 3)
	o.wantState(t, posts[1], "DRAFT")
}

func testPostQuotaOfChanges(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c, other := o.channel(t, "A").id, o.channel(t, "A").id
	first := o.create(t, later(c, part("one"), part("of three"), part("parts")))
	second := o.create(t, later(c, part("two")))
	both := request("schedule", tomorrow(), entry(c, part("three")), entry(other, part("four")))
	o.do(t, http.MethodPost, "/posts", both).wantOver(t, "posts", 2, 3)
	o.wantCount(t, 2)
	draft := o.created(t, request("draft", tomorrow(), entry(c, part("three")), entry(other, part("four"))))
	for _, d := range draft[:1] {
		o.changeStatus(t, d.PostID, m{"status": "schedule"}).want(t, http.StatusOK)
	}
	o.changeStatus(t, draft[1].PostID, m{"status": "schedule"}).wantOver(t, "posts", 3, 3)
	// It is scheduled already.
	o.changeStatus(t, draft[0].PostID, m{"status": "schedule"}).want(t, http.StatusOK)
	edited := entry(c, m{"id": first, "content": "edited"})
	o.do(t, http.MethodPost, "/posts", request("schedule", tomorrow().Add(time.Hour), edited)).want(t, http.StatusCreated)
	moved := entry(c, m{"id": second, "content": "moved"})
	o.do(t, http.MethodPost, "/posts", request("update", tomorrow().AddDate(0, 0, 35), moved)).want(t, http.StatusCreated)
	o.changeStatus(t, draft[1].PostID, m{"status": "schedule"}).want(t, http.StatusOK)
	o.do(t, http.MethodPost, "/posts", request("update", tomorrow(), moved)).wantOver(t, "posts", 3, 3)
	if got := o.post(t, second).contents(); !strings.Contains(got, "moved") {
		t.Errorf("the post that was refused to come back has the content %q", got)
	}
}

func testPostQuotaInParallel(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A").id
	o.create(t, later(c, part("one")))
	o.create(t, later(c, part("two")))
	o.oneOf(t, func(n int) (answer, error) {
		return o.attempt(t.Context(), http.MethodPost, "/posts", later(c, part(fmt.Sprint("parallel ", n))))
	})
	o.wantCount(t, 3)
}

// oneOf sends four requests at once. One must succeed and the plan must refuse the others.
func (o org) oneOf(t *testing.T, send func(n int) (answer, error)) {
	t.Helper()
	const all = 4
	answers, errs := make([]answer, all), make([]error, all)
	done := make(chan int, all)
	for n := range all {
		go func() {
			answers[n], errs[n] = send(n)
			done <- n
		}()
	}
	created := 0
	for range all {
		n := <-done
		switch {
		case errs[n] != nil:
			t.Error(errs[n])
		case answers[n].Status < 300:
			created++
		case answers[n].Status != http.StatusPaymentRequired:
			t.Errorf("an answer is %v, want 402", answers[n])
		}
	}
	if created != 1 {
		t.Errorf("%d requests at the limit worked, want 1", created)
	}
}

func testChannelQuota(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	first := o.channel(t, "A")
	o.channel(t, "A")
	o.get(t, "/social/sandbox-oauth").wantOver(t, "channels", 2, 2)
	o.do(t, http.MethodPost, "/connectors/sandbox-oauth/authorize", m{}).wantOver(t, "channels", 2, 2)
	ask := o.dashboard(t)
	ask(http.MethodGet, "/integrations/social/sandbox", nil).wantOver(t, "channels", 2, 2)
	begun := read[next](t, ask(http.MethodGet, "/integrations/social/sandbox?refresh="+first.id, nil).want(t, http.StatusOK))
	body := m{"state": begun.URL, "code": code(t, o.sandbox, first.account, "A")}
	again := read[named](t, ask(http.MethodPost, "/integrations/social-connect/sandbox", body).want(t, http.StatusCreated))
	if again.ID != first.id {
		t.Errorf("the reconnect answers with the channel %s, want %s", again.ID, first.id)
	}
	o.do(t, http.MethodDelete, "/integrations/"+first.id, nil).want(t, http.StatusOK)
	o.channel(t, "A")
}

func testChannelQuotaInParallel(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	o.channel(t, "A")
	var bodies []m
	for n := range 4 {
		state, err := o.app.Channels.Begin(t.Context(), o.who, publishing.BeginConnect{Connector: "sandbox"})
		if err != nil {
			t.Fatal(err)
		}
		account := fmt.Sprintf("parallel-%d-%d", n, o.names.Add(1))
		bodies = append(bodies, m{"state": state, "code": code(t, o.sandbox, account, "A")})
	}
	visitor := o
	visitor.prefix, visitor.key = "", ""
	o.oneOf(t, func(n int) (answer, error) {
		return visitor.attempt(t.Context(), http.MethodPost, "/integrations/social-connect/sandbox", bodies[n])
	})
	if list := read[[]channelRecord](t, o.get(t, "/integrations")); len(list) != 2 {
		t.Errorf("the organization has %d channels, want 2", len(list))
	}
}

// testChannelQuotaOfChoice checks that a refused choice of an account can be repeated once there is
// room.
func testChannelQuotaOfChoice(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	begun := read[next](t, o.get(t, "/social/sandbox-oauth").want(t, http.StatusOK))
	user := "choice-" + o.who.Org.String()[:13]
	page := o.arrive(t, o.consent(t, begun.URL, sandboxtest.Consent{User: user})).want(t, http.StatusOK)
	var choice string
	for _, address := range forms(page) {
		choice = address
	}
	if choice == "" {
		t.Fatalf("the page offers no account: %s", page.Body)
	}
	first := o.channel(t, "A")
	o.channel(t, "A")
	refused := o.visit(t, http.MethodPost, choice).want(t, http.StatusPaymentRequired)
	if !strings.Contains(refused.Body, "allows 2 channels") {
		t.Errorf("the page says %s, want that the plan allows no more channels", refused.Body)
	}
	o.do(t, http.MethodDelete, "/integrations/"+first.id, nil).want(t, http.StatusOK)
	o.visit(t, http.MethodPost, choice).want(t, http.StatusOK)
}

func testWebhookQuota(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	body := m{"name": "hook", "url": "https://example.com/hook"}
	o.oneOf(t, func(int) (answer, error) { return o.attempt(t.Context(), http.MethodPost, "/webhooks", body) })
	o.do(t, http.MethodPost, "/webhooks", body).wantOver(t, "webhooks", 1, 1)
	o.dashboard(t)(http.MethodPost, "/webhooks", body).wantOver(t, "webhooks", 1, 1)
	hooks := read[[]named](t, o.get(t, "/webhooks").want(t, http.StatusOK))
	o.do(t, http.MethodDelete, "/webhooks/"+hooks[0].ID, nil).want(t, http.StatusOK)
	o.do(t, http.MethodPost, "/webhooks", body).want(t, http.StatusCreated)
}

func testMemberQuota(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	ask := o.dashboard(t)
	body := m{"role": "USER", "sendEmail": false}
	ask(http.MethodPost, "/settings/team", body).want(t, http.StatusCreated)
	ask(http.MethodPost, "/settings/team", body).wantOver(t, "members", 2, 2)
	list, err := o.app.Accounts.Invitations(t.Context(), o.who)
	if err != nil || len(list) != 1 {
		t.Fatalf("got the invitations %v, %v, want one", list, err)
	}
	if err := o.app.Accounts.RevokeInvitation(t.Context(), o.who, list[0].ID.String()); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 4)
	for range cap(ended) {
		go func() {
			_, _, err := o.app.Accounts.Invite(t.Context(), o.who, tenancy.NewInvitation{Role: tenancy.RoleUser})
			ended <- err
		}()
	}
	invited := 0
	for range cap(ended) {
		if err := <-ended; err == nil {
			invited++
		} else if !fault.Is(err, fault.Quota) {
			t.Error(err)
		}
	}
	if invited != 1 {
		t.Errorf("%d invitations at once for one seat worked, want 1", invited)
	}
}

func testPlanRoutes(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	ask := o.dashboard(t)
	type subscription struct {
		OrganizationID, SubscriptionTier string
		TotalChannels                    int
		IsLifetime                       bool
	}
	want := subscription{OrganizationID: o.who.Org.String(), SubscriptionTier: "TEAM", TotalChannels: 2, IsLifetime: true}
	got := read[struct{ Subscription subscription }](t, ask(http.MethodGet, "/user/subscription", nil).want(t, http.StatusOK))
	if got.Subscription != want {
		t.Errorf("the subscription is %+v, want %+v", got.Subscription, want)
	}
	self := read[struct {
		Tier          string
		TotalChannels int
	}](t, ask(http.MethodGet, "/user/self", nil).want(t, http.StatusOK))
	if self.Tier != want.SubscriptionTier || self.TotalChannels != want.TotalChannels {
		t.Errorf("/user/self tells %+v, want the plan of the subscription", self)
	}
	tiers := ask(http.MethodGet, "/user/subscription/tiers", nil).want(t, http.StatusOK)
	wantTiers := `{"month":[],"year":[],"tiers":[` +
		`{"name":"FREE","channels":0,"posts":0,"webhooks":0,"members":1,"monthPrice":0,"yearPrice":0},` +
		`{"name":"TEAM","channels":2,"posts":3,"webhooks":1,"members":2,"monthPrice":39,"yearPrice":390},` +
		`{"name":"PRO","channels":null,"posts":null,"webhooks":null,"members":null,"monthPrice":49,"yearPrice":490}]}`
	if strings.TrimSpace(tiers.Body) != wantTiers {
		t.Errorf("the tiers are %s, want %s", tiers.Body, wantTiers)
	}
	type organization struct {
		ID           string
		Subscription subscription
	}
	for _, one := range read[[]organization](t, ask(http.MethodGet, "/user/organizations", nil).want(t, http.StatusOK)) {
		if one.ID == o.who.Org.String() && one.Subscription.SubscriptionTier != "TEAM" {
			t.Errorf("/user/organizations tells %+v, want the plan of the subscription", one)
		}
	}
}

func testCheckCountsForNothing(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A").id
	for range 3 {
		o.create(t, later(c, part("a post")))
	}
	o.do(t, http.MethodPost, "/posts/check", m{"posts": []m{entry(c, part("checked"))}}).want(t, http.StatusCreated)
	o.do(t, http.MethodPost, "/posts", request("draft", tomorrow(), entry(c, part("a draft")))).want(t, http.StatusCreated)
}

// testPostQuotaOfOccurrences checks that a later occurrence of a repeated post counts once it gets
// a row.
func testPostQuotaOfOccurrences(t *testing.T, r *rig) {
	t.Parallel()
	o := r.organization(t)
	c := o.channel(t, "A").id
	body := later(c, part("each day"))
	body["inter"] = 1
	o.create(t, body)
	o.create(t, later(c, part("two")))
	o.create(t, later(c, part("three")))
	until := tomorrow().Add(72 * time.Hour)
	query := "startDate=" + time.Now().UTC().Format(time.RFC3339) + "&endDate=" + until.UTC().Format(time.RFC3339)
	var projected []record
	for _, one := range o.list(t, query) {
		if one.ActualDate != "" && one.ActualDate != one.PublishDate {
			projected = append(projected, one)
		}
	}
	if len(projected) == 0 {
		t.Fatalf("the list has no later occurrence: %v", o.list(t, query))
	}
	later := projected[0].ID
	o.changeStatus(t, later, m{"status": "schedule"}).wantOver(t, "posts", 3, 3)
	o.do(t, http.MethodPut, "/posts/"+later+"/settings", m{"settings": m{}}).wantOver(t, "posts", 3, 3)
	o.changeStatus(t, later, m{"status": "draft"}).want(t, http.StatusOK)
	o.changeStatus(t, later, m{"status": "schedule"}).wantOver(t, "posts", 3, 3)
	o.do(t, http.MethodDelete, "/posts/"+later, nil).want(t, http.StatusOK)
}
