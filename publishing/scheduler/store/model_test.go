package store_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"crier/platform/fault"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// TestQueue_AgreesWithModel draws random steps: processes claim, send, end and finish too late,
// people change posts, and time passes. After every step the database must agree with the model,
// and no call may begin while an earlier call of the same publication may have taken effect.
func TestQueue_AgreesWithModel(t *testing.T) {
	t.Parallel()
	shared := newRig(t)
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, shared.another())
		rt.Repeat(map[string]func(*rapid.T){
			"":             m.agree,
			"book":         m.book,
			"claim":        m.claim,
			"claim again":  m.claim,
			"claim late":   m.claimStale,
			"mark":         m.mark,
			"mark again":   m.mark,
			"unmark":       m.unmark,
			"finish":       m.finish,
			"finish again": m.finish,
			"reap":         m.reap,
			"die":          m.die,
			"look":         m.look,
			"wait":         m.wait,
			"move":         m.move,
			"delete":       m.delete,
			"pause":        func(rt *rapid.T) { m.hold(rt, "paused", func(c *modelChannel) *bool { return &c.paused }) },
			"park":         func(rt *rapid.T) { m.hold(rt, "parked", func(c *modelChannel) *bool { return &c.parked }) },
		})
	})
}

// model is the expected state of the tables.
type model struct {
	rig      *rig
	channels []*modelChannel
	posts    []*modelPost // in the order in which they were created
	claims   []*modelClaim
	stale    []dispatch.Lease
	gone     map[uuid.UUID]bool // processes whose rows are deleted
}

type modelChannel struct {
	id             publishing.ChannelID
	busy           *modelPost // the post that holds it
	paused, parked bool
}

type modelPost struct {
	id      publishing.PostID
	group   publishing.GroupID
	channel *modelChannel
	due     time.Time
	state   publishing.State
	phase   string
	code    string
	token   uuid.UUID         // the token of the last claim; zero once the claim has ended
	expired bool              // the claim has expired
	dueLook bool              // the outcome is unknown and it is time to ask the platform
	backing bool              // the post is in its back-off
	deleted bool              // the post is marked as deleted
	maybe   bool              // the post may have been sent: maybe_sent
	reaps   int               // claims in a row that ended with their process
	out     *modelPublication // the publication of the current round; nil before its first claim
	told    publishing.State  // the last state that webhooks reported
}

// modelPublication is the publication of one round of a post. It is published at most once.
type modelPublication struct {
	id    publishing.PublicationID
	phase string
	maybe bool
	open  bool // a call may have taken effect, and its outcome is unknown
}

// modelClaim is a claim that was made at some time and that its process may still finish.
type modelClaim struct {
	dispatch.Claimed
	post   *modelPost
	out    *modelPublication
	marked bool
	holder uuid.UUID
}

func newModel(rt *rapid.T, r *rig) *model {
	m := &model{rig: r, gone: map[uuid.UUID]bool{}}
	// This ends what the previous sequence left claimed.
	r.Clock(`update post set state = 'ERROR', error = 'over', outcome_unknown = maybe_sent where state in ('PUBLISHING', 'UNKNOWN')`)
	r.Webhook()
	for range rapid.IntRange(1, 3).Draw(rt, "channels") {
		m.channels = append(m.channels, &modelChannel{id: r.Channel()})
	}
	slices.SortFunc(m.channels, func(a, b *modelChannel) int { return cmp.Compare(a.id.String(), b.id.String()) })
	return m
}

// draw chooses an element by its index, so that the log of a failing sequence has the index instead
// of the element.
func draw[T any](rt *rapid.T, from []T, name string) T {
	if len(from) == 0 {
		rt.Skip("there is none")
	}
	return from[rapid.IntRange(0, len(from)-1).Draw(rt, name)]
}

