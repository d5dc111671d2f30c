package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/webhook"
	webhookstore "crier/publishing/webhook/store"
	"crier/tests/dbtest"
)

// plan is the schedule that receivers are promised: the times of the attempts after the first one,
// without jitter.
var plan = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour,
	20 * time.Hour, 24 * time.Hour,
}

func TestDeliver_RetriesByThePlanAndGivesUp(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(500))
	r := newRig(t, x)
	w, secret := r.create(x.server.URL)
	post := r.publish("Hello")
	r.step()
	first := x.take()
	if len(first) != 1 {
		t.Fatalf("got %d calls, want 1", len(first))
	}
	all := first
	for _, wait := range plan {
		r.wait(wait - time.Second)
		r.step()
		if early := x.take(); len(early) != 0 {
			t.Errorf("got a call a second before %s have passed", wait)
		}
		r.wait(time.Second)
		r.step()
		all = append(all, x.take()...)
	}
	r.wait(100 * time.Hour)
	r.step()
	all = append(all, x.take()...)
	if len(all) != publishing.MaxWebhookAttempts {
		t.Fatalf("got %d calls, want %d", len(all), publishing.MaxWebhookAttempts)
	}
	for i, c := range all {
		if c.Body != first[0].Body {
			t.Errorf("call %d has another body", i+1)
		}
		want := map[string]string{
			webhook.HeaderAttempt: fmt.Sprint(i + 1), webhook.HeaderEvent: "post.published",
			webhook.HeaderDelivery: first[0].Header.Get(webhook.HeaderDelivery), "Content-Type": "application/json",
			webhook.StandardID: first[0].Header.Get(webhook.HeaderDelivery),
		}
		for name, value := range want {
			if got := c.Header.Get(name); got != value || value == "" {
				t.Errorf("call %d: got %s %q, want %q", i+1, name, got, value)
			}
		}
	}
	d := r.deliveries(w)[0]
	if d.State != publishing.DeliveryFailed || d.Attempts != 10 || d.Post != post || len(d.Log) != 10 || d.Log[9].Status != 500 || d.Body != first[0].Body {
		t.Errorf("got the delivery %+v, want one that failed ten times", d)
	}
	verify(t, secret, all)
}

func TestDeliver_SendsWhatIsPromised(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(204))
	r := newRig(t, x)
	w, secret := r.create(x.server.URL)
	post := r.publish("Hello <world> & \"all\"\u2028")
	r.step()
	calls := x.take()
	verify(t, secret, calls)
	var body []map[string]any
	r.OK(json.Unmarshal([]byte(calls[0].Body), &body))
	if len(body) != 1 {
		t.Fatalf("got %d posts, want 1", len(body))
	}
	for name, want := range map[string]any{
		"id": post.String(), "event": "post.published", "state": "PUBLISHED", "content": "Hello <world> & \"all\"\u2028",
		"releaseId": "r1", "releaseURL": "https://example.com/r1", "error": nil, "contentType": "text",
	} {
		if got := body[0][name]; got != want {
			t.Errorf("got %s %v, want %v", name, got, want)
		}
	}
	channel, _ := body[0]["integration"].(map[string]any)
	if channel["id"] != r.channel.String() || channel["providerIdentifier"] != "sandbox" || channel["type"] != "social" {
		t.Errorf("got the integration %v", channel)
	}
	if d := r.deliveries(w)[0]; d.State != publishing.DeliveryDelivered || d.EndedAt == nil {
		t.Errorf("got the delivery %+v, want a delivered one", d)
	}
	r.step()
	if again := x.take(); len(again) != 0 {
		t.Errorf("got %d further calls, want none", len(again))
	}
}

func TestDeliver_CutsLongContent(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	_, secret := r.create(x.server.URL)
	r.publish(strings.Repeat("\"é\n", 20_000))
	r.step()
	calls := x.take()
	var body []struct {
		Content          string
		ContentTruncated bool
	}
	r.OK(json.Unmarshal([]byte(calls[0].Body), &body))
	if n := len(calls[0].Body); n > publishing.MaxWebhookBody || n < publishing.MaxWebhookBody-10 || !body[0].ContentTruncated {
		t.Errorf("got %d bytes, truncated %v, want just %d, and that it says so", n, body[0].ContentTruncated, publishing.MaxWebhookBody)
	}
	verify(t, secret, calls)
}

