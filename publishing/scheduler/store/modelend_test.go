package store_test

import (
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tests/publishtest"
)

// finish stores an outcome under the token of any claim, current or not, like its sender or the
// process that asked the platform. No outcome contradicts the marks: what was never marked is not
// published.
func (m *model) finish(rt *rapid.T) {
	c := draw(rt, m.claims, "claim")
	results := []dispatch.Result{dispatch.ResultError, dispatch.ResultRetry}
	if c.marked {
		results = append(results, dispatch.ResultPublished, dispatch.ResultUnknown, dispatch.ResultLater)
	}
	o := dispatch.Outcome{Org: c.Org, Post: c.Post, Token: c.Token, Publication: c.out.id, Result: rapid.SampledFrom(results).Draw(rt, "result")}
	if o.Result == dispatch.ResultError {
		o.Error, o.Code = "It failed.", rapid.SampledFrom([]string{publishing.CodeRejected, publishing.CodeOutcomeUnknown}).Draw(rt, "code")
	}
	if o.Result == dispatch.ResultPublished {
		o.ReleaseID, o.RootID = "release", "release"
	}
	if o.Result == dispatch.ResultError || o.Result == dispatch.ResultRetry {
		o.Proven = rapid.Bool().Draw(rt, "proven")
	}
	if rapid.Bool().Draw(rt, "later") {
		o.After = time.Hour
	}
	done, err := schedulerstore.Finish(m.rig.Context(), m.rig.Store, []dispatch.Outcome{o}, 0, "test")
	m.rig.OK(err)
	if taken := c.finished(o); taken != (len(done) == 1) || taken && done[0].State != c.post.state {
		rt.Fatalf("%s %s was answered with %v; the post is %s", o.Result, o.Code, done, m.about(c.Post))
	}
}

// finished applies an outcome to the model. It returns false if the post does not accept it.
func (c *modelClaim) finished(o dispatch.Outcome) bool {
	p := c.post
	current := p.token == c.Token && (p.state == publishing.StatePublishing || p.state == publishing.StateUnknown)
	late := o.Result == dispatch.ResultPublished && p.maybe && (p.state == publishing.StateError || p.state == publishing.StateDraft || p.state == publishing.StateQueue) && p.out == c.out
	unknown := o.Result == dispatch.ResultUnknown || o.Result == dispatch.ResultLater || o.Code == publishing.CodeOutcomeUnknown
	// A late success was stored in the meantime.
	found := o.Result == dispatch.ResultError && p.maybe && p.out.phase == "done"
	unclear := o.Result != dispatch.ResultPublished && !found && (unknown || p.maybe && !o.Proven)
	c.out.apply(o, current, unknown, unclear)
	if !current && !late {
		return false
	}
	p.phase, p.code, p.expired, p.maybe, p.backing = "", "", false, unclear, false
	switch o.Result {
	case dispatch.ResultPublished:
		p.state, p.reaps = publishing.StatePublished, 0
	case dispatch.ResultUnknown, dispatch.ResultLater:
		p.state, p.phase, p.dueLook = publishing.StateUnknown, "committing", o.After == 0
	case dispatch.ResultRetry:
		p.token, p.backing = uuid.Nil, o.After > 0
		p.state = publishing.StateQueue
		if p.deleted {
			p.state, p.code = publishing.StateError, "deleted"
		}
	default:
		p.state, p.code = publishing.StateError, o.Code
		if found {
			p.state, p.code = publishing.StatePublished, ""
		}
	}
	if p.state == publishing.StateError && p.maybe {
		p.code = publishing.CodeOutcomeUnknown
	}
	if p.state == publishing.StatePublished || p.state == publishing.StateError {
		p.free()
	}
	return true
}

// apply applies an outcome to its publication. A success is accepted from every claim, anything
// else only from the current one.
func (x *modelPublication) apply(o dispatch.Outcome, current, unknown, unclear bool) {
	if x.phase == "done" || !current && o.Result != dispatch.ResultPublished {
		return
	}
	x.maybe = o.Result != dispatch.ResultPublished && (unknown || x.maybe && !o.Proven)
	switch {
	case o.Result == dispatch.ResultPublished:
		x.phase, x.open = "done", false
	case o.Result == dispatch.ResultRetry:
		x.phase, x.open = "preparing", x.maybe
	case o.Result == dispatch.ResultError && !unclear:
		x.phase, x.open = "failed", false
	}
}

func (p *modelPost) free() {
	if p.channel.busy == p {
		p.channel.busy = nil
	}
}

// reap ends claims that have expired and claims whose processes are gone.
func (m *model) reap(rt *rapid.T) {
	want := 0
	for _, c := range m.claims {
		p := c.post
		if p.token != c.Token || p.state != publishing.StatePublishing || !p.expired && !m.gone[c.holder] {
			continue
		}
		want++
		p.reaps++
		if p.phase == "committing" {
			p.state, p.dueLook, p.maybe, p.out.maybe = publishing.StateUnknown, true, true, true
			continue
		}
		p.state, p.phase, p.token, p.backing = publishing.StateQueue, "", uuid.Nil, p.reaps > 1
		if p.deleted || p.reaps >= schedulerstore.MaxReaps {
			p.state, p.code, p.backing = publishing.StateError, publishing.CodeTooLong, false
			p.free()
		}
		if p.deleted {
			p.code = "deleted"
		}
		if p.state == publishing.StateError && p.maybe {
			p.code = publishing.CodeOutcomeUnknown
		}
	}
	got := m.rig.reap(m.rig.Lease)
	if got != want {
		rt.Errorf("%d claims were ended, not %d", got, want)
	}
	// A back-off must end only by the step "wait".
	m.rig.Clock(`update post set not_before = now() + interval '1 hour' where org_id = $1 and not_before > now()`, m.rig.Org)
}

