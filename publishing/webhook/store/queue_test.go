package store_test

import (
	"maps"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	webhookstore "crier/publishing/webhook/store"
	"crier/tests/publishtest"
)

// If a post has followers, each change of what clients see is still one event.
func TestWebhookEvents_FollowTheStateOfTheThread(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	r.Webhook()
	channel := r.Channel()
	send := func(result dispatch.Result) publishing.PostID {
		t.Helper()
		claims := r.Claim(1)
		if len(claims) != 1 {
			t.Fatalf("got %d claims, want 1", len(claims))
		}
		r.Mark(claims...)
		r.Finish(claims[0], result, "rejected")
		return claims[0].Post
	}
	due := func() {
		r.Clock(`update post set due = now() - interval '1 minute' where state = 'QUEUE' and due > now()`)
	}

	post := r.Post(channel, -time.Minute, time.Minute, time.Minute)
	r.WantWebhookEvents("a created post")
	send(dispatch.ResultPublished)
	r.WantWebhookEvents("the first part is out, and delayed ones are not")
	due()
	send(dispatch.ResultPublished)
	r.WantWebhookEvents("the second of three parts is out")
	due()
	send(dispatch.ResultPublished)
	r.WantWebhookEvents("all parts are out", publishtest.WebhookEvent{Post: post, Event: publishing.WebhookPublished, State: "PUBLISHED"})

	post = r.Post(channel, -time.Minute, time.Minute, time.Minute)
	send(dispatch.ResultPublished)
	due()
	send(dispatch.ResultError)
	r.WantWebhookEvents("a follower failed, and the one behind it with it",
		publishtest.WebhookEvent{Post: post, Event: publishing.WebhookFailed, State: "ERROR", Error: "rejected"})
	r.MoveTo(post, publishing.StateDraft)
	r.WantWebhookEvents("made a draft", publishtest.WebhookEvent{Post: post, Event: publishing.WebhookStatus, State: "DRAFT"})
	r.MoveTo(post, publishing.StateQueue)
	r.WantWebhookEvents("scheduled", publishtest.WebhookEvent{Post: post, Event: publishing.WebhookStatus, State: "QUEUE"})
	due()
	send(dispatch.ResultError)
	r.WantWebhookEvents("the first part failed, and the followers with it",
		publishtest.WebhookEvent{Post: post, Event: publishing.WebhookFailed, State: "ERROR", Error: "rejected"})

	post = r.Post(channel, -time.Minute)
	claims := r.Claim(1)
	r.WantWebhookEvents("a claim")
	r.Finish(claims[0], dispatch.ResultRetry, "")
	r.WantWebhookEvents("a retry")
	r.Clock(`update post set not_before = null`)
	claims = r.Claim(1)
	r.Mark(claims...)
	r.Finish(claims[0], dispatch.ResultUnknown, "")
	r.WantWebhookEvents("an unknown outcome")
	r.Clock(`update post set claim_until = now() where state = 'UNKNOWN'`)
	open := r.ClaimUnknown(r.Lease, time.Hour)
	r.Finish(dispatch.Claimed{Org: r.Org, Post: post, Token: open[0].Token}, dispatch.ResultPublished, "")
	r.WantWebhookEvents("found on the platform", publishtest.WebhookEvent{Post: post, Event: publishing.WebhookPublished, State: "PUBLISHED"})
}

func TestWebhookEvents_NoneWithoutAnEnabledEndpoint(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	channel := r.Channel()
	post := r.Post(channel, time.Hour)
	r.MoveTo(post, publishing.StateDraft)
	r.WantWebhookEvents("without an endpoint")
	now, why := time.Now(), publishing.DisabledByPerson
	r.Webhook(func(w *publishing.Webhook) { w.DisabledAt, w.DisabledFor = &now, &why })
	r.MoveTo(post, publishing.StateQueue)
	r.WantWebhookEvents("with one that is disabled")
	publishtest.NewStoreRigOn(r.Base).Webhook()
	r.MoveTo(post, publishing.StateDraft)
	r.WantWebhookEvents("with one of another organization")
	r.Webhook()
	r.Delete(post)
	r.Clock(`update post set state = 'ERROR', error = 'x' where id = $1`, post)
	r.WantWebhookEvents("a deleted post")
}

func TestAddWebhookEvent_IsForOrganizationsWithAnEndpoint(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	post := r.Post(r.Channel(), time.Hour)
	add := func() {
		r.OK(r.InOrg(func(tx *db.Tx) error {
			return webhookstore.AddWebhookEvent(r.Context(), tx, publishing.WebhookApprovalRequested, post, map[string]string{"status": "PENDING"})
		}))
	}
	count := func() int {
		return publishtest.Value[int](r.Base, `select count(id) from webhook_event where org_id = $1`, r.Org)
	}
	add()
	if n := count(); n != 0 {
		t.Errorf("got %d events without an endpoint, want 0", n)
	}
	r.Webhook()
	add()
	if n := count(); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}

// Beyond the limits of an endpoint, the oldest pending deliveries are given up but stay in the log,
// and the oldest rows of the log are deleted.
func TestAddDeliveries_KeepsWithinTheBounds(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	hook := r.Webhook()
	now := time.Now()
	add := func(n int) {
		var list []webhookstore.NewDelivery
		for range n {
			list = append(list, webhookstore.NewDelivery{
				ID: id.New[publishing.DeliveryTag](), Webhook: hook, Event: publishing.WebhookTest, Body: "[]",
			})
		}
		r.OK(r.InOrg(func(tx *db.Tx) error {
			return webhookstore.AddDeliveries(r.Context(), tx, list, now, "too many")
		}))
	}
	for range 12 {
		add(1000)
	}
	got := map[string]int{}
	r.OK(r.DB.InOrg(r.Context(), r.Org.UUID(), func(tx pgx.Tx) error {
		var pending, failed int
		err := tx.QueryRow(r.Context(), `select count(*) filter (where state = 'pending'),
			count(*) filter (where state = 'failed' and error = 'too many') from webhook_delivery`).Scan(&pending, &failed)
		got["pending"], got["failed"] = pending, failed
		return err
	}))
	want := map[string]int{"pending": publishing.MaxWebhookPending, "failed": publishing.MaxWebhookLog - publishing.MaxWebhookPending}
	if !maps.Equal(got, want) {
		t.Errorf("got %v deliveries, want %v", got, want)
	}
}