func TestDeliver_ChoosesByEventAndChannel(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	other := r.Connect(r.org.Org)
	choose := func(name string, events, channels []string) publishing.Webhook {
		w, _ := r.create(x.server.URL+"/"+name, func(c *publishing.SetWebhook) { c.Events, c.Integrations = &events, &channels })
		return w
	}
	wanted := []publishing.Webhook{
		choose("all", nil, nil), choose("event", []string{"post.failed", "post.published"}, nil),
		choose("channel", nil, []string{other.String(), r.channel.String()}),
	}
	unwanted := []publishing.Webhook{choose("otherevent", []string{"post.failed"}, nil), choose("otherchannel", nil, []string{other.String()})}
	r.publish("x")
	r.step()
	r.step() // at most four of them are served at once
	for _, w := range wanted {
		if n := len(r.deliveries(w)); n != 1 {
			t.Errorf("%s: got %d deliveries, want 1", w.URL, n)
		}
	}
	for _, w := range unwanted {
		if n := len(r.deliveries(w)); n != 0 {
			t.Errorf("%s: got %d deliveries, want 0", w.URL, n)
		}
	}
	if n := len(x.take()); n != 3 {
		t.Errorf("got %d calls, want 3", n)
	}
}

func TestDeliver_DoesNotFollowRedirects(t *testing.T) {
	t.Parallel()
	target := newReceiver(t, status(200))
	x := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.server.URL, http.StatusTemporaryRedirect)
	})
	r := newRig(t, x, target)
	w, _ := r.create(x.server.URL)
	r.publish("x")
	r.step()
	if n := len(target.take()); n != 0 {
		t.Errorf("got %d calls of the redirect's target, want 0", n)
	}
	if d := r.deliveries(w)[0]; d.State != publishing.DeliveryPending || !strings.Contains(d.Log[0].Error, "redirect (307)") {
		t.Errorf("got the delivery %+v, want one that waits", d)
	}
}

func TestDeliver_EndsACallThatHangs(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	x := newReceiver(t, func(http.ResponseWriter, *http.Request) { <-over })
	t.Cleanup(func() { close(over) })
	r := newRig(t, x)
	w, _ := r.create(x.server.URL)
	r.publish("x")
	r.step()
	if d := r.deliveries(w)[0]; d.Attempts != 1 || d.Log[0].Status != 0 || !strings.Contains(d.Log[0].Error, "within 15 seconds") {
		t.Errorf("got the delivery %+v, want one attempt without an answer", d)
	}
}

func TestDeliver_410DisablesAtOnce(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(410))
	r := newRig(t, x)
	w, _ := r.create(x.server.URL)
	r.publish("one")
	r.publish("two")
	r.step()
	if n := len(x.take()); n < 1 || n > 2 {
		t.Errorf("got %d calls, want 1, or 2 at the same time", n)
	}
	got := r.record(w)
	if got.DisabledAt == nil || *got.DisabledFor != publishing.DisabledGone || !slices.Equal(r.disabled, []string{"hook (gone)"}) {
		t.Errorf("got the webhook %+v, %v, want a disabled one", got, r.disabled)
	}
	for _, d := range r.deliveries(w) {
		if d.State != publishing.DeliveryFailed {
			t.Errorf("got the delivery %+v, want a failed one", d)
		}
	}
	r.publish("three")
	r.wait(time.Hour)
	r.step()
	if n := len(x.take()); n != 0 {
		t.Errorf("got %d calls of a disabled webhook, want 0", n)
	}

	x.set(status(200))
	on := false
	_, err := r.hooks.Update(r.Context(), r.org, w.ID.String(), publishing.SetWebhook{Disabled: &on})
	r.OK(err)
	r.publish("four")
	r.OK(r.hooks.Replay(r.Context(), r.org, w.ID.String(), r.deliveries(w)[0].ID.String()))
	r.step()
	if n := len(x.take()); n != 2 {
		t.Errorf("got %d calls of an enabled webhook, want the new event and the replay", n)
	}
}

