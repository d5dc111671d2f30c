package slot_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/post"
	"crier/publishing/slot"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// slotRig is an organization without channels, and the use cases of its slots and posts.
type slotRig struct {
	*publishtest.Rig
	who   tenancy.Principal
	slots *slot.Slots
	posts *post.Posts
}

func newSlotRig(t *testing.T) *slotRig {
	t.Helper()
	r := publishtest.NewRig(t)
	r.Register(publishtest.Lenient{})
	return &slotRig{
		Rig: r, who: r.Organization(),
		slots: r.Deps.Slots(publishtest.Limits), posts: r.Deps.Posts(publishtest.Limits),
	}
}

// channel connects a channel with daily posting times, in minutes after midnight UTC.
func (r *slotRig) channel(minutes ...int) string {
	r.Helper()
	c := r.Connect(r.who.Org).String()
	cmd := publishing.SetQueuePlan{Zone: tenancy.ZoneRequest{Name: "UTC"}}
	for _, m := range minutes {
		cmd.Times = append(cmd.Times, publishing.QueueTime{Minute: m, Days: publishing.EveryDay})
	}
	_, err := r.slots.SetPlan(r.Context(), r.who, c, cmd)
	r.OK(err)
	return c
}

func (r *slotRig) find(channel string) time.Time {
	r.Helper()
	at, err := r.slots.Find(r.Context(), r.who, channel)
	r.OK(err)
	return at
}

func (r *slotRig) findAny() time.Time {
	r.Helper()
	at, err := r.slots.FindAny(r.Context(), r.who)
	r.OK(err)
	return at
}

// create makes a post at the given time.
func (r *slotRig) create(channel string, kind publishing.CreateType, at time.Time, repeat publishing.Repeat) publishing.PostID {
	r.Helper()
	post, err := publishtest.CreateAt(r.Context(), r.posts, r.who, channel, kind, at, repeat)
	r.OK(err)
	return post
}

// after returns the first n slots after the given time in a plan with these daily times, in minutes
// after midnight UTC.
func after(at time.Time, n int, minutes ...int) []time.Time {
	p := publishing.QueuePlan{Zone: time.UTC}
	for _, m := range minutes {
		p.Times = append(p.Times, publishing.QueueTime{Minute: m, Days: publishing.EveryDay})
	}
	return p.Next(at, n)
}

