package wall

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/analytics"
	"crier/publishing/approval"
	"crier/publishing/channel"
	"crier/publishing/media"
	"crier/publishing/notification"
	"crier/publishing/post"
	"crier/publishing/scheduler"
	"crier/publishing/slot"
	"crier/tenancy"
	sample "crier/tests/fixture"
	"crier/tests/publishtest"
)

// side is a channel of an organization with one of everything that belongs to a channel.
type side struct {
	channel              publishing.ChannelID
	customer             publishing.CustomerID
	draft, queued, group string
	repeated, later      string
	approval             publishing.ApprovalID
	approved             string
	part                 string
}

// needles returns the texts by which a response shows the side.
func (s side) needles() []string {
	return []string{
		s.channel.String(), s.customer.String(), s.draft, s.queued, s.group, s.repeated, s.later, s.approval.String(), s.approved,
	}
}

// narrowRig is an organization with a side that a narrowed principal sees and one that is hidden.
type narrowRig struct {
	*publishtest.Rig
	who             tenancy.Principal
	ctx             context.Context // narrowed to the channel of the visible side
	visible, hidden side
	posts           *post.Posts
	approvals       *approval.Approvals
	channels        *channel.Channels
	slots           *slot.Slots
	media           *media.Media
	queue           *scheduler.Queue
	analytics       *analytics.Analytics
	notifications   *notification.Notifications
}

func newNarrowRig(t *testing.T) *narrowRig {
	t.Helper()
	r := &narrowRig{Rig: publishtest.NewRig(t)}
	r.Register(publishtest.Lenient{})
	r.who = r.Organization()
	r.posts = r.Deps.Posts(publishtest.Limits)
	r.approvals = r.Deps.Approvals(publishtest.Limits, r.posts, nil)
	r.channels = r.Deps.Channels(publishtest.Limits)
	r.slots = r.Deps.Slots(publishtest.Limits)
	r.media = r.Deps.Media(publishtest.Limits)
	r.queue = r.Deps.Queue(publishtest.Limits)
	r.analytics = r.Deps.Analytics(publishtest.Limits)
	r.notifications = r.Deps.Notifications()
	r.visible, r.hidden = r.side("visible", 0), r.side("hidden", time.Minute)
	r.ctx = pg.Narrow(t.Context(), pg.Narrowing{Channels: []string{r.visible.channel.String()}})
	return r
}

// side stores a side whose names contain a word. Its posts are published a moment later than those
// of the other side.
func (r *narrowRig) side(word string, moment time.Duration) side {
	r.Helper()
	out := side{channel: r.Connect(r.who.Org), customer: id.New[publishing.CustomerTag]()}
	r.Tenant(r.who.Org, `with u as (insert into customer (org_id, id, name) values ($1, $2, $3) returning org_id, id)
		update channel c set name = $3, customer_id = u.id from u where c.org_id = u.org_id and c.id = $4`,
		r.who.Org, out.customer, word, out.channel)
	create := func(kind publishing.CreateType, repeat publishing.Repeat) string {
		at := time.Now().Add(24*time.Hour + moment).UTC().Truncate(time.Second)
		made, err := publishtest.CreateAt(r.Context(), r.posts, r.who, out.channel.String(), kind, at, repeat)
		r.OK(err)
		return made.String()
	}
	out.draft, out.queued = create(publishing.CreateDraft, publishing.Repeat{}), create(publishing.CreateSchedule, publishing.Repeat{})
	out.repeated = create(publishing.CreateSchedule, publishing.Repeat{Days: 1})
	repeated, _ := id.Parse[publishing.PostTag](out.repeated)
	out.later = publishing.Occurrence(repeated, 1).String()
	queued, err := r.posts.Get(r.Context(), r.who, out.queued)
	r.OK(err)
	out.group, out.part = queued.Root.Group.String(), queued.Root.Parts[0].ID.String()
	out.approved = create(publishing.CreateDraft, publishing.Repeat{})
	asked, err := r.approvals.Request(r.Context(), r.who, out.approved, publishing.RequestApproval{})
	r.OK(err)
	out.approval = asked.ID
	r.Tenant(r.who.Org, `insert into notification (org_id, id, kind, channel_id, post_id, posts, created_at, last_at)
		values ($1, gen_random_uuid(), 'failed', $2, $3, 1, now(), now())`, r.who.Org, out.channel, out.queued)
	r.Tenant(r.who.Org, `insert into insight (org_id, subject, channel_id, read_at) values ($1, $2, $2, now())`, r.who.Org, out.channel)
	return out
}