// die gives the shards to another process. The previous process is gone, or continues without them.
func (m *model) die(rt *rapid.T) {
	old := m.rig.Lease
	m.stale = append(m.stale, old)
	m.rig.Lease = m.rig.NewLease()
	if rapid.Bool().Draw(rt, "gone") {
		m.rig.Clock(`delete from node where id = $1`, old.Holder)
		m.gone[old.Holder] = true
	}
}

func (m *model) look(rt *rapid.T) {
	want := map[publishing.PostID]bool{}
	for _, c := range m.claims {
		if p := c.post; p.token == c.Token && p.state == publishing.StateUnknown && p.dueLook {
			want[p.id], p.dueLook = m.gone[c.holder], false
		}
	}
	open := m.rig.ClaimUnknown(m.rig.Lease, time.Hour)
	for _, u := range open {
		if gone, due := want[u.Post]; !due || u.HolderGone != gone {
			rt.Errorf("looked at %s with its holder gone %v", m.about(u.Post), u.HolderGone)
		}
		delete(want, u.Post)
	}
	if len(want) > 0 {
		rt.Errorf("nobody looked at %v", want)
	}
}

// wait makes a claim expire, ends a back-off, or makes it time to ask about an unknown outcome.
func (m *model) wait(rt *rapid.T) {
	p := draw(rt, m.posts, "post")
	switch {
	case p.state == publishing.StateQueue && p.backing:
		m.rig.Clock(`update post set not_before = now() where id = $1`, p.id)
		p.backing = false
	case p.state == publishing.StatePublishing:
		m.rig.Clock(`update post set claim_until = now() - interval '1 second' where id = $1`, p.id)
		p.expired = true
	case p.state == publishing.StateUnknown:
		m.rig.Clock(`update post set claim_until = now() where id = $1`, p.id)
		p.dueLook = true
	default:
		rt.Skip("it waits for nothing")
	}
}

// modelRow has the fields of a post that the tables and the model share.
type modelRow struct {
	State       publishing.State
	Phase, Code string
	Due         int64 // in Unix microseconds
	Token       uuid.UUID
	Deleted     bool
	Maybe       bool
	Holds       bool   // the post holds its channel
	Publication string // the phase of the publication of the post's round
}

const modelRows = `select p.id, p.state, case when p.state in ('PUBLISHING', 'UNKNOWN') then p.phase else '' end, coalesce(p.error_code, ''), (extract(epoch from p.due) * 1000000)::bigint,
  coalesce(p.claim_token, '00000000-0000-0000-0000-000000000000'), p.deleted_at is not null, p.maybe_sent, q.busy_post is not distinct from p.id, coalesce(x.phase, '')
from post p join channel_queue q on q.channel_id = p.channel_id left join publication x on x.post_id = p.id and x.number = p.republish where p.org_id = $1`

// agree compares every post in the tables with the model.
func (m *model) agree(rt *rapid.T) {
	rows := map[publishing.PostID]modelRow{}
	m.rig.OK(m.rig.DB.InRole(m.rig.Context(), pg.Clock, func(tx pgx.Tx) error {
		clear(rows)
		all, err := tx.Query(m.rig.Context(), modelRows, m.rig.Org)
		if err != nil {
			return err
		}
		var id publishing.PostID
		var r modelRow
		_, err = pgx.ForEachRow(all, []any{&id, &r.State, &r.Phase, &r.Code, &r.Due, &r.Token, &r.Deleted, &r.Maybe, &r.Holds, &r.Publication}, func() error { rows[id] = r; return nil })
		return err
	}))
	if len(rows) != len(m.posts) {
		rt.Fatalf("there are %d posts, not %d", len(rows), len(m.posts))
	}
	for _, p := range m.posts {
		if got, want := rows[p.id], p.row(); got != want {
			rt.Errorf("post %s is\n%+v, not\n%+v", p.id, got, want)
		}
	}
	m.agreeEvents(rt)
}

func (p *modelPost) row() modelRow {
	r := modelRow{State: p.state, Phase: p.phase, Code: p.code, Due: p.due.UnixMicro(), Token: p.token, Deleted: p.deleted, Maybe: p.maybe, Holds: p.channel.busy == p}
	if p.out != nil {
		r.Publication = p.out.phase
	}
	return r
}

func (m *model) about(id publishing.PostID) string {
	for i, p := range m.posts {
		if p.id == id {
			return fmt.Sprintf("number %d: %+v", i, p.row())
		}
	}
	return "not known"
}

// current returns the publication of a post's current round.
func (m *model) current(p *modelPost) publishing.PublicationID {
	return publishtest.Value[publishing.PublicationID](m.rig.Base, `select x.id from publication x join post p on p.id = x.post_id and p.republish = x.number where p.id = $1`, p.id)
}

// agreeEvents compares the events since the last step with the changes of the states that clients
// see, so that webhooks and the API never contradict each other.
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
	for _, e := range m.rig.WebhookEvents() {
		if got[e.Post] != "" {
			rt.Errorf("%s is told twice", e.Post)
		}
		got[e.Post] = e.State
	}
	if !maps.Equal(got, want) {
		rt.Errorf("webhooks are told %v, want %v", got, want)
	}
}
