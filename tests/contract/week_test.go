package contract

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"crier/tests/sandboxtest"
)

// TestWeek is a script that has nothing but an API key. It connects a page, whose owner consents in
// a browser, and plans and publishes the page's posts for a week.
func TestWeek(t *testing.T) {
	t.Parallel()
	box := &inbox{}
	server := httptest.NewServer(box)
	t.Cleanup(server.Close)
	r := start(t, map[string]string{
		"SANDBOX_OAUTH_CLIENT_ID": clientID, "SANDBOX_OAUTH_CLIENT_SECRET": clientSecret,
		"OUTBOUND_ALLOW": strings.TrimPrefix(server.URL, "http://"),
	})
	if err := r.judge().AddApp(t.Context(), sandboxtest.App{ClientID: clientID, Secret: clientSecret, Redirects: []string{callback}}); err != nil {
		t.Fatal(err)
	}
	o := r.organization(t)
	page := o.connectPage(t, "anna", "anna.shop")
	hook := read[hook](t, o.do(t, http.MethodPost, "/webhooks", m{"name": "script", "url": server.URL}).want(t, 201))
	tag := o.tag(t, "week")
	picture := o.stored(t, "picture.png", png(t))

	// Two posting times on each day, in a zone whose offset from UTC is not a whole number of
	// hours.
	plan := m{"timezone": "Asia/Kolkata", "time": []m{{"time": 9 * 60}, {"time": 18*60 + 30}}}
	o.do(t, http.MethodPut, "/integrations/"+page.id+"/queue-plan", plan).want(t, 200)
	zone, err := time.LoadLocation("Asia/Kolkata")
	if err != nil {
		t.Fatal(err)
	}
	var first, last time.Time
	for n := range 14 {
		at := read[slot](t, o.get(t, "/find-slot/"+page.id).want(t, 200)).Date
		if clock := at.In(zone).Format("15:04"); clock != "09:00" && clock != "18:30" || !at.After(last) {
			t.Fatalf("slot %d is %v after %v, want the next of 09:00 and 18:30", n, at.In(zone), last.In(zone))
		}
		if n == 0 {
			first = at
		}
		last = at
		body := request("schedule", at, entry(page.id, part(fmt.Sprintf("Post %d of the week", n), picture)))
		body["tags"] = []m{{"value": tag.Name, "label": tag.Name}}
		o.create(t, body, "Idempotency-Key", fmt.Sprint("week-", n))
	}
	if days := last.Sub(first); days < 6*24*time.Hour || days > 7*24*time.Hour {
		t.Errorf("the slots cover %v, want a week", days)
	}
	query := url.Values{"startDate": {first.Add(-time.Hour).Format(time.RFC3339)}, "endDate": {last.Add(time.Hour).Format(time.RFC3339)}}
	week := o.list(t, query.Encode())
	if len(week) != 14 || week[0].State != "QUEUE" || len(week[0].Posts) != 1 {
		t.Fatalf("the week has %d posts, want 14 in the queue", len(week))
	}

	draft := o.create(t, request("draft", last.Add(time.Hour), entry(page.id, part("To be approved"))))
	asked := read[approvalRecord](t, o.do(t, http.MethodPost, "/posts/"+draft+"/request-approval", m{"note": "Please read this."}).want(t, 201))
	if asked.Status != "PENDING" || asked.ReviewURL != nil {
		t.Errorf("got the request %+v, want it pending and without a link", asked)
	}
	if got := read[approvalRecord](t, o.get(t, "/posts/"+draft+"/approval").want(t, 200)); got.ID != asked.ID {
		t.Errorf("got the approval %+v, want %s", got, asked.ID)
	}

	o.do(t, http.MethodPut, "/posts/"+week[13].ID+"/status", m{"status": "draft"}).want(t, 200)
	o.deletes(t, "/posts/", week[12].ID)
	post := o.create(t, now(page.id, part("Out at once")))
	o.reaches(t, post, "PUBLISHED")
	var log []delivery
	eventually(t, "the deliveries", func() bool {
		log = read[[]delivery](t, o.get(t, "/webhooks/"+hook.ID+"/deliveries").want(t, 200))
		told := map[string]string{}
		for _, d := range log {
			if d.PostID != nil && d.State == "delivered" {
				told[*d.PostID+" "+d.Event] = d.Body
			}
		}
		return told[post+" post.published"] != "" && told[draft+" approval.requested"] != "" && told[week[13].ID+" post.status_changed"] != ""
	}, func() any { return log })
}