// reads returns the use cases that read, by name.
func (r *narrowRig) reads(ctx context.Context) map[string]func() (any, error) {
	from, until := time.Now(), time.Now().Add(60*24*time.Hour)
	page := publishing.Page{Limit: 100}
	return map[string]func() (any, error){
		"channels":      func() (any, error) { return r.channels.List(ctx, r.who, "") },
		"of a customer": func() (any, error) { return r.channels.List(ctx, r.who, r.hidden.customer.String()) },
		"customers":     func() (any, error) { return r.channels.Customers(ctx, r.who) },
		"posts":         func() (any, error) { return r.posts.List(ctx, r.who, publishing.ListPosts{Start: from, End: until}) },
		"posts of a customer": func() (any, error) {
			return r.posts.List(ctx, r.who, publishing.ListPosts{Start: from, End: until, Customer: r.hidden.customer.String()})
		},
		"a page of posts": func() (any, error) { return r.posts.List(ctx, r.who, publishing.ListPosts{Page: &page}) },
		"approvals":       func() (any, error) { return r.approvals.List(ctx, r.who, publishing.ListApprovals{Limit: 100}) },
		"notifications":   func() (any, error) { return r.notifications.List(ctx, r.who, 0) },
		"report":          func() (any, error) { return r.analytics.Report(ctx, r.who, publishing.GetReport{Days: 30}) },
	}
}

func TestNarrowed_ListsShowNothingOfAHiddenChannel(t *testing.T) {
	t.Parallel()
	r := newNarrowRig(t)
	for name, read := range r.reads(r.ctx) {
		got, err := read()
		must(t, err)
		text := shown(t, got)
		for _, needle := range append(r.hidden.needles(), "hidden") {
			if strings.Contains(text, needle) {
				t.Errorf("%s show %s of the hidden channel", name, needle)
			}
		}
	}
	// The same reads show it to those who are not narrowed, so the test would fail.
	for name, read := range r.reads(t.Context()) {
		got, err := read()
		must(t, err)
		if text := shown(t, got); name != "report" && !strings.Contains(text, "hidden") && !strings.Contains(text, r.hidden.queued) &&
			!strings.Contains(text, r.hidden.approval.String()) {
			t.Errorf("%s show nothing of the channel that is not hidden: %s", name, text)
		}
	}
	whole, err := r.analytics.Report(t.Context(), r.who, publishing.GetReport{Days: 30})
	must(t, err)
	part, err := r.analytics.Report(r.ctx, r.who, publishing.GetReport{Days: 30})
	must(t, err)
	if whole.Channels.Total != 2 || part.Channels.Total != 1 || 2*part.Posts.Scheduled != whole.Posts.Scheduled {
		t.Errorf("the report counts %+v and %+v, narrowed %+v and %+v; want half", whole.Channels, whole.Posts, part.Channels, part.Posts)
	}
	all, err := r.posts.List(r.ctx, r.who, publishing.ListPosts{Page: &publishing.Page{Limit: 1}})
	must(t, err)
	if all.Total != 4 {
		t.Errorf("the list counts %d posts, want those of the visible channel", all.Total)
	}
}

func shown(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return string(text)
}