func TestDeliver_HonorsRetryAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		header string
		// until is when the next call must be made.
		until time.Duration
	}{
		"429 with seconds":              {status: 429, header: "3600", until: time.Hour},
		"503 with a date":               {status: 503, header: "date", until: 2 * time.Hour},
		"429 with more than a day":      {status: 429, header: "99999999", until: 24 * time.Hour},
		"429 without":                   {status: 429, until: 5 * time.Second},
		"429 with less than the plan":   {status: 429, header: "1", until: 5 * time.Second},
		"500 with one, which is not it": {status: 500, header: "3600", until: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newReceiver(t, nil)
			r := newRig(t, x)
			header := c.header
			if header == "date" {
				header = r.time().Add(c.until).Format(http.TimeFormat)
			}
			x.set(func(w http.ResponseWriter, _ *http.Request) {
				if header != "" {
					w.Header().Set("Retry-After", header)
				}
				w.WriteHeader(c.status)
			})
			r.create(x.server.URL)
			r.publish("one")
			r.step()
			x.take()
			x.set(status(200))
			if c.until > 5*time.Second {
				r.publish("two") // also waits for the end of the pause
			}
			r.wait(c.until - time.Second)
			r.step()
			if n := len(x.take()); n != 0 {
				t.Errorf("got %d calls before %s, want 0", n, c.until)
			}
			r.wait(time.Second)
			r.step()
			r.step()
			if n := len(x.take()); n < 1 {
				t.Error("got no call afterwards")
			}
		})
	}
}

func TestDeliver_DisablesAfterFiveDaysOfFailures(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(500))
	r := newRig(t, x)
	w, _ := r.create(x.server.URL)
	r.publish("one")
	r.step()
	for range 4 {
		r.wait(24 * time.Hour)
		r.publish("more")
		r.step()
	}
	if got := r.record(w); got.DisabledAt != nil || got.FailingSince == nil {
		t.Fatalf("got %+v after four days, want an enabled webhook that fails", got)
	}
	x.set(status(200))
	r.step()
	if got := r.record(w); got.FailingSince != nil {
		t.Fatalf("got %+v after a success, want a webhook that works", got)
	}
	x.set(status(500))
	r.publish("again")
	r.step()
	r.wait(publishing.WebhookGiveUp)
	r.publish("last")
	r.step()
	if got := r.record(w); got.DisabledAt == nil || *got.DisabledFor != publishing.DisabledFailing {
		t.Errorf("got %+v after five days, want a disabled webhook", got)
	}
}

func TestRotateSecret_BothSignForADay(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	w, old := r.create(x.server.URL)
	got, fresh, err := r.hooks.RotateSecret(r.Context(), r.org, w.ID.String(), nil)
	r.OK(err)
	if want := []time.Time{r.time().Add(24 * time.Hour)}; old == fresh || !slices.Equal(got.PreviousUntil, want) {
		t.Errorf("got the secret %q and the ends %s, want another one and %s", fresh, got.PreviousUntil, want)
	}
	r.publish("x")
	r.step()
	calls := x.take()
	if got := strings.Fields(calls[0].Header.Get(webhook.StandardSignature)); len(got) != 2 {
		t.Errorf("got %d signatures, want 2", len(got))
	}
	verify(t, fresh, calls)
	verifyStandard(t, old, calls)
	r.wait(24 * time.Hour)
	r.publish("y")
	r.step()
	calls = x.take()
	if got := strings.Fields(calls[0].Header.Get(webhook.StandardSignature)); len(got) != 1 {
		t.Errorf("got %d signatures after a day, want 1", len(got))
	}
	verify(t, fresh, calls)
}

func TestReplay_SendsTheSameAgain(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	w, secret := r.create(x.server.URL)
	r.publish("x")
	r.step()
	first := x.take()[0]
	r.wait(time.Hour)
	r.OK(r.hooks.Replay(r.Context(), r.org, w.ID.String(), first.Header.Get(webhook.HeaderDelivery)))
	r.step()
	again := x.take()
	if len(again) != 1 || again[0].Body != first.Body || again[0].Header.Get(webhook.StandardID) != first.Header.Get(webhook.StandardID) ||
		again[0].Header.Get(webhook.HeaderAttempt) != "2" || again[0].Header.Get(webhook.HeaderTimestamp) == first.Header.Get(webhook.HeaderTimestamp) {
		t.Errorf("got %+v, want the first one again as attempt 2, with a new timestamp", again)
	}
	verify(t, secret, again)
}

