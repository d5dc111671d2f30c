package notification_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/connector"
	"crier/publishing/notification"
	notificationstore "crier/publishing/notification/store"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// platform is a connector that only has a descriptor.
type platform struct{ connector.Connector }

func (platform) Describe() connector.Descriptor {
	return connector.Descriptor{ID: "sandbox", Name: "Sandbox", Grade: publishing.GradeMarked}
}

// mailer records reports. If fail is set, it returns fail for reports of the organization of, or
// for all reports if of is zero.
type mailer struct {
	mu      sync.Mutex
	reports []tenancy.Report
	// calls counts the calls, each of which becomes one mail to each member.
	calls int
	fail  error
	of    tenancy.OrgID
}

func (m *mailer) QueueReports(_ context.Context, org tenancy.OrgID, list []tenancy.Report) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail != nil && (m.of.IsZero() || m.of == org) {
		return m.fail
	}
	m.reports = append(m.reports, list...)
	m.calls++
	return nil
}

// take returns the reports since the last call.
func (m *mailer) take() []tenancy.Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.reports
	m.reports = nil
	return out
}

// rig notifies the people of organizations. Its clock stands still until the test moves it.
type rig struct {
	*publishtest.Base
	mailer   *mailer
	notifier *notification.Notifier

	mu  sync.Mutex
	now time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{Base: publishtest.New(t), mailer: &mailer{}, now: time.Now().UTC().Truncate(time.Second)}
	r.notifier = r.process()
	return r
}

// process returns a Notifier that owns all shards, like one in another process after the first has
// crashed.
func (r *rig) process() *notification.Notifier {
	var shards []int16
	for shard := range tenancy.Shards {
		shards = append(shards, int16(shard))
	}
	return notification.New(notification.Deps{
		DB: r.Store, Connectors: r.Registry(platform{}), Mailer: r.mailer, Clock: clock.Func(r.time), Log: r.Logger,
		Shards: func() []int16 { return shards },
	})
}