// questionsAbout returns the use cases that take the id of something, by name. Each is asked about
// the ids of a side.
func (r *narrowRig) questionsAbout(ctx context.Context, s side) map[string]func() error {
	text := func(entry publishing.CreateEntry, kind publishing.CreateType) func() error {
		return func() error {
			_, err := r.posts.Create(ctx, r.who, publishing.CreatePosts{
				Type: kind, Date: time.Now().Add(time.Hour), Entries: []publishing.CreateEntry{entry},
			})
			return err
		}
	}
	parts := []publishing.CreatePart{{Content: "words"}}
	visible := r.visible.channel.String()
	return map[string]func() error{
		"get a draft":            func() error { _, err := r.posts.Get(ctx, r.who, s.draft); return err },
		"get a post":             func() error { _, err := r.posts.Get(ctx, r.who, s.queued); return err },
		"get a later occurrence": func() error { _, err := r.posts.Get(ctx, r.who, s.later); return err },
		"delete":                 func() error { return r.posts.Delete(ctx, r.who, s.draft) },
		"delete an occurrence":   func() error { return r.posts.Delete(ctx, r.who, s.later) },
		"delete a group":         func() error { return r.posts.DeleteGroup(ctx, r.who, s.group) },
		"missing":                func() error { _, err := r.posts.Missing(ctx, r.who, s.queued); return err },
		"release id":             func() error { return r.posts.SetRelease(ctx, r.who, s.draft, "x") },
		"a bad release id":       func() error { return r.posts.SetRelease(ctx, r.who, s.draft, "") },
		"settings": func() error {
			_, err := r.posts.ChangeSettings(ctx, r.who, s.draft, publishing.ChangeSettings{Settings: []byte(`{"a":1}`)})
			return err
		},
		"schedule": func() error {
			_, err := r.posts.ChangeStatus(ctx, r.who, s.draft, publishing.ChangeStatus{To: publishing.CreateSchedule})
			return err
		},
		"unschedule": func() error {
			_, err := r.posts.ChangeStatus(ctx, r.who, s.queued, publishing.ChangeStatus{To: publishing.CreateDraft})
			return err
		},
		"a bad status": func() error {
			_, err := r.posts.ChangeStatus(ctx, r.who, s.queued, publishing.ChangeStatus{To: "x"})
			return err
		},
		"create":          text(publishing.CreateEntry{Channel: s.channel.String(), Parts: parts}, publishing.CreateSchedule),
		"create a draft":  text(publishing.CreateEntry{Channel: s.channel.String(), Parts: parts}, publishing.CreateDraft),
		"replace a group": text(publishing.CreateEntry{Channel: visible, Group: s.group, Parts: parts}, publishing.CreateUpdate),
		"replace a part":  text(publishing.CreateEntry{Channel: visible, Parts: []publishing.CreatePart{{ID: s.part, Content: "x"}}}, publishing.CreateSchedule),
		"replace a later": text(publishing.CreateEntry{Channel: visible, Parts: []publishing.CreatePart{{ID: s.later, Content: "x"}}}, publishing.CreateSchedule),
		"check": func() error {
			out, err := r.posts.Check(ctx, r.who, publishing.CreatePosts{
				Type: publishing.CreateSchedule, Date: time.Now(), Entries: []publishing.CreateEntry{{Channel: s.channel.String(), Parts: parts}},
			})
			if err != nil {
				return err
			}
			return fmt.Errorf("%+v", out)
		},
		"find a slot": func() error { _, err := r.slots.Find(ctx, r.who, s.channel.String()); return err },
		"queue plan":  func() error { _, err := r.slots.Plan(ctx, r.who, s.channel.String()); return err },
		"set the queue plan": func() error {
			_, err := r.slots.SetPlan(ctx, r.who, s.channel.String(), publishing.SetQueuePlan{})
			return err
		},
		"request approval": func() error {
			_, err := r.approvals.Request(ctx, r.who, s.draft, publishing.RequestApproval{})
			return err
		},
		"approval of": func() error { _, err := r.approvals.Status(ctx, r.who, s.approved); return err },
		"withdraw":    func() error { _, err := r.approvals.Withdraw(ctx, r.who, s.approval.String()); return err },
		"resolve": func() error {
			_, err := r.approvals.Resolve(ctx, r.who, s.approval.String(), publishing.ResolveApproval{Action: publishing.ActionReject})
			return err
		},
		"channel statistics": func() error {
			_, err := r.analytics.Channel(ctx, r.who, publishing.GetAnalytics{Channel: s.channel.String(), Days: 7})
			return err
		},
		"post statistics": func() error {
			_, err := r.analytics.Post(ctx, r.who, publishing.GetPostAnalytics{Post: s.queued, Days: 7})
			return err
		},
		"figures": func() error {
			_, err := r.analytics.Figures(ctx, r.who, publishing.GetSamples{Channel: s.channel.String(), Day: publishing.DayOf(time.Now())})
			return err
		},
		"report of a customer": func() error {
			_, err := r.analytics.Report(ctx, r.who, publishing.GetReport{Customer: s.customer.String(), Days: 7})
			return err
		},
		"platform": func() error { _, _, err := r.tools().Platform(ctx, r.who, s.channel.String()); return err },
		"tool": func() error {
			_, err := r.tools().Trigger(ctx, r.who, publishing.TriggerTool{Channel: s.channel.String(), Name: "x"})
			return err
		},
		"pause": func() error {
			_, err := r.queue.Pause(ctx, r.who, publishing.SetPause{Scope: publishing.PauseChannel, ID: s.channel.String(), Paused: true})
			return err
		},
		"pause a customer": func() error {
			_, err := r.queue.Pause(ctx, r.who, publishing.SetPause{Scope: publishing.PauseCustomer, ID: s.customer.String(), Paused: true})
			return err
		},
		"reconnect": func() error {
			_, err := r.channels.Begin(ctx, r.who, publishing.BeginConnect{Connector: "sandbox", Refresh: s.channel.String()})
			return err
		},
		"disconnect": func() error { return r.channels.Disconnect(ctx, r.who, s.channel.String()) },
	}
}