func TestTest_IsSentOnceEvenIfDisabled(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(500))
	r := newRig(t, x)
	w, secret := r.create(x.server.URL, func(c *publishing.SetWebhook) { off := true; c.Disabled = &off })
	delivery, err := r.hooks.Test(r.Context(), r.org, w.ID.String())
	r.OK(err)
	r.step()
	r.wait(time.Hour)
	r.step()
	calls := x.take()
	if len(calls) != 1 || calls[0].Header.Get(webhook.HeaderDelivery) != delivery.String() || calls[0].Header.Get(webhook.HeaderEvent) != "webhook.test" {
		t.Errorf("got the calls %+v, want one", calls)
	}
	verify(t, secret, calls)
	if d := r.deliveries(w)[0]; d.State != publishing.DeliveryFailed || r.record(w).FailingSince != nil {
		t.Errorf("got the delivery %+v, want a failed one that does not count", d)
	}
}

// A failing endpoint has its own queue. It delays neither its organization's other endpoints nor
// its own deliveries.
func TestStep_KeepsFailingEndpointsApart(t *testing.T) {
	t.Parallel()
	bad, good := newReceiver(t, status(500)), newReceiver(t, status(200))
	r := newRig(t, bad, good)
	for range 6 {
		r.create(bad.server.URL)
	}
	working, _ := r.create(good.server.URL)
	r.publish("one")
	r.step()
	r.step()
	good.take()
	r.publish("two")
	_, err := r.deliverer.Step(r.Context())
	r.OK(err)
	kinds := map[string]int{}
	for _, made := range r.tasks() {
		if made.Webhook == working.ID && made.Kind != webhook.TaskHealthy {
			t.Errorf("got the kind %s for an endpoint that works", made.Kind)
		}
		kinds[made.Kind]++
	}
	if kinds[webhook.TaskHealthy] != 1 || kinds[webhook.TaskAside] != 4 {
		t.Errorf("got the tasks %v, want one of the endpoint that works and four of those that fail", kinds)
	}
	_, err = r.deliverer.Step(r.Context())
	r.OK(err)
	if made := r.tasks(); len(made) != 0 {
		t.Errorf("got %d more tasks while those wait, want 0", len(made))
	}
	r.OK(r.deliverer.Deliver(r.Context(), r.org.Org, working.ID))
	if n := len(good.take()); n != 1 {
		t.Errorf("got %d calls of the endpoint that works, want 1", n)
	}
}

// An endpoint belongs to one task at a time, and passes to another one if that task does not come
// back.
func TestDeliver_TakesOverFromADeadProcess(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	w, _ := r.create(x.server.URL)
	r.publish("x")
	_, err := r.deliverer.Step(r.Context())
	r.OK(err)
	_, found, err := webhookstore.BeginWebhook(r.Context(), r.Store, r.org.Org, w.ID, r.time(), r.time().Add(30*time.Second))
	r.OK(err)
	if !found {
		t.Fatal("the endpoint is not free")
	}
	r.OK(r.deliverer.Deliver(r.Context(), r.org.Org, w.ID))
	if n := len(x.take()); n != 0 {
		t.Fatalf("got %d calls while another process has the endpoint, want 0", n)
	}
	r.tasks()
	r.wait(30 * time.Second)
	r.step()
	if n := len(x.take()); n != 1 {
		t.Errorf("got %d calls after that, want 1", n)
	}
}

func TestDeliver_SendsNothingForASuspendedOrganization(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	r.create(x.server.URL)
	r.publish("x")
	r.suspend(true)
	r.step()
	if n := len(x.take()); n != 0 {
		t.Errorf("got %d calls while the organization is suspended, want 0", n)
	}
	r.suspend(false)
	r.wait(time.Hour)
	r.step()
	if n := len(x.take()); n != 1 {
		t.Errorf("got %d calls afterwards, want 1", n)
	}
}

