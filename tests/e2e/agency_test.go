package e2e

import (
	"bytes"
	"fmt"
	"html"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"crier/tests/call"
	"crier/tests/dbtest"
	"crier/tests/sandboxtest"
	"crier/tests/smtptest"
	"crier/tests/standardwebhooks"
)

const (
	agencyURL      = "https://crier.test"
	agencyClient   = "client-of-the-agency"
	agencySecret   = "secret-of-the-agency"
	agencyCallback = agencyURL + "/connect/sandbox-oauth"
	agencyCustomer = "0191d1c5-0000-7000-8000-00000000acce"
)

// agencySettings is an account on the sandbox whose service also has an application there, may call
// a webhook, and sends mail.
type agencySettings struct {
	account
	webhook string // host:port
	mail    string // URL
}

func (a agencySettings) service() map[string]string {
	out := a.account.service()
	out["BASE_URL"], out["OUTBOUND_ALLOW"] = agencyURL, a.webhook
	out["SMTP_URL"], out["MAIL_FROM"] = a.mail, "Crier <crier@crier.test>"
	out["SANDBOX_OAUTH_CLIENT_ID"], out["SANDBOX_OAUTH_CLIENT_SECRET"] = agencyClient, agencySecret
	return out
}

// agency is an organization on two processes behind a load balancer. Its methods are the steps of a
// day, each with the requests that a person or a program sends.
type agency struct {
	*testing.T
	cluster *cluster
	judge   sandboxtest.Judge
	box     *receiver
	mail    *smtptest.Server
	hookURL string
	key     string

	account, channel, medium, post string
	hook                           struct{ ID, Secret string }
	slot                           time.Time
}