func (r *narrowRig) tools() *channel.Tools {
	return channel.NewTools(r.Deps.Connectors, r.Deps.Access, r.Logger)
}

// unknownSide has ids that nobody has given to anything.
func unknownSide() side {
	any := func() string { return id.New[publishing.PostTag]().String() }
	return side{
		channel: id.New[publishing.ChannelTag](), customer: id.New[publishing.CustomerTag](), draft: any(), queued: any(), group: any(),
		repeated: any(), later: any(), approval: id.New[publishing.ApprovalTag](), approved: any(), part: any(),
	}
}

// TestNarrowed_HiddenIsLikeUnknown asks every use case about the hidden side and about ids that do
// not exist. The answers must be the same, and nothing of the hidden side may change.
func TestNarrowed_HiddenIsLikeUnknown(t *testing.T) {
	t.Parallel()
	r := newNarrowRig(t)
	before := r.rowsOf(r.hidden)
	unknown := unknownSide()
	asUnknown := r.questionsAbout(r.ctx, unknown)
	for name, ask := range r.questionsAbout(r.ctx, r.hidden) {
		got, want := withoutIDs(ask(), r.hidden), withoutIDs(asUnknown[name](), unknown)
		if got != want || got == "" {
			t.Errorf("%s: got %q, want %q as for an unknown id", name, got, want)
		}
	}
	if after := r.rowsOf(r.hidden); after != before {
		t.Errorf("the hidden side has changed from\n%s\nto\n%s", before, after)
	}
	for _, name := range []string{
		"get a draft", "get a post", "get a later occurrence", "queue plan", "approval of", "channel statistics",
		"report of a customer", "platform",
	} {
		if err := r.questionsAbout(r.ctx, r.visible)[name](); err != nil {
			t.Errorf("%s of the visible channel: got %v, want it", name, err)
		}
	}
}

// withoutIDs returns an error as clients see it, with the ids of a side replaced.
func withoutIDs(err error, s side) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	for i, needle := range append(s.needles(), s.part) {
		text = strings.ReplaceAll(text, needle, fmt.Sprintf("<%d>", i))
	}
	return text
}

// rowsOf returns the rows of a side.
func (r *narrowRig) rowsOf(s side) (all string) {
	r.Helper()
	r.OK(r.DB.InOrg(r.Context(), r.who.Org.UUID(), func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), `select
			(select string_agg(p::text, e'\n' order by p.id) from post p where p.channel_id = $1) ||
			(select string_agg(a::text, e'\n' order by a.id) from approval a join post p on p.id = a.post_id where p.channel_id = $1) ||
			(select c::text from channel c where c.id = $1) || (select q::text from channel_queue q where q.channel_id = $1) ||
			(select count(*)::text from pause) || (select count(*)::text from connect_state)`, s.channel).Scan(&all)
	}))
	return all
}

// Entries of one create have groups of their own, but a group may hold posts of several channels.
// Such a group is changed as a whole or not at all.
func TestNarrowed_ChangesNoGroupInPart(t *testing.T) {
	t.Parallel()
	r := newNarrowRig(t)
	group := func() (id string, root string) {
		posts := sample.Post(r.who.Org, r.visible.channel, time.Now().Add(24*time.Hour), time.Hour)
		posts[1].Channel = r.hidden.channel
		r.Insert(r.who.Org, posts...)
		return posts[0].Group.String(), posts[0].ID.String()
	}
	left := func(id string) (n int) {
		return publishtest.Value[int](r.Base, `select count(id) from post where group_id = $1 and deleted_at is null and state in ('QUEUE', 'WAITING')`, id)
	}
	id, root := group()
	for name, change := range map[string]func(ctx context.Context) error{
		"delete the group": func(ctx context.Context) error { return r.posts.DeleteGroup(ctx, r.who, id) },
		"delete the post":  func(ctx context.Context) error { return r.posts.Delete(ctx, r.who, root) },
		"unschedule": func(ctx context.Context) error {
			_, err := r.posts.ChangeStatus(ctx, r.who, root, publishing.ChangeStatus{To: publishing.CreateDraft})
			return err
		},
	} {
		if err := change(r.ctx); !fault.Is(err, fault.NotFound) || left(id) != 2 {
			t.Errorf("%s: got %v and %d posts, want NotFound and both", name, err, left(id))
		}
	}
	must(t, r.posts.DeleteGroup(t.Context(), r.who, id))
	if n := left(id); n != 0 {
		t.Errorf("%d posts are left after the whole group was deleted, want none", n)
	}
}