func (r *slotRig) want(what string, got, want time.Time) {
	r.Helper()
	if !got.Equal(want) {
		r.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func (r *slotRig) holds() int {
	r.Helper()
	return len(r.heldTimes())
}

// heldTimes returns the times of all holds, including holds that have ended.
func (r *slotRig) heldTimes() (out []time.Time) {
	r.Helper()
	r.OK(r.DB.InOrg(r.Context(), r.who.Org.UUID(), func(tx pgx.Tx) error {
		rows, err := tx.Query(r.Context(), `select at from slot_hold order by at, subject`)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowTo[time.Time])
		return err
	}))
	return out
}

func TestFindSlot_HoldsTheSlotItReturns(t *testing.T) {
	t.Parallel()
	r := newSlotRig(t)
	c, other := r.channel(0, 720), r.channel(0, 720)
	want := after(time.Now(), 5, 0, 720)
	r.want("the first call", r.find(c), want[0])
	r.want("the second call", r.find(c), want[1])
	r.want("another channel", r.find(other), want[0])
	r.create(c, publishing.CreateSchedule, want[0], publishing.Repeat{})
	if got := r.heldTimes(); !slices.EqualFunc(got, []time.Time{want[0], want[1]}, time.Time.Equal) {
		t.Errorf("after a post the holds are %v, want that of the other channel at %v and the one at %v", got, want[0], want[1])
	}
	r.want("after a post at the held time", r.find(c), want[2])
	r.Tenant(r.who.Org, `update slot_hold set expires_at = now() - interval '1 second' where at = $1`, want[1])
	r.want("after a hold has ended", r.find(c), want[1])
	if n := r.holds(); n != 3 {
		t.Errorf("there are %d holds, want 3", n)
	}
	r.want("a post at a held time is not refused", r.find(other), want[1])
	r.create(other, publishing.CreateSchedule, want[2], publishing.Repeat{})
	r.want("it takes its time", r.find(other), want[3])
}

func TestFindSlot_DeletesEndedHolds(t *testing.T) {
	t.Parallel()
	r := newSlotRig(t)
	c := r.channel(0, 720)
	for range 4 {
		r.find(c)
	}
	r.Tenant(r.who.Org, `update slot_hold set expires_at = now() - interval '1 second'`)
	r.find(c)
	if n := r.holds(); n != 1 {
		t.Errorf("there are %d holds, want that of the last call", n)
	}
}

func TestFindSlot_EditConsumesHold(t *testing.T) {
	t.Parallel()
	r := newSlotRig(t)
	c := r.channel(0, 720)
	draft := r.create(c, publishing.CreateDraft, time.Now().Add(2*365*24*time.Hour), publishing.Repeat{})
	at := r.find(c)
	_, err := r.posts.Create(t.Context(), r.who, publishing.CreatePosts{
		Type: publishing.CreateSchedule, Date: at.Add(30 * time.Second),
		Entries: []publishing.CreateEntry{{Channel: c, Parts: []publishing.CreatePart{{ID: draft.String(), Content: "a post"}}}},
	})
	r.OK(err)
	if n := r.holds(); n != 0 {
		t.Errorf("there are %d holds, want none", n)
	}
	r.want("the next call", r.find(c), after(time.Now(), 2, 0, 720)[1])
}

// TestFindSlot_TakenByState checks that a post takes its minute unless it has failed or is deleted.
func TestFindSlot_TakenByState(t *testing.T) {
	t.Parallel()
	for _, state := range publishing.States() {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			r := newSlotRig(t)
			c := r.channel(0)
			want := after(time.Now(), 2, 0)
			post := r.create(c, publishing.CreateDraft, want[0].Add(59*time.Second), publishing.Repeat{})
			r.Clock(`update post set state = $2::text, due = case when $2 <> 'WAITING' then due end,
				error = case when $2 = 'ERROR' then 'x' end, release_id = case when $2 = 'PUBLISHED' then 'x' end,
				maybe_sent = $2 = 'UNKNOWN', phase = case when $2 in ('PUBLISHING', 'UNKNOWN') then 'committing' end,
				claim_token = case when $2 in ('PUBLISHING', 'UNKNOWN') then gen_random_uuid() end, claim_holder = gen_random_uuid(),
				claim_until = now(), committing_at = now() where id = $1`, post, state)
			free := want[1]
			if state == publishing.StateError {
				free = want[0]
			}
			r.want("the slot", r.find(c), free)
		})
	}
	t.Run("a deleted post", func(t *testing.T) {
		t.Parallel()
		r := newSlotRig(t)
		c := r.channel(0)
		want := after(time.Now(), 1, 0)
		post := r.create(c, publishing.CreateSchedule, want[0], publishing.Repeat{})
		r.OK(r.posts.Delete(t.Context(), r.who, post.String()))
		r.want("the slot", r.find(c), want[0])
	})
}

func TestFindSlot_TakenByProjectedOccurrences(t *testing.T) {
	t.Parallel()
	r := newSlotRig(t)
	c, other := r.channel(0, 720), r.channel(0, 720)
	midnights, noons := after(time.Now(), 3, 0), after(time.Now(), 3, 720)
	r.create(c, publishing.CreateSchedule, midnights[0], publishing.Repeat{Days: 1})
	for _, want := range noons {
		r.want("of the channel", r.find(c), want)
	}
	r.want("of another channel", r.find(other), after(time.Now(), 1, 0, 720)[0])
}

func TestFindSlot_NoSlot(t *testing.T) {
	t.Parallel()
	r := newSlotRig(t)
	stranger := r.Organization()
	empty, c := r.channel(), r.channel(0)
	for name, ask := range map[string]struct {
		who     tenancy.Principal
		channel string
		want    fault.Kind
	}{
		"a channel of another organization": {who: stranger, channel: c, want: fault.NotFound},
		"a channel that does not exist":     {who: r.who, channel: id.New[publishing.ChannelTag]().String(), want: fault.NotFound},
		"an id that does not parse":         {who: r.who, channel: "x", want: fault.NotFound},
		"a channel without posting times":   {who: r.who, channel: empty, want: fault.Conflict},
	} {
		if _, err := r.slots.Find(t.Context(), ask.who, ask.channel); !fault.Is(err, ask.want) {
			t.Errorf("%s: got the error %v, want %v", name, err, ask.want)
		}
	}
	if _, err := r.slots.FindAny(t.Context(), stranger); !fault.Is(err, fault.Conflict) {
		t.Errorf("without a channel: got the error %v, want Conflict", err)
	}
	r.Tenant(r.who.Org, `update channel set timezone = 'Mars/Olympus' where id = $1`, c)
	if _, err := r.slots.Find(t.Context(), r.who, c); !fault.Is(err, fault.Conflict) {
		t.Errorf("in an unknown zone: got the error %v, want Conflict", err)
	}
}

