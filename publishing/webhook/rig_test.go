package webhook_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/jobs"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/webhook"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// rig delivers the events of one organization. Its clock stands still until the test moves it.
type rig struct {
	*publishtest.Base
	org       tenancy.Principal
	channel   publishing.ChannelID
	deliverer *webhook.Deliverer
	client    *outbound.Client
	hooks     *webhook.Webhooks
	disabled  []string
	lastTask  int64

	mu  sync.Mutex
	now time.Time
	// asked, if set, is called when the deliverer asks for the time.
	asked func()
}

func newRig(t *testing.T, receivers ...*receiver) *rig {
	t.Helper()
	r := &rig{Base: publishtest.New(t), now: time.Now().UTC().Truncate(time.Second)}
	r.org = r.Organization()
	r.channel = r.Connect(r.org.Org)
	var allow []string
	for _, x := range receivers {
		allow = append(allow, strings.TrimPrefix(x.server.URL, "http://"))
	}
	client, err := outbound.New(outbound.Config{Allow: allow}, outbound.Deps{Log: r.Logger})
	r.OK(err)
	t.Cleanup(client.Close)
	r.client = client
	r.Store.Auditor = r
	queue, err := jobs.NewQueue()
	r.OK(err)
	var shards []int16
	for shard := range tenancy.Shards {
		shards = append(shards, int16(shard))
	}
	r.deliverer = webhook.New(webhook.Deps{
		DB: r.Store, Queue: queue, Keyring: r.Keyring, HTTP: client, Clock: clock.Func(r.time), Log: r.Logger,
		Chance: func() float64 { return 0.5 }, Shards: func() []int16 { return shards },
	})
	r.hooks = webhook.NewWebhooks(webhook.Config{MaxWebhooks: 10}, webhook.Deps{
		DB: r.Store, Keyring: r.Keyring, Clock: clock.Func(r.time), Log: r.Logger, HTTP: client,
	})
	return r
}

// AppendAudit records the endpoints that were disabled.
func (r *rig) AppendAudit(
	_ context.Context, _ pg.Querier, _ tenancy.Principal, action tenancy.Action, subject string,
) error {
	if action == tenancy.ActionWebhookDisabled {
		r.disabled = append(r.disabled, subject)
	}
	return nil
}

func (r *rig) time() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked != nil {
		r.asked()
	}
	return r.now
}

// wait moves the clock forward.
func (r *rig) wait(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// create creates a webhook for a URL and returns it with its secret.
func (r *rig) create(url string, change ...func(*publishing.SetWebhook)) (publishing.Webhook, string) {
	r.Helper()
	name := "hook"
	cmd := publishing.SetWebhook{Name: &name, URL: &url}
	for _, c := range change {
		c(&cmd)
	}
	w, secret, err := r.hooks.Create(r.Context(), r.org, cmd)
	r.OK(err)
	return w, secret
}

// publish makes a post with the text as its content and publishes it.
func (r *rig) publish(text string) publishing.PostID {
	r.Helper()
	posts := fixture.Post(r.org.Org, r.channel, time.Now().Add(time.Hour))
	posts[0].Parts[0].Content.Text = text
	r.Insert(r.org.Org, posts...)
	r.Clock(`update post set state = 'PUBLISHED', release_id = 'r1', release_url = 'https://example.com/r1' where id = $1`, posts[0].ID)
	return posts[0].ID
}

// step runs the loop once, and then the tasks that it has added, like a worker does.
func (r *rig) step() {
	r.Helper()
	_, err := r.deliverer.Step(r.Context())
	r.OK(err)
	for _, made := range r.tasks() {
		r.OK(r.deliverer.Deliver(r.Context(), r.org.Org, made.Webhook))
	}
}

// task is a task that the loop has added.
type task struct {
	ID      int64
	Kind    string
	Webhook publishing.WebhookID
}

// tasks returns the tasks of the organization since the last call.
func (r *rig) tasks() (out []task) {
	r.Helper()
	r.OK(r.DB.InOrg(r.Context(), r.org.Org.UUID(), func(tx pgx.Tx) error {
		rows, err := tx.Query(r.Context(), `select id, kind, (args->>'id')::uuid as webhook from jobs.river_job
			where id > $1 order by id`, r.lastTask)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowToStructByName[task])
		return err
	}))
	if len(out) > 0 {
		r.lastTask = out[len(out)-1].ID
	}
	return out
}