func (m *model) book(rt *rapid.T) {
	c := draw(rt, m.channels, "channel")
	ago := time.Duration(rapid.IntRange(-1, 5).Draw(rt, "seconds ago")) * time.Second
	if ago < 0 {
		ago = -time.Hour
	}
	// The time is truncated, so that some posts are due at the same time.
	due := time.Now().Add(-ago).UTC().Truncate(time.Second)
	written := fixture.Post(m.rig.Org, c.id, due)
	m.rig.Insert(m.rig.Org, written...)
	m.rig.Clock(`update post set due = $2 where id = $1`, written[0].ID, due)
	m.posts = append(m.posts, &modelPost{id: written[0].ID, group: written[0].Group, channel: c, due: due, state: publishing.StateQueue, told: publishing.StateQueue})
}

// head returns the only post of a channel that may be claimed next.
func (m *model) head(c *modelChannel) (first *modelPost) {
	for _, p := range m.posts {
		if p.channel == c && p.state == publishing.StateQueue && !p.deleted && (c.busy == nil || c.busy == p) && (first == nil || p.due.Before(first.due)) {
			first = p
		}
	}
	return first
}

// claimable returns the posts that a claim with the given permits takes.
func (m *model) claimable(permits int) (out []*modelPost) {
	for _, c := range m.channels {
		if p := m.head(c); p != nil && !c.paused && !c.parked && !p.backing && p.due.Before(time.Now()) {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b *modelPost) int { return a.due.Compare(b.due) })
	return out[:min(permits, len(out))]
}

func (m *model) claim(rt *rapid.T) {
	permits := rapid.IntRange(1, 3).Draw(rt, "permits")
	want := map[publishing.PostID]*modelPost{}
	for _, p := range m.claimable(permits) {
		want[p.id] = p
	}
	round := m.claimBy(m.rig.Lease, permits)
	for _, got := range round.Claimed {
		p := want[got.Post]
		if p == nil || p.channel.id != got.Channel {
			rt.Fatalf("%s was claimed, which is %s", got.Post, m.about(got.Post))
		}
		delete(want, got.Post)
		p.state, p.phase, p.token, p.expired, p.channel.busy = publishing.StatePublishing, "preparing", got.Token, false, p
		if p.out == nil {
			p.out = &modelPublication{id: m.current(p), phase: "preparing"}
		}
		m.claims = append(m.claims, &modelClaim{Claimed: got, post: p, out: p.out, holder: m.rig.Lease.Holder})
	}
	for id := range want {
		rt.Errorf("%s was not claimed, which is %s", id, m.about(id))
	}
	_, told := round.Next[m.rig.Org]
	more := slices.ContainsFunc(m.channels, func(c *modelChannel) bool { return !c.paused && !c.parked && m.head(c) != nil })
	if told != more {
		rt.Errorf("that there is more to come is told as %v", told)
	}
}

func (m *model) claimStale(rt *rapid.T) {
	if got := m.claimBy(draw(rt, m.stale, "lease"), 3).Claimed; len(got) > 0 {
		rt.Errorf("a lost lease claimed %v", got)
	}
}

// claimBy claims posts for a day, so that claims expire only by the step "wait" and never because
// the machine is slow.
func (m *model) claimBy(l dispatch.Lease, permits int) dispatch.ClaimResult {
	long := publishtest.ClaimRules()
	long.Hold = 24 * time.Hour
	wants := []dispatch.Want{{Org: m.rig.Org, Permits: permits}}
	round, err := schedulerstore.Claim(m.rig.Context(), m.rig.Store, l, wants, dispatch.NoClaimLimits(), 1, long)
	m.rig.OK(err)
	return round
}

