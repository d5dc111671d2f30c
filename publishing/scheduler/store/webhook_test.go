package store_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	purgestore "crier/publishing/purge/store"
	webhookstore "crier/publishing/webhook/store"
	"crier/tenancy"
)

// webhook adds an endpoint of the organization.
func (r *rig) webhook(change ...func(*publishing.Webhook)) publishing.WebhookID {
	r.Helper()
	now := time.Now()
	w := publishing.Webhook{
		ID: id.New[publishing.WebhookTag](), Name: "hook", URL: "https://example.com", CreatedAt: now, UpdatedAt: now,
	}
	for _, c := range change {
		c(&w)
	}
	r.ok(r.inOrg(func(tx *db.Tx) error {
		return webhookstore.AddWebhook(r.Context(), tx, w, []byte("sealed"), tenancy.PersonID{})
	}))
	return w.ID
}

// told is an event for webhooks, as far as tests compare it.
type told struct {
	Post  publishing.PostID
	Event publishing.WebhookEvent
	State string
	Error string
}

// events returns the events for webhooks since the last call.
func (r *rig) events() (out []told) {
	r.Helper()
	r.ok(r.db.InOrg(r.Context(), r.org.UUID(), func(tx pgx.Tx) error {
		rows, err := tx.Query(r.Context(), `with e as (delete from webhook_event returning id, post_id, event, state, error)
			select post_id as post, event, state, coalesce(error, '') as error from e order by id`)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowToStructByName[told])
		return err
	}))
	return out
}

func (r *rig) wantEvents(when string, want ...told) {
	r.Helper()
	if got := r.events(); !slices.Equal(got, want) {
		r.Errorf("%s: got the events %v, want %v", when, got, want)
	}
}

func (r *rig) moveTo(post publishing.PostID, to publishing.State) {
	r.Helper()
	group := r.groupOf(post)
	r.ok(r.inOrg(func(tx *db.Tx) error {
		old, err := poststore.LockGroup(r.Context(), tx, group)
		if err != nil {
			return err
		}
		_, err = poststore.Move(r.Context(), tx, old, to, false, "test")
		return err
	}))
}

// Of a post with followers each change of what clients see is one event.
func TestWebhookEvents_FollowTheStateOfTheThread(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.webhook()
	channel := r.channel()
	send := func(result publishing.Result) publishing.PostID {
		t.Helper()
		claims := r.claim(1)
		if len(claims) != 1 {
			t.Fatalf("got %d claims, want 1", len(claims))
		}
		r.mark(claims...)
		r.finish(claims[0], result, "rejected")
		return claims[0].Post
	}
	due := func() {
		r.clock(`update post set due = now() - interval '1 minute' where state = 'QUEUE' and due > now()`)
	}

	post := r.post(channel, -time.Minute, time.Minute, time.Minute)
	r.wantEvents("a created post")
	send(publishing.ResultPublished)
	r.wantEvents("the first part is out, and delayed ones are not")
	due()
	send(publishing.ResultPublished)
	r.wantEvents("the second of three parts is out")
	due()
	send(publishing.ResultPublished)
	r.wantEvents("all parts are out", told{Post: post, Event: publishing.WebhookPublished, State: "PUBLISHED"})

	post = r.post(channel, -time.Minute, time.Minute, time.Minute)
	send(publishing.ResultPublished)
	due()
	send(publishing.ResultError)
	r.wantEvents("a follower failed, and the one behind it with it",
		told{Post: post, Event: publishing.WebhookFailed, State: "ERROR", Error: "rejected"})
	r.moveTo(post, publishing.StateDraft)
	r.wantEvents("made a draft", told{Post: post, Event: publishing.WebhookStatus, State: "DRAFT"})
	r.moveTo(post, publishing.StateQueue)
	r.wantEvents("scheduled", told{Post: post, Event: publishing.WebhookStatus, State: "QUEUE"})
	due()
	send(publishing.ResultError)
	r.wantEvents("the first part failed, and the followers with it",
		told{Post: post, Event: publishing.WebhookFailed, State: "ERROR", Error: "rejected"})

	post = r.post(channel, -time.Minute)
	claims := r.claim(1)
	r.wantEvents("a claim")
	r.finish(claims[0], publishing.ResultRetry, "")
	r.wantEvents("a retry")
	r.clock(`update post set not_before = null`)
	claims = r.claim(1)
	r.mark(claims...)
	r.finish(claims[0], publishing.ResultUnknown, "")
	r.wantEvents("an unknown outcome")
	r.clock(`update post set claim_until = now() where state = 'UNKNOWN'`)
	open := r.look(r.lease, time.Hour)
	r.finish(publishing.Claimed{Org: r.org, Post: post, Token: open[0].Token}, publishing.ResultPublished, "")
	r.wantEvents("found on the platform", told{Post: post, Event: publishing.WebhookPublished, State: "PUBLISHED"})
}