// No connection is made to an endpoint whose address is not public.
func TestDeliver_DoesNotCallPrivateAddresses(t *testing.T) {
	t.Parallel()
	canary := newReceiver(t, status(200))
	r := newRig(t) // the client must not connect to the canary
	w, _ := r.create("https://example.com")
	port := canary.server.URL[strings.LastIndex(canary.server.URL, ":"):]
	for _, url := range []string{canary.server.URL, "http://localhost", "https://no-such-host.invalid", "http://localhost" + port, "http://2130706433" + port, "http://[::ffff:127.0.0.1]" + port} {
		// This bypasses the rules of the API.
		r.Tenant(r.org.Org, `update webhook set url = $2 where id = $1`, w.ID, url)
		r.publish("x")
		r.step()
		want := "The endpoint's port is not public, so it was not called; only ports 80 and 443 can be reached."
		if !strings.HasSuffix(url, port) {
			want = "The endpoint's host was not found, or its address is not public, so it was not called."
		}
		if d := r.deliveries(w)[0]; d.Log[0].Error != want {
			t.Errorf("%s: got the delivery %+v, want %q", url, d, want)
		}
		r.Tenant(r.org.Org, `delete from webhook_delivery`)
	}
	if n := len(canary.take()); n != 0 {
		t.Errorf("got %d calls of the canary, want 0", n)
	}
}

// If a secret cannot be opened, for example because its encryption key is lost, only its own
// endpoint waits.
func TestDeliver_WaitsWhenTheSecretCannotBeOpened(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	w, _ := r.create(x.server.URL)
	r.create(x.server.URL)
	r.Tenant(r.org.Org, `update webhook set signing_key = 'not sealed' where id = $1`, w.ID)
	r.publish("x")
	r.step()
	r.step()
	if n := len(x.take()); n != 1 {
		t.Errorf("got %d calls, want that of the other webhook", n)
	}
	if made := r.tasks(); len(made) != 0 {
		t.Errorf("got %d tasks at once, want none", len(made))
	}
	if got := strings.Count(r.Log.String(), "cannot be opened"); got != 1 {
		t.Errorf("got %d records in the log, want 1", got)
	}
	if d := r.deliveries(w)[0]; d.State != publishing.DeliveryPending || d.Attempts != 0 {
		t.Errorf("got the delivery %+v, want one that waits", d)
	}
}

// If an attempt cannot be stored, the task fails, and the delivery is sent again with the same
// number.
func TestDeliver_ReturnsTheErrorOfTheDatabase(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	w, _ := r.create(x.server.URL)
	r.publish("x")
	_, err := r.deliverer.Step(r.Context())
	r.OK(err)
	r.refuse(`attempts > 0`)
	if err := r.deliverer.Deliver(r.Context(), r.org.Org, w.ID); err == nil {
		t.Error("got no error, want that of the database")
	}
	if d := r.deliveries(w)[0]; d.State != publishing.DeliveryPending || d.Attempts != 0 {
		t.Errorf("got the delivery %+v, want one that waits", d)
	}
	r.tasks()
	x.take()
	r.wait(59 * time.Second)
	r.step()
	if n := len(x.take()); n != 0 {
		t.Errorf("got %d calls within a minute, want 0", n)
	}
}

// An event that cannot be stored is dropped, and the events after it are delivered.
func TestStep_OneBadEventDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	r.create(x.server.URL)
	r.publish("bad")
	r.publish("good")
	r.refuse(`body like '%"bad"%'`)
	r.step()
	r.step()
	calls := x.take()
	if len(calls) != 1 || !strings.Contains(calls[0].Body, "good") {
		t.Errorf("got %d calls, want the one of the good event", len(calls))
	}
	if !strings.Contains(r.Log.String(), "cannot store an event for webhooks; it is dropped") {
		t.Error("the log does not say that an event was dropped")
	}
}

func TestExpand_ApprovalHasItsRecord(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	r.create(x.server.URL)
	post := r.publish("x")
	r.step()
	x.take()
	r.OK(r.Store.InOrg(r.Context(), r.org.Org, func(tx *db.Tx) error {
		return webhookstore.AddWebhookEvent(r.Context(), tx, publishing.WebhookApprovalResolved, post, map[string]string{"status": "APPROVED"})
	}))
	r.step()
	var body []struct {
		ID, Event, State string
		Approval         struct{ Status string }
	}
	r.OK(json.Unmarshal([]byte(x.take()[0].Body), &body))
	if got := body[0]; got.Event != "approval.resolved" || got.Approval.Status != "APPROVED" || got.ID != post.String() || got.State != "PUBLISHED" {
		t.Errorf("got %+v", got)
	}
}