func TestFindSlot_LooksAheadForAYear(t *testing.T) {
	t.Parallel()
	r := newSlotRig(t)
	c := r.channel(0)
	channel, _ := id.Parse[publishing.ChannelTag](c)
	var posts []publishing.Post
	for _, at := range after(time.Now(), 200, 0) {
		posts = append(posts, fixture.Post(r.who.Org, channel, at)...)
	}
	r.Insert(r.who.Org, posts...)
	r.want("behind posts of 200 days", r.find(c), after(time.Now(), 201, 0)[200])
	posts = nil
	for _, at := range after(time.Now(), 400, 0)[200:] {
		posts = append(posts, fixture.Post(r.who.Org, channel, at)...)
	}
	r.Insert(r.who.Org, posts...)
	if _, err := r.slots.Find(t.Context(), r.who, c); !fault.Is(err, fault.Conflict) {
		t.Errorf("behind posts of a year: got the error %v, want Conflict", err)
	}
}

func TestFindAnySlot(t *testing.T) {
	t.Parallel()
	r := newSlotRig(t)
	early, late := r.channel(0, 60), r.channel(60, 120)
	want := after(time.Now(), 9, 0, 60, 120)
	r.want("the earliest of any channel", r.findAny(), want[0])
	r.want("which it holds for all", r.findAny(), want[1])
	r.create(late, publishing.CreateDraft, want[2], publishing.Repeat{})
	r.want("a post of any channel takes it", r.findAny(), want[3])
	hold := r.find(early)
	// At want[2] the other channel has its post.
	for _, at := range []time.Time{want[0], want[1], want[3]} {
		if hold.Equal(at) {
			t.Errorf("a channel gets %v, which is held for all channels", hold)
		}
	}
	next := r.findAny()
	if next.Equal(hold) || !slices.ContainsFunc(want[4:], next.Equal) {
		t.Errorf("beside the hold of a channel at %v the slot is %v, want another of %v", hold, next, want[4:])
	}
	r.Tenant(r.who.Org, `delete from slot_hold`)
	r.Tenant(r.who.Org, `update channel set disabled = true where id = $1`, early)
	if got := r.findAny(); got.Minute() != 0 || got.Hour() == 0 {
		t.Errorf("got %v, want a time of the channel that is not disabled", got)
	}
}

// slotProcess has the use cases of one process.
type slotProcess struct {
	slots *slot.Slots
	posts *post.Posts
}

// TestFindSlot_NeverTwiceUnderConcurrency requests slots of one channel in two processes at once
// and schedules a post at each slot.
func TestFindSlot_NeverTwiceUnderConcurrency(t *testing.T) {
	t.Parallel()
	// A process lets 128 calls of an organization wait and refuses further ones.
	const calls, parallel = 500, 100
	r := newSlotRig(t)
	var minutes []int
	for m := 0; m < 24*60; m += 30 {
		minutes = append(minutes, m)
	}
	c := r.channel(minutes...)
	other := r.Deps
	other.DB = db.New(dbtest.OpenURL(t, r.Address))
	var mu sync.Mutex
	found := map[int64]int{}
	var processes errgroup.Group
	for _, p := range []slotProcess{
		{slots: r.slots, posts: r.posts},
		{slots: other.Slots(publishtest.Limits), posts: other.Posts(publishtest.Limits)},
	} {
		processes.Go(func() error {
			var group errgroup.Group
			group.SetLimit(parallel)
			for range calls {
				group.Go(func() error {
					at, err := p.slots.Find(t.Context(), r.who, c)
					if err != nil {
						return err
					}
					mu.Lock()
					found[at.Unix()]++
					mu.Unlock()
					_, err = publishtest.CreateAt(t.Context(), p.posts, r.who, c, publishing.CreateSchedule, at, publishing.Repeat{})
					return err
				})
			}
			return group.Wait()
		})
	}
	r.OK(processes.Wait())
	for at, n := range found {
		if n != 1 {
			t.Errorf("%v was named %d times", time.Unix(at, 0).UTC(), n)
		}
	}
	stored := publishtest.Value[int](r.Base, `select count(distinct publish_date) from post`)
	if len(found) != 2*calls || stored != 2*calls || r.holds() != 0 {
		t.Errorf("%d times were named, posts are at %d times and %d holds are left; want %d, %d and 0",
			len(found), stored, r.holds(), 2*calls, 2*calls)
	}
}