func (r *rig) time() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) wait(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// organization is an organization with a channel.
type organization struct {
	*rig
	org     tenancy.OrgID
	channel publishing.ChannelID
}

func (r *rig) organization() organization {
	r.Helper()
	o := organization{rig: r, org: r.Organization().Org}
	o.channel = r.Connect(o.org)
	return o
}

// refusing makes the database refuse notifications with the reason, and returns the organization
// with another channel.
func (o organization) refusing(reason string) organization {
	o.Helper()
	o.super(`alter table notification add constraint refused check (reason is distinct from '` + reason + `')`)
	o.channel = o.Connect(o.org)
	return o
}

// approval adds a request by a person for the approval of a post of the channel, and a notification
// of the request or its answer. The notification is for the person to, or for everyone if to is
// zero.
func (o organization) approval(
	by tenancy.PersonID, status publishing.ApprovalStatus, answer publishing.ApprovalAnswer, to tenancy.PersonID,
) {
	o.Helper()
	approval := id.New[publishing.ApprovalTag]()
	o.Tenant(o.org, `insert into approval (org_id, id, post_id, status, token_hash, sealed_token, requested_by, requested_at, expires_at,
		resolved_at)
		select org_id, $2::uuid, id, $3::text, uuid_send($2::uuid), '', $4::uuid, $5::timestamptz, $5 + interval '7 days',
			case when $3 <> 'PENDING' then $5 end
		from post where channel_id = $1 limit 1`, o.channel, approval, string(status), by, o.time())
	o.Tenant(o.org, `insert into notification (org_id, id, kind, approval_id, answer, person_id, post_id, reason, posts, created_at, last_at,
		mail_at)
		select org_id, id, 'approval', id, $2, $3, post_id, 'Please.', 1, $4, $4, $5 from approval where id = $1`,
		approval, string(answer), to, o.time(), o.time().Add(publishing.IncidentMailDelay))
}

// queued adds queued posts to the channel.
func (o organization) queued(n int) {
	o.Helper()
	o.Tenant(o.org, `insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date)
		select $1, gen_random_uuid(), gen_random_uuid(), $2, 1, 'QUEUE', now(), now() from generate_series(1, $3)`,
		o.org, o.channel, n)
}

// fail ends all queued posts of the channel with an error, like the scheduler does.
func (o organization) fail(code, reason string) {
	o.Helper()
	o.Clock(`update post set state = 'ERROR', error = $2, error_code = $3, outcome_unknown = $3 = 'outcome_unknown',
		maybe_sent = $3 = 'outcome_unknown' where channel_id = $1 and state = 'QUEUE'`, o.channel, reason, code)
}

// fails adds posts that fail.
func (o organization) fails(n int, reason string) {
	o.Helper()
	o.queued(n)
	o.fail("rejected", reason)
}

// publishes adds posts that are published.
func (o organization) publishes(n int) {
	o.Helper()
	o.queued(n)
	o.Clock(`update post set state = 'PUBLISHED', release_id = 'r' where channel_id = $1 and state = 'QUEUE'`, o.channel)
}

// count runs the loop until nothing is left that it can count.
func (r *rig) count() {
	r.Helper()
	for more := true; more; {
		var err error
		more, err = r.notifier.Count(r.Context())
		r.OK(err)
	}
}

// mail runs the loop until nothing is left that it can mail.
func (r *rig) mail() {
	r.Helper()
	for more := true; more; {
		var err error
		more, err = r.notifier.Mail(r.Context())
		r.OK(err)
	}
}

// shown has the fields of a notification that tests compare.
type shown struct {
	Kind  publishing.NotificationKind
	Posts int
	Open  bool
}

func (o organization) shown() []shown {
	o.Helper()
	page, err := notificationstore.Notifications(o.Context(), o.Store, o.org, tenancy.PersonID{}, 0, 100)
	o.OK(err)
	slices.Reverse(page.Notifications)
	var out []shown
	for _, n := range page.Notifications {
		out = append(out, shown{Kind: n.Kind, Posts: n.Posts, Open: n.ClosedAt == nil})
	}
	return out
}

func (o organization) want(when string, want ...shown) {
	o.Helper()
	if got := o.shown(); !slices.Equal(got, want) {
		o.Errorf("%s: got the notifications %+v, want %+v", when, got, want)
	}
}

// events returns the number of waiting events.
func (r *rig) events() int {
	r.Helper()
	return publishtest.Value[int](r.Base, `select count(id) from incident_event`)
}

// wantReports checks the reports since the last call, as "kind posts", in any order.
func (r *rig) wantReports(when string, want ...string) []tenancy.Report {
	r.Helper()
	all := r.mailer.take()
	var got []string
	for _, x := range all {
		report := fmt.Sprint(x.Kind, " ", x.Posts)
		if x.OnlyPosts {
			report += " of posts"
		}
		got = append(got, report)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		r.Errorf("%s: got the reports %v, want %v", when, got, want)
	}
	return all
}

// dropDailyReport drops the report of the day's published posts. Late in the day it would become
// due during the test.
func (o organization) dropDailyReport() {
	o.Helper()
	o.Tenant(o.org, `update notification set mail_at = null where kind = 'published'`)
}

// super executes a statement as the owner of the database.
func (r *rig) super(sql string) {
	r.Helper()
	c, err := pgx.Connect(r.Context(), r.Address)
	r.OK(err)
	defer c.Close(context.WithoutCancel(r.Context()))
	_, err = c.Exec(r.Context(), sql)
	r.OK(err)
}

// hang begins a transaction that executes a statement as the organization and stays open until the
// test ends.
func (o organization) hang(sql string, args ...any) {
	o.Helper()
	c, err := pgx.Connect(o.Context(), o.Address)
	o.OK(err)
	o.T.Cleanup(func() { _ = c.Close(context.WithoutCancel(o.Context())) })
	_, err = c.Exec(o.Context(), `begin; set local role crier_tenant; set local app.org_id = '`+o.org.String()+`'`)
	o.OK(err)
	_, err = c.Exec(o.Context(), sql, args...)
	o.OK(err)
}