// deliveries returns the deliveries of a webhook, newest first.
func (r *rig) deliveries(w publishing.Webhook) []publishing.Delivery {
	r.Helper()
	list, err := r.hooks.Deliveries(r.Context(), r.org, w.ID.String(), publishing.ListDeliveries{Limit: 50})
	r.OK(err)
	return list
}

// record returns a webhook as it is listed.
func (r *rig) record(w publishing.Webhook) publishing.Webhook {
	r.Helper()
	list, err := r.hooks.List(r.Context(), r.org)
	r.OK(err)
	i := slices.IndexFunc(list, func(x publishing.WebhookRecord) bool { return x.ID == w.ID })
	if i < 0 {
		r.Fatal("the webhook is not listed")
	}
	return list[i].Webhook
}

// received is a call that a receiver got.
type received struct {
	Header http.Header
	Body   string
}

// receiver is an HTTP server that responds as the test sets it and records its calls.
type receiver struct {
	server *httptest.Server
	mu     sync.Mutex
	calls  []received
	answer http.HandlerFunc
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	x := &receiver{answer: answer}
	x.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		x.mu.Lock()
		x.calls = append(x.calls, received{Header: r.Header.Clone(), Body: string(body)})
		answer := x.answer
		x.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(x.server.Close)
	return x
}

// status returns a handler that responds with the status.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// take returns the calls since the last time and forgets them.
func (x *receiver) take() []received {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := x.calls
	x.calls = nil
	return out
}

func (x *receiver) set(answer http.HandlerFunc) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.answer = answer
}

// another gives the rig a new organization with a channel, and returns the previous organization.
func (r *rig) another() (before tenancy.Principal) {
	r.Helper()
	before = r.org
	r.org = r.Organization()
	r.channel = r.Connect(r.org.Org)
	return before
}

// suspend suspends the organization, or ends its suspension.
func (r *rig) suspend(on bool) {
	r.Helper()
	r.OK(r.DB.InRole(r.Context(), pg.Gate, func(tx pgx.Tx) error {
		_, err := tx.Exec(r.Context(), `update organization set suspended_at = case when $2 then now() end where id = $1`, r.org.Org, on)
		return err
	}))
}

// refuse makes the database refuse deliveries that meet a condition.
func (r *rig) refuse(condition string) {
	r.Helper()
	c, err := pgx.Connect(r.Context(), r.Address)
	r.OK(err)
	defer c.Close(context.WithoutCancel(r.Context()))
	_, err = c.Exec(r.Context(), `alter table webhook_delivery add constraint refused check (not (`+condition+`))`)
	r.OK(err)
}

// super returns a connection that bypasses row-level security. It is closed when the test ends.
func (r *rig) super() *pgx.Conn {
	r.Helper()
	cfg := dbtest.Super(r.T).Config()
	database, err := pgx.ParseConfig(r.Address)
	r.OK(err)
	cfg.Database = database.Database
	c, err := pgx.ConnectConfig(r.Context(), cfg)
	r.OK(err)
	r.Cleanup(func() { _ = c.Close(context.WithoutCancel(r.Context())) })
	return c
}

// queued returns how many tasks each organization got since the last call.
func (r *rig) queued() map[tenancy.OrgID]int {
	r.Helper()
	rows, err := r.super().Query(r.Context(), `select id, (args->>'org')::uuid from jobs.river_job where id > $1 order by id`, r.lastTask)
	r.OK(err)
	out := map[tenancy.OrgID]int{}
	var org tenancy.OrgID
	_, err = pgx.ForEachRow(rows, []any{&r.lastTask, &org}, func() error { out[org]++; return nil })
	r.OK(err)
	return out
}