// A customer's channels are those that it has when the statement runs.
func TestNarrowed_FollowsChannelsOfCustomers(t *testing.T) {
	t.Parallel()
	r := newNarrowRig(t)
	ctx := pg.Narrow(t.Context(), pg.Narrowing{Customers: []string{r.hidden.customer.String()}})
	sees := func(want ...publishing.ChannelID) {
		t.Helper()
		list, err := r.channels.List(ctx, r.who, "")
		must(t, err)
		var got []publishing.ChannelID
		for _, c := range list {
			got = append(got, c.ID)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got the channels %v, want %v", got, want)
		}
	}
	sees(r.hidden.channel)
	r.Tenant(r.who.Org, `update channel set customer_id = $1 where id = $2`, r.hidden.customer, r.visible.channel)
	sees(r.visible.channel, r.hidden.channel)
	if _, err := r.posts.Get(ctx, r.who, r.visible.draft); err != nil {
		t.Errorf("a post of the moved channel: got %v, want it", err)
	}
	r.Tenant(r.who.Org, `update channel set customer_id = null where id = $1`, r.hidden.channel)
	sees(r.visible.channel)
	if _, err := r.posts.Get(ctx, r.who, r.hidden.draft); !fault.Is(err, fault.NotFound) {
		t.Errorf("a post of the channel that was taken out: got %v, want NotFound", err)
	}
}

// What is counted for the organization, or must be unique in it, is counted with everything.
func TestNarrowed_CountsTheWholeOrganization(t *testing.T) {
	t.Parallel()
	t.Run("posts of a plan", func(t *testing.T) {
		t.Parallel()
		r := newNarrowRig(t)
		r.Deps.Quota = plan(4) // the queued and repeated posts of both sides
		posts := r.Deps.Posts(publishtest.Limits)
		_, err := publishtest.CreateAt(r.ctx, posts, r.who, r.visible.channel.String(), publishing.CreateSchedule,
			time.Now().Add(24*time.Hour), publishing.Repeat{})
		if !fault.Is(err, fault.Quota) {
			t.Errorf("got %v, want Quota", err)
		}
		_, err = posts.ChangeStatus(r.ctx, r.who, r.visible.draft, publishing.ChangeStatus{To: publishing.CreateSchedule})
		if !fault.Is(err, fault.Quota) {
			t.Errorf("schedule: got %v, want Quota", err)
		}
	})
	t.Run("slots", func(t *testing.T) {
		t.Parallel()
		r := newNarrowRig(t)
		at, err := r.slots.FindAny(r.ctx, r.who)
		must(t, err)
		r.Tenant(r.who.Org, `delete from slot_hold`)
		_, err = publishtest.CreateAt(t.Context(), r.posts, r.who, r.hidden.channel.String(), publishing.CreateDraft, at, publishing.Repeat{})
		must(t, err)
		next, err := r.slots.FindAny(r.ctx, r.who)
		must(t, err)
		if !next.After(at) {
			t.Errorf("got %v, want a time after %v, which a post of the hidden channel takes", next, at)
		}
	})
	t.Run("the order of notifications", func(t *testing.T) {
		t.Parallel()
		r := newNarrowRig(t)
		r.Tenant(r.who.Org, `update notification set last_at = now() + interval '1 hour' where channel_id = $1`, r.hidden.channel)
		_, err := r.approvals.Request(r.ctx, r.who, r.visible.draft, publishing.RequestApproval{})
		must(t, err)
		list, err := r.notifications.List(t.Context(), r.who, 0)
		must(t, err)
		if list.Notifications[0].Kind != publishing.NotifyApproval {
			t.Errorf("the newest notification is %+v, want the request", list.Notifications[0])
		}
	})
	t.Run("files in use", func(t *testing.T) {
		t.Parallel()
		r := newNarrowRig(t)
		medium := r.Medium(r.who.Org)
		r.InState(r.who.Org, r.hidden.channel, publishing.StateQueue, medium)
		if err := r.media.Delete(r.ctx, r.who, medium.ID.String()); !fault.Is(err, fault.Conflict) {
			t.Errorf("got %v, want Conflict: a post of the hidden channel uses the file", err)
		}
	})
	t.Run("idempotency keys", func(t *testing.T) {
		t.Parallel()
		r := newNarrowRig(t)
		cmd := publishing.CreatePosts{
			Type: publishing.CreateDraft, Date: time.Now(), IdempotencyKey: "key", RequestHash: []byte("hash"),
			Entries: []publishing.CreateEntry{{Channel: r.hidden.channel.String(), Parts: []publishing.CreatePart{{Content: "x"}}}},
		}
		made, err := r.posts.Create(t.Context(), r.who, cmd)
		must(t, err)
		if out, err := r.posts.Create(r.ctx, r.who, cmd); !fault.Is(err, fault.Invalid) || len(out.Created) > 0 {
			t.Errorf("the same request: got %+v, %v; want Invalid as for an unknown channel", out, err)
		}
		cmd.RequestHash, cmd.Entries[0].Channel = []byte("other"), r.visible.channel.String()
		if out, err := r.posts.Create(r.ctx, r.who, cmd); !fault.Is(err, fault.Conflict) || len(out.Created) > 0 {
			t.Errorf("another request: got %+v, %v; want Conflict", out, err)
		}
		if out, err := r.posts.Create(t.Context(), r.who, cmd); err != nil || !out.Replayed || out.Created[0].Post != made.Created[0].Post {
			t.Errorf("not narrowed: got %+v, %v; want the first result", out, err)
		}
	})
}