// agreeEvents compares the events since the last step with the changes of the states that clients see: webhooks and the
// API never contradict each other.
func (m *model) agreeEvents(rt *rapid.T) {
	want := map[publishing.PostID]string{}
	for _, p := range m.posts {
		shown := p.state
		if shown.Claimed() {
			shown = publishing.StateQueue
		}
		if !p.deleted && shown != p.told {
			want[p.id] = string(shown)
		}
		p.told = shown
	}
	got := map[publishing.PostID]string{}
	for _, e := range m.rig.events() {
		if got[e.Post] != "" {
			rt.Errorf("%s is told twice", e.Post)
		}
		got[e.Post] = e.State
	}
	if !maps.Equal(got, want) {
		rt.Errorf("webhooks are told %v, want %v", got, want)
	}
}

func TestWebhookEvents_NoneWithoutAnEnabledEndpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	channel := r.channel()
	post := r.post(channel, time.Hour)
	r.moveTo(post, publishing.StateDraft)
	r.wantEvents("without an endpoint")
	now, why := time.Now(), publishing.DisabledByPerson
	r.webhook(func(w *publishing.Webhook) { w.DisabledAt, w.DisabledFor = &now, &why })
	r.moveTo(post, publishing.StateQueue)
	r.wantEvents("with one that is disabled")
	newRigOn(t, r.db).webhook()
	r.moveTo(post, publishing.StateDraft)
	r.wantEvents("with one of another organization")
	r.webhook()
	r.delete(post)
	r.clock(`update post set state = 'ERROR', error = 'x' where id = $1`, post)
	r.wantEvents("a deleted post")
}

func TestAddWebhookEvent_IsForOrganizationsWithAnEndpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.post(r.channel(), time.Hour)
	add := func() {
		r.ok(r.inOrg(func(tx *db.Tx) error {
			return webhookstore.AddWebhookEvent(r.Context(), tx, publishing.WebhookApprovalRequested, post, map[string]string{"status": "PENDING"})
		}))
	}
	count := func() int { return value[int](r, `select count(id) from webhook_event where org_id = $1`, r.org) }
	add()
	if n := count(); n != 0 {
		t.Errorf("got %d events without an endpoint, want 0", n)
	}
	r.webhook()
	add()
	if n := count(); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}

// The bounds of an endpoint: what waits too long is given up and stays in the log, and the oldest rows go.
func TestAddDeliveries_KeepsWithinTheBounds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hook := r.webhook()
	now := time.Now()
	add := func(n int) {
		var list []webhookstore.NewDelivery
		for range n {
			list = append(list, webhookstore.NewDelivery{
				ID: id.New[publishing.DeliveryTag](), Webhook: hook, Event: publishing.WebhookTest, Body: "[]",
			})
		}
		r.ok(r.inOrg(func(tx *db.Tx) error {
			return webhookstore.AddDeliveries(r.Context(), tx, list, now, "too many")
		}))
	}
	for range 12 {
		add(1000)
	}
	got := map[string]int{}
	r.ok(r.db.InOrg(r.Context(), r.org.UUID(), func(tx pgx.Tx) error {
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

// An earlier secret stays until an hour after its end, when no process can still sign with it.
func TestPrune_EndedSecrets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hook := r.webhook()
	now := time.Now()
	for _, end := range []time.Duration{-2 * time.Hour, -30 * time.Minute, time.Hour} {
		r.ok(r.inOrg(func(tx *db.Tx) error {
			return webhookstore.RotateWebhook(r.Context(), tx, hook, []byte("sealed"), now.Add(end), now)
		}))
	}
	if n := r.prune(purgestore.PruneSecrets); n != 1 {
		t.Errorf("%d secrets were deleted, want 1", n)
	}
	if n := r.countOf("webhook_old_key", "ends_at > now() - interval '1 hour'"); n != 2 {
		t.Errorf("%d secrets are left, want those that sign or ended just now", n)
	}
}