// A turn ends on time even if every call succeeds, so that it never reaches the limit of its task,
// beyond which responses are not stored.
func TestDeliver_TurnEndsOnTime(t *testing.T) {
	t.Parallel()
	if fresh, old := webhook.IsOverAfterDrainTime(t.Context()); fresh || !old {
		t.Errorf("got over %v for a new turn and %v for an old one, want false and true", fresh, old)
	}
}

// Receivers such as Slack have a secret in the path of their URL, which must not appear in any log.
func TestDeliver_DoesNotLogPaths(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	r := newRig(t, x)
	w, _ := r.create(x.server.URL + "/services/SecretOfThePath?key=SecretOfTheQuery")
	r.publish("x")
	r.step()
	d := r.deliveries(w)[0]
	if d.State != publishing.DeliveryPending || d.Log[0].Error == "" || strings.Contains(d.Log[0].Error, "SecretOf") {
		t.Errorf("got the delivery %+v, want one that failed with an error without the path", d)
	}
	host := strings.TrimPrefix(x.server.URL, "http://")
	if log := r.Log.String(); strings.Contains(log, "SecretOf") || !strings.Contains(log, host) {
		t.Errorf("got the log %s, want the host %s and no path", log, host)
	}
}

// An organization whose connections are all in use is left for a later round, and this round
// continues with the others.
func TestStep_BusyOrganizationDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	r.create(x.server.URL)
	r.publish("busy")
	busy := r.another()
	w, _ := r.create(x.server.URL)
	r.publish("other")
	dbtest.Occupy(t, r.DB, busy.Org.UUID())
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := r.deliverer.Step(ctx)
	r.OK(err)
	if made := r.tasks(); len(made) != 1 || made[0].Webhook != w.ID {
		t.Errorf("got the tasks %v, want that of the other organization", made)
	}
}

// If a round ends within an organization, the next round begins after that organization.
func TestStep_ContinuesAfterTheLastOrganization(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	first, _ := r.create(x.server.URL)
	r.publish("first")
	before := r.another()
	second, _ := r.create(x.server.URL)
	r.publish("second")
	ctx, cancel := context.WithCancel(t.Context())
	r.asked = cancel
	if _, err := r.deliverer.Step(ctx); err == nil {
		t.Fatal("got no error of a round that ended early")
	}
	r.asked = nil
	after := r.org
	count := func() (ofFirst, ofSecond int) {
		r.org = before
		ofFirst = len(r.deliveries(first))
		r.org = after
		return ofFirst, len(r.deliveries(second))
	}
	for round, want := range [][2]int{{0, 1}, {1, 1}} {
		_, err := r.deliverer.Step(t.Context())
		r.OK(err)
		if a, b := count(); [2]int{a, b} != want {
			t.Errorf("round %d: got %d and %d deliveries, want %v", round+2, a, b, want)
		}
	}
}

// A disabled endpoint gets no replay, because the replay would wait forever.
func TestReplay_DisabledIsConflict(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(200))
	r := newRig(t, x)
	w, _ := r.create(x.server.URL)
	r.publish("x")
	r.step()
	off := true
	_, err := r.hooks.Update(t.Context(), r.org, w.ID.String(), publishing.SetWebhook{Disabled: &off})
	r.OK(err)
	err = r.hooks.Replay(t.Context(), r.org, w.ID.String(), r.deliveries(w)[0].ID.String())
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v, want Conflict", err)
	}
	if d := r.deliveries(w)[0]; d.State != publishing.DeliveryDelivered {
		t.Errorf("got the delivery %+v, want a delivered one", d)
	}
}

// Failures at another URL do not count against a new one.
func TestUpdate_AnotherURLIsNotFailing(t *testing.T) {
	t.Parallel()
	x := newReceiver(t, status(500))
	r := newRig(t, x)
	w, _ := r.create(x.server.URL)
	r.publish("x")
	r.step()
	for url, fails := range map[string]bool{w.URL: true, w.URL + "/other": false} {
		r.Tenant(r.org.Org, `update webhook set failing_since = now() where id = $1`, w.ID)
		got, err := r.hooks.Update(t.Context(), r.org, w.ID.String(), publishing.SetWebhook{URL: &url})
		r.OK(err)
		if (got.FailingSince != nil) != fails || (r.record(w).FailingSince != nil) != fails {
			t.Errorf("%s: got failing since %v, want it set: %v", url, got.FailingSince, fails)
		}
		r.Tenant(r.org.Org, `update webhook set url = $2 where id = $1`, w.ID, w.URL)
	}
}