// plan is a quota that limits only the posts in a month.
type plan int

func (p plan) Limits(context.Context, pg.Querier, tenancy.OrgID) (tenancy.Limits, error) {
	limits := tenancy.NoLimits()
	limits.Posts = int(p)
	return limits, nil
}

// A pause applies to all channels of its subject, so it needs all of them.
func TestNarrowed_PausesOnlyWhatIsVisibleWhole(t *testing.T) {
	t.Parallel()
	r := newNarrowRig(t)
	r.Tenant(r.who.Org, `update channel set customer_id = $1 where id = $2`, r.visible.customer, r.hidden.channel)
	pause := func(ctx context.Context, scope publishing.PauseScope, of string) error {
		_, err := r.queue.Pause(ctx, r.who, publishing.SetPause{Scope: scope, ID: of, Paused: true})
		return err
	}
	if err := pause(r.ctx, publishing.PauseOrganization, ""); !fault.Is(err, fault.Forbidden) {
		t.Errorf("the organization: got %v, want Forbidden", err)
	}
	if err := pause(r.ctx, publishing.PauseCustomer, r.visible.customer.String()); !fault.Is(err, fault.NotFound) {
		t.Errorf("a customer with a hidden channel: got %v, want NotFound", err)
	}
	whole := pg.Narrow(t.Context(), pg.Narrowing{Customers: []string{r.visible.customer.String()}})
	if err := pause(whole, publishing.PauseCustomer, r.visible.customer.String()); err != nil {
		t.Errorf("a customer in the list: got %v, want nil", err)
	}
}

// TestNarrowed_EveryTable counts the rows of each tenant table, so that a table whose policy hides
// nothing is found.
func TestNarrowed_EveryTable(t *testing.T) {
	t.Parallel()
	r := newNarrowRig(t)
	counts := func(ctx context.Context) map[string]int {
		out := map[string]int{}
		must(t, r.DB.InOrg(ctx, r.who.Org.UUID(), func(tx pgx.Tx) error {
			for table := range narrowed {
				var n int
				if err := tx.QueryRow(ctx, "select count(*) from "+table).Scan(&n); err != nil {
					return err
				}
				out[table] = n
			}
			return nil
		}))
		return out
	}
	whole, part := counts(t.Context()), counts(r.ctx)
	nothing := counts(pg.Narrow(t.Context(), pg.Narrowing{Channels: []string{id.New[publishing.ChannelTag]().String()}}))
	for _, table := range []string{"channel", "customer", "post", "series", "part", "post_event", "approval", "channel_queue", "notification", "insight"} {
		if whole[table] == 0 || part[table]*2 != whole[table] || nothing[table] != 0 {
			t.Errorf("%s has %d rows, narrowed %d, narrowed to nothing %d; want half and none", table, whole[table], part[table], nothing[table])
		}
	}
}