func (m *model) mark(rt *rapid.T) {
	c := draw(rt, m.claims, "claim")
	p := c.post
	want := p.token == c.Token && p.state == publishing.StatePublishing && !p.deleted && !p.channel.paused && c.out.phase == "preparing"
	got, err := m.rig.MayCommit(c.Post, c.Token, c.out.id)
	m.rig.OK(err)
	if got != want {
		rt.Fatalf("the mark answers %v; the post is %s", got, m.about(p.id))
	}
	if !got {
		return
	}
	// After an unknown outcome, the call is repeated only under the same key.
	if c.out.open && !c.out.maybe {
		rt.Fatalf("a second call begins while the outcome of the first is unknown; the post is %s", m.about(p.id))
	}
	c.marked, c.out.open, c.out.phase, p.phase, p.expired = true, true, "committing", "committing", false
}

// unmark is the step of a sender whose credential was refused, so that nothing was published.
func (m *model) unmark(rt *rapid.T) {
	c := draw(rt, m.claims, "claim")
	p := c.post
	if !c.marked {
		rt.Skip("it never asked")
	}
	// The phase of the publication shows that no late success is stored.
	want := p.token == c.Token && p.state == publishing.StatePublishing && p.phase == "committing" && c.out.phase == "committing"
	got, err := schedulerstore.Unmark(m.rig.Context(), m.rig.Store, c.Post, c.Token, c.out.id, time.Hour, "test")
	m.rig.OK(err)
	if got != want {
		rt.Fatalf("taking the mark back answers %v; the post is %s", got, m.about(p.id))
	}
	if got {
		c.out.open, c.out.phase, p.phase, p.expired = false, "preparing", "preparing", false
	}
}

func (m *model) hold(rt *rapid.T, column string, field func(*modelChannel) *bool) {
	c := draw(rt, m.channels, "channel")
	*field(c) = !*field(c)
	m.rig.Clock(`update channel_queue set `+column+` = not `+column+` where channel_id = $1`, c.id)
}

// movable reports whether a person may move a post.
func (p *modelPost) movable(to publishing.State, republish bool) bool {
	claimed := p.state == publishing.StatePublishing || p.state == publishing.StateUnknown
	published := p.state == publishing.StatePublished || p.out != nil && p.out.phase == "done"
	unknown := p.maybe || p.out != nil && p.out.phase == "committing"
	return !claimed && (republish || !published && (!unknown || to == publishing.StateDraft))
}

func (m *model) move(rt *rapid.T) {
	p := draw(rt, m.posts, "post")
	to := rapid.SampledFrom([]publishing.State{publishing.StateDraft, publishing.StateQueue}).Draw(rt, "to")
	republish := rapid.Bool().Draw(rt, "republish")
	var due *time.Time
	found, refused := false, error(nil)
	m.rig.OK(m.rig.InOrg(func(tx *db.Tx) error {
		old, err := poststore.LockGroup(m.rig.Context(), tx, p.group)
		found = len(old) == 1
		if err != nil || !found {
			return err
		}
		refused = publishing.Move(old[0].State, to, old[0].OutcomeUnknown, old[0].Published, republish)
		if refused != nil {
			return nil
		}
		due, err = poststore.Move(m.rig.Context(), tx, old, to, to == publishing.StateDraft && !republish, "test")
		return err
	}))
	if found == p.deleted || found && (refused == nil) != p.movable(to, republish) || refused != nil && fault.KindOf(refused) != fault.Conflict {
		rt.Fatalf("the move to %s is answered with found %v, %v; the post is %s", to, found, refused, m.about(p.id))
	}
	if !found || refused != nil {
		return
	}
	p.free()
	p.state, p.due, p.phase, p.code, p.token, p.backing, p.expired, p.reaps = to, *due, "", "", uuid.Nil, false, false, 0
	p.maybe = p.maybe && to == publishing.StateDraft && !republish
	if !p.maybe {
		p.out = nil // a new round begins
	}
}

func (m *model) delete(rt *rapid.T) {
	p := draw(rt, m.posts, "post")
	if p.deleted {
		rt.Skip("it is deleted")
	}
	m.rig.Delete(p.id)
	p.deleted = true
	if p.state != publishing.StatePublishing && p.state != publishing.StateUnknown {
		p.free()
	}
}