func newAgency(t *testing.T) *agency {
	t.Helper()
	a := &agency{T: t, box: &receiver{}, mail: smtptest.Start(t, smtptest.Plain())}
	server := httptest.NewServer(a.box)
	t.Cleanup(server.Close)
	a.hookURL = server.URL
	sandbox := sandboxtest.Start(t)
	a.judge = sandboxtest.Judge{URL: sandbox}
	app := sandboxtest.App{ClientID: agencyClient, Secret: agencySecret, Redirects: []string{agencyCallback}}
	if err := a.judge.AddApp(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	webhook := strings.TrimPrefix(server.URL, "http://")
	a.cluster = startCluster(t, agencySettings{account: newSandbox(sandbox, gradeA), webhook: webhook, mail: a.mail.URL()}, 2)
	a.key = a.cluster.nodes[0].key
	return a
}

// send sends a request to one of the processes. If there is no response and the request changes
// nothing, send repeats it, as a client would.
func (a *agency) send(method, path string, body any, headers ...string) call.Answer {
	a.Helper()
	client := &http.Client{
		Transport:     &http.Transport{DialContext: a.cluster.balancer.Dial, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: patience,
	}
	answer, err := call.Do(a.Context(), client, method, "http://crier.test"+path, body, headers...)
	for tries := 0; err != nil && method == http.MethodGet && tries < 20; tries++ {
		time.Sleep(100 * time.Millisecond)
		answer, err = call.Do(a.Context(), client, method, "http://crier.test"+path, body, headers...)
	}
	if err != nil {
		a.Fatalf("%s %s: got the error %v, want an answer", method, path, err)
	}
	return answer
}

// api calls the public API and decodes the response into out. It ends the test unless the call
// succeeds.
func (a *agency) api(out any, method, path string, body any, headers ...string) {
	a.Helper()
	answer := a.send(method, "/public/v1"+path, body, append(headers, "Authorization", a.key)...)
	if err := answer.Into(out); err != nil {
		a.Fatalf("%s %s: got the error %v, want a success", method, path, err)
	}
}

// giveToCustomer stores a customer and assigns all channels to it. There are no routes for this
// yet.
func (a *agency) giveToCustomer() {
	a.Helper()
	c := dbtest.SuperIn(a.T, a.cluster.nodes[0].database)
	for _, sql := range []string{
		`insert into customer (org_id, id, name) select id, $1, 'Acme' from organization`, `update channel set customer_id = $1`,
	} {
		if _, err := c.Exec(a.Context(), sql, agencyCustomer); err != nil {
			a.Fatal(err)
		}
	}
}

// TestAgency_DaySurvivesKilledProcess is a day of an agency.
//
// The agency has a customer. It connects a channel by OAuth, uploads a file, finds the next free
// slot and creates a draft, which a guest approves. The process that publishes the draft is killed
// before it gets the response. The test then checks the webhook, and what the customer is shown.
func TestAgency_DaySurvivesKilledProcess(t *testing.T) {
	t.Parallel()
	a := newAgency(t)
	a.createWebhook()
	a.connectPage()
	a.upload()
	a.findSlot()
	a.draft()
	held := a.holdAnswer()
	a.approveAsGuest()
	a.killPublisher(held)
	a.awaitPublished()
	a.wantOnePost()
	a.wantWebhook()
	a.wantAnalytics()
	a.wantReport()
	a.wantNotification()
}

func (a *agency) createWebhook() {
	a.Helper()
	a.api(&a.hook, http.MethodPost, "/webhooks", m{"name": "agency", "url": a.hookURL, "events": []string{"post.published"}})
}

var chooseForm = regexp.MustCompile(`action="(\?[^"]*)"><button>([^<]*)</button>`)

// connectPage connects a page, through the pages of the platform and of the service, and gives it
// to the customer.
func (a *agency) connectPage() {
	a.Helper()
	var begun struct{ URL string }
	a.api(&begun, http.MethodGet, "/social/sandbox-oauth", nil)
	back, err := a.judge.Browse(a.Context(), begun.URL, sandboxtest.Consent{User: "anna"})
	if err != nil {
		a.Fatal(err)
	}
	u, err := url.Parse(back)
	if err != nil {
		a.Fatal(err)
	}
	page := a.send(http.MethodGet, strings.TrimPrefix(back, agencyURL), nil)
	consent := chooseForm.FindStringSubmatch(page.Body)
	if consent == nil {
		a.Fatalf("the page does not ask for consent: %v", page)
	}
	page = a.send(http.MethodPost, u.Path+html.UnescapeString(consent[1]), nil)
	choice := chooseForm.FindStringSubmatch(page.Body)
	if choice == nil {
		a.Fatalf("the page offers no account: %v", page)
	}
	if done := a.send(http.MethodPost, u.Path+html.UnescapeString(choice[1]), nil); done.Status != http.StatusOK {
		a.Fatalf("the choice of the account is answered with %v", done)
	}
	a.giveToCustomer()
	var groups, channels []struct{ ID, Name string }
	a.api(&groups, http.MethodGet, "/groups", nil)
	a.api(&channels, http.MethodGet, "/integrations?group="+agencyCustomer, nil)
	if len(groups) != 1 || len(channels) != 1 || channels[0].Name != choice[2] {
		a.Fatalf("got the groups %v and the channels %v, want Acme with %s", groups, channels, choice[2])
	}
	a.account, a.channel = choice[2], channels[0].ID
}

func (a *agency) upload() {
	a.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	w, err := form.CreateFormFile("file", "cat.png")
	if err == nil {
		err = png.Encode(w, image.NewGray(image.Rect(0, 0, 8, 8)))
	}
	if err != nil || form.Close() != nil {
		a.Fatal(err)
	}
	var made struct{ ID string }
	a.api(&made, http.MethodPost, "/upload", body.Bytes(), "Content-Type", form.FormDataContentType())
	a.medium = made.ID
}

// findSlot sets posting times in the next five minutes and takes the first free slot.
func (a *agency) findSlot() {
	a.Helper()
	var times []m
	for n := range 5 {
		at := time.Now().UTC().Add(time.Duration(n+1) * time.Minute)
		times = append(times, m{"time": at.Hour()*60 + at.Minute()})
	}
	a.api(&m{}, http.MethodPut, "/integrations/"+a.channel+"/queue-plan", m{"timezone": "UTC", "time": times})
	var found struct{ Date time.Time }
	a.api(&found, http.MethodGet, "/find-slot/"+a.channel, nil)
	if ahead := time.Until(found.Date); ahead > 2*time.Minute || ahead < -time.Minute {
		a.Fatalf("got the slot %v, want one of the next minutes", found.Date)
	}
	a.slot = found.Date
}

func (a *agency) draft() {
	a.Helper()
	var made []struct{ PostID string }
	a.api(&made, http.MethodPost, "/posts", m{
		"type": "draft", "date": a.slot.Format(time.RFC3339),
		"posts": []m{{
			"integration": m{"id": a.channel},
			"value":       []m{{"content": "Hello from Acme", "image": []m{{"id": a.medium, "alt": "a cat"}}}},
		}},
	}, "Idempotency-Key", "draft-of-the-day")
	a.post = made[0].PostID
}

const agencyGuest = "ada@acme.example"

var reviewLink = regexp.MustCompile(regexp.QuoteMeta(agencyURL) + `(/review/[0-9A-Za-z_-]+)`)

// approveAsGuest requests approval from a guest, who opens the link in the mail and answers on its
// page.
func (a *agency) approveAsGuest() {
	a.Helper()
	a.api(&m{}, http.MethodPost, "/posts/"+a.post+"/request-approval", m{
		"note": "Please look", "reviewerEmail": agencyGuest, "autoSchedule": true,
	})
	var found []string
	await(a.T, "the mail to the guest", time.Now().Add(patience), func() bool {
		for _, m := range a.mail.Messages() {
			if m.To == agencyGuest {
				found = reviewLink.FindStringSubmatch(m.Text)
			}
		}
		return found != nil
	}, func() string { return fmt.Sprint(a.mail.Messages()) })
	link := found[1]
	page := a.send(http.MethodGet, link, nil)
	if page.Status != http.StatusOK || !strings.Contains(page.Body, "Hello from Acme") {
		a.Fatalf("the page of the review is %v, want the post", page)
	}
	form := url.Values{"action": {"approve"}, "reviewerName": {"Ada of Acme"}}.Encode()
	done := a.send(http.MethodPost, link, []byte(form), "Content-Type", "application/x-www-form-urlencoded", "Origin", "null")
	if done.Status != http.StatusSeeOther {
		a.Fatalf("the answer of the guest is answered with %v, want a redirect", done)
	}
}

// holdAnswer makes the platform publish the next post and hold the response back. It returns the id
// of the fault.
func (a *agency) holdAnswer() string {
	a.Helper()
	fault := m{"match": m{"method": "POST", "path": "/api/posts"}, "action": "hold_answer"}
	id, err := a.judge.Fault(a.Context(), a.account, fault)
	if err != nil {
		a.Fatal(err)
	}
	return id
}

// killPublisher kills the process that waits for the response. That may be either of the two; if
// the other one was killed first, it is restarted.
func (a *agency) killPublisher(fault string) {
	a.Helper()
	a.awaitHeld(fault, 1, patience+2*time.Minute)
	for _, n := range a.cluster.nodes {
		n.kill()
		if a.awaitHeld(fault, 0, 3*time.Second) {
			return
		}
		a.cluster.replace(a.T, n)
	}
	a.Fatal("no process was waiting for the answer of the platform")
}

// awaitHeld waits until the platform holds the wanted number of responses back. It returns false if
// that takes longer than the limit.
func (a *agency) awaitHeld(fault string, want int, limit time.Duration) bool {
	a.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		held, err := a.judge.Held(a.Context())
		if err != nil {
			a.Fatal(err)
		}
		if held[fault] == want {
			return true
		}
	}
	return false
}

func (a *agency) awaitPublished() {
	a.Helper()
	var p struct{ State, ReleaseID, Error string }
	await(a.T, "the publication", time.Now().Add(patience+2*time.Minute), func() bool {
		a.api(&p, http.MethodGet, "/posts/"+a.post, nil)
		return p.State == "PUBLISHED" || p.State == "ERROR"
	}, func() string { return fmt.Sprintf("%+v", p) })
	if p.State != "PUBLISHED" || p.ReleaseID == "" {
		a.Fatalf("got the post %+v, want it published", p)
	}
}

// wantOnePost checks that the platform has one post, which equals the draft.
func (a *agency) wantOnePost() {
	a.Helper()
	all, err := a.judge.Posts(a.Context(), a.account)
	if err != nil {
		a.Fatal(err)
	}
	if len(all) != 1 || all[0].Text != "Hello from Acme" || len(all[0].Media) != 1 || all[0].Media[0].Alt != "a cat" {
		a.Fatalf("the platform has %+v, want the post once", all)
	}
	if all[0].At.Before(a.slot) {
		a.Errorf("got the post at %v, want it not before %v", all[0].At, a.slot)
	}
}

func (a *agency) wantWebhook() {
	a.Helper()
	a.box.await(a.T, 1)
	calls := a.box.got()
	ids := map[string]bool{}
	for _, c := range calls {
		ids[c.Headers["webhook-id"]] = true
	}
	if len(ids) != 1 {
		a.Errorf("got the deliveries %v, want one", ids)
	}
	for i := range calls {
		calls[i].Secret = a.hook.Secret
	}
	for i, problem := range standardwebhooks.Verify(a.T, calls...) {
		if problem != "" || !strings.Contains(calls[i].Body, a.post) {
			a.Errorf("the call %d of the webhook is wrong: %s %v", i, problem, calls[i])
		}
	}
}

type metric struct {
	Label string
	Data  []struct{ Total, Date string }
}

func (a *agency) wantAnalytics() {
	a.Helper()
	var ofChannel, ofPost []metric
	a.api(&ofChannel, http.MethodGet, "/analytics/"+a.channel+"?date=30", nil)
	a.api(&ofPost, http.MethodGet, "/analytics/post/"+a.post+"?date=7", nil)
	if len(ofChannel) != 3 || len(ofChannel[0].Data) != 30 || len(ofPost) != 2 || len(ofPost[0].Data) == 0 {
		a.Errorf("got the statistics %+v of the channel and %+v of the post", ofChannel, ofPost)
	}
	today := time.Now().UTC().Format(time.DateOnly)
	var figures map[string]any
	a.api(&figures, http.MethodGet, "/connectors/"+a.channel+"/analytics?date="+today, nil)
	if figures["date"] != today || figures["followers"] == nil || figures["impressions"] == nil {
		a.Errorf("got the figures %v, want those of today", figures)
	}
}

func (a *agency) wantReport() {
	a.Helper()
	var report struct {
		Customer struct{ Name string }
		Posts    struct{ Total, Published int }
		Channels struct{ Active int }
	}
	a.api(&report, http.MethodGet, "/customers/"+agencyCustomer+"/report?days=7", nil)
	if report.Customer.Name != "Acme" || report.Posts.Published != 1 || report.Posts.Total != 1 || report.Channels.Active != 1 {
		a.Errorf("got the report %+v, want one published post of Acme", report)
	}
}

func (a *agency) wantNotification() {
	a.Helper()
	var list struct {
		Notifications []struct {
			Kind, IntegrationID string
			Count               int
		}
	}
	await(a.T, "the notification of the publication", time.Now().Add(patience), func() bool {
		a.api(&list, http.MethodGet, "/notifications?page=0", nil)
		for _, n := range list.Notifications {
			if n.Kind == "published" && n.IntegrationID == a.channel && n.Count == 1 {
				return true
			}
		}
		return false
	}, func() string { return fmt.Sprintf("%+v", list) })
}