func TestRender_TooLargeIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := webhook.RenderLongName(publishing.MaxWebhookBody); err == nil {
		t.Error("got no error of a body that is too large without its content and its approval")
	}
}

// A slow endpoint takes a worker of the healthy endpoints for one call only. For an hour after
// that, it is served by the other workers.
func TestDeliver_SlowEndpointMakesWay(t *testing.T) {
	t.Parallel()
	slow := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(2100 * time.Millisecond)
		w.WriteHeader(http.StatusOK)
	})
	r := newRig(t, slow)
	hook, _ := r.create(slow.server.URL)
	for range 5 {
		r.publish("an event")
	}
	kinds := func() (kinds []string) {
		_, err := r.deliverer.Step(r.Context())
		r.OK(err)
		for _, made := range r.tasks() {
			kinds = append(kinds, made.Kind)
			r.OK(r.deliverer.Deliver(r.Context(), r.org.Org, made.Webhook))
		}
		return kinds
	}
	r.Tenant(r.org.Org, `update webhook set aside = false`) // it has worked before
	if got := kinds(); !slices.Equal(got, []string{webhook.TaskHealthy}) {
		t.Fatalf("got the tasks %v, want one of an endpoint that works", got)
	}
	if n := len(slow.take()); n == 0 || n > 2 {
		t.Errorf("got %d calls in the first turn, want those under way when the first was slow", n)
	}
	if got := kinds(); !slices.Equal(got, []string{webhook.TaskAside}) {
		t.Errorf("got the tasks %v after a slow answer, want one that keeps no fast endpoint waiting", got)
	}
	if n := len(slow.take()); n < 3 {
		t.Errorf("got %d more calls, want the rest", n)
	}
	test := func() string {
		t.Helper()
		_, err := r.hooks.Test(t.Context(), r.org, hook.ID.String())
		r.OK(err)
		got := kinds()
		if len(got) != 1 {
			t.Fatalf("got the tasks %v, want one", got)
		}
		return got[0]
	}
	quick := status(http.StatusOK)
	answer := slow.answer
	slow.set(quick)
	if got := test(); got != webhook.TaskAside {
		t.Errorf("got the task %s, want one that keeps no fast endpoint waiting", got)
	}
	if got := test(); got != webhook.TaskAside {
		t.Errorf("got the task %s after a quick answer within the hour, want one that keeps no fast endpoint waiting", got)
	}
	r.wait(2 * time.Hour)
	test()
	slow.set(answer)
	if got := test(); got != webhook.TaskHealthy {
		t.Errorf("got the task %s after a quick answer, want one of an endpoint that works", got)
	}
	if got := test(); got != webhook.TaskAside {
		t.Errorf("got the task %s after a slow test, want one that keeps no fast endpoint waiting", got)
	}
}

// A URL that hangs blocks one call of its organization, and none of another.
func TestTryURL_OneAtATime(t *testing.T) {
	t.Parallel()
	entered, hang := make(chan struct{}), make(chan struct{})
	slow := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		entered <- struct{}{}
		<-hang
		w.WriteHeader(http.StatusNoContent)
	})
	good := newReceiver(t, status(204))
	r := newRig(t, slow, good)
	var first sync.WaitGroup
	first.Go(func() {
		if status, problem, err := r.hooks.TryURL(t.Context(), r.org, slow.server.URL, []byte(`{}`)); err != nil || status != 204 {
			t.Errorf("the call that waited: got %d %q %v, want 204", status, problem, err)
		}
	})
	<-entered
	if _, _, err := r.hooks.TryURL(t.Context(), r.org, good.server.URL, []byte(`{}`)); !fault.Is(err, fault.RateLimited) {
		t.Errorf("a second call of the organization: got %v, want RateLimited", err)
	}
	if status, _, err := r.hooks.TryURL(t.Context(), r.Organization(), good.server.URL, []byte(`{}`)); err != nil || status != 204 {
		t.Errorf("a call of another organization: got %d %v, want 204", status, err)
	}
	close(hang)
	first.Wait()
	if status, _, err := r.hooks.TryURL(t.Context(), r.org, good.server.URL, []byte(`{}`)); err != nil || status != 204 {
		t.Errorf("the next call: got %d %v, want 204", status, err)
	}
}
