package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// Result is how a claim, or a look at an unknown outcome, ended.
type Result string

// The results.
const (
	ResultPublished Result = "published" // every part is out
	ResultResume    Result = "resume"    // this part is out, later ones are not
	ResultError     Result = "error"
	ResultRetry     Result = "retry"   // surely nothing happened: back to the queue
	ResultUnknown   Result = "unknown" // the platform may have acted
	ResultLater     Result = "later"   // still unknown: look again
)

// Outcome is one post's result. Publication is the part that it speaks of, zero when none was reached.
type Outcome struct {
	Org         tenancy.OrgID
	Post        publishing.PostID
	Token       uuid.UUID
	Result      Result
	Error       string // sentence for people
	Code        string
	After       time.Duration // until the next try or look
	CallEnded   bool          // of an unknown: the sender's call is surely over
	Publication publishing.PublicationID
	ReleaseID   string // of the part
	ReleaseURL  string
	Ref         json.RawMessage
	RootID      string // of the post: its first part
	RootURL     string
}

// Finished is what became of an outcome.
type Finished struct {
	Org   tenancy.OrgID
	Post  publishing.PostID
	State publishing.State
	Due   time.Time
}

// What fell due while a post held its channel for long, in doubt or backing off, was held back and goes out with gaps.
// A success is accepted while the post is unknown, or given up as unknown; everything else only while the claim's token is current.
const finish = `-- publishing.Finish
with o as (
  select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::boolean[], $8::uuid[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[])
    as o(post, token, result, error, code, after_ms, ended, pub, release_id, release_url, ref, root_id, root_url)
), locked as (
  select o.*, p.state as was from o join post p on p.id = any (array[o.post]) where p.claim_token = o.token order by o.post for no key update of p
), pub as (
  update publication x set
    phase = case when o.result in ('published', 'resume') then 'done' when o.result = 'error' and o.code <> 'outcome_unknown' then 'failed' when o.result = 'retry' then 'preparing' else x.phase end,
    release_id = case when o.result in ('published', 'resume') then o.release_id end, release_url = case when o.result in ('published', 'resume') then o.release_url end,
    ref = case when o.result in ('published', 'resume') then o.ref::jsonb end, done_at = case when o.result in ('published', 'resume') then now() end,
    sent_by = case when o.result in ('published', 'resume') and o.token in (select token from locked where was = 'PUBLISHING') then $15 end
  from o where x.id = o.pub and x.post_id = any (array[o.post]) and x.phase <> 'done' and (o.result in ('published', 'resume') or o.token in (select token from locked where was in ('PUBLISHING', 'UNKNOWN')))
  returning x.id, x.position, x.sent_by
), unmarked as (
  update publication x set phase = 'preparing' from locked o
  where o.result in ('retry', 'error') and o.code <> 'outcome_unknown' and o.pub is null and o.was = 'PUBLISHING' and x.post_id = any (array[o.post]) and x.phase = 'committing'
), upd as (
  update post p set
    state = case when o.result = 'published' then 'PUBLISHED' when o.result in ('unknown', 'later') then 'UNKNOWN' when o.result = 'error' or p.deleted_at is not null then 'ERROR' else 'QUEUE' end,
    release_id = case when o.result = 'published' then o.root_id end, release_url = case when o.result = 'published' then o.root_url end,
    published_at = case when o.result = 'published' then now() end,
    error = case when o.result = 'error' then o.error when o.result in ('retry', 'resume') and p.deleted_at is not null then 'The post was deleted while it was being published.' end,
    error_code = case when o.result = 'error' then o.code when o.result in ('retry', 'resume') and p.deleted_at is not null then 'deleted' end,
    outcome_unknown = o.result = 'error' and o.code = 'outcome_unknown',
    phase = case when o.result in ('unknown', 'later') then 'committing' end,
    call_ended = p.call_ended or o.ended,
    failing_since = case when o.result = 'retry' and o.after_ms > 0 then coalesce(p.failing_since, now()) when o.result <> 'resume' then p.failing_since end,
    claim_token = case when o.result in ('retry', 'resume') then null else p.claim_token end,
    claim_holder = case when o.result in ('unknown', 'later') then p.claim_holder end,
    claim_until = case when o.result in ('unknown', 'later') then now() + o.after_ms * interval '1 millisecond' end,
    not_before = case when o.result = 'retry' and o.after_ms > 0 then now() + o.after_ms * interval '1 millisecond' end,
    updated_at = now()
  from locked o
  where p.id = any (array[o.post]) and p.claim_token = o.token
    and (p.state in ('PUBLISHING', 'UNKNOWN') or o.result = 'published' and p.state = 'ERROR' and p.error_code = 'outcome_unknown')
  returning p.org_id, p.id, p.group_id, p.channel_id, p.state, p.due, o.result, o.code, o.error as reason, o.pub, o.was, least(p.failing_since, p.committing_at) as stuck_since
), free as (
  update channel_queue q set busy_post = null, done_at = now(), held_until = case when upd.stuck_since < now() - interval '2 minutes' then now() else q.held_until end,
    not_before = case when upd.due < q.held_until - interval '2 minutes' then now() + $14 * interval '1 millisecond' end
  from upd where q.channel_id = any (array[upd.channel_id]) and q.busy_post = upd.id and upd.state in ('PUBLISHED', 'ERROR')
), heirs as (
  update post f set state = 'QUEUE', due = now() + f.delay_minutes * interval '1 minute', updated_at = now()
  from upd cross join lateral (select n.id from post n where n.after_post = upd.id and (n.org_id = upd.org_id) is true offset 0) next
  where upd.state = 'PUBLISHED' and f.id = any (array[next.id]) and (f.state = 'WAITING') is true and f.deleted_at is null
), bereft as (
  ` + bereft + ` and upd.state = 'ERROR' returning f.org_id, f.id
), told as (
  insert into post_event (org_id, post_id, event, node, reason)
  select org_id, id, case result when 'published' then 'confirmed' when 'error' then 'failed' when 'retry' then 'retried' when 'resume' then 'sent' when 'later' then 'looked' else result end, $15,
    coalesce(nullif(code, ''), reason, (select 'part ' || x.position + 1 from publication x where x.id = upd.pub and x.post_id = any (array[upd.id])))
  from upd where upd.pub is null or upd.pub not in (select id from pub where sent_by is not null)
  union all select org_id, id, 'failed', $15, 'predecessor_failed' from bereft
)
select org_id, id, state, coalesce(due, now()) from upd`

// Finish stores outcomes by their tokens, in one statement. What is not among the answers had lost its claim; that a part is out is stored all the same.
func (s *Store) Finish(ctx context.Context, outcomes []Outcome, lateGap time.Duration, node string) (done []Finished, err error) {
	n := len(outcomes)
	posts, tokens, pubs := make([][16]byte, n), make([][16]byte, n), make([]pgtype.UUID, n)
	text := [8][]*string{}
	for i := range text {
		text[i] = make([]*string, n)
	}
	after, ended := make([]int64, n), make([]bool, n)
	for i, o := range outcomes {
		posts[i], tokens[i], pubs[i] = o.Post.UUID(), o.Token, pgtype.UUID{Bytes: o.Publication.UUID(), Valid: !o.Publication.IsZero()}
		after[i], ended[i] = o.After.Milliseconds(), o.CallEnded
		result, ref := string(o.Result), string(o.Ref)
		for j, v := range []string{result, o.Error, o.Code, o.ReleaseID, o.ReleaseURL, ref, o.RootID, o.RootURL} {
			text[j][i] = nullable(v, j)
		}
	}
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(finish, posts, tokens, text[0], text[1], text[2], after, ended, pubs, text[3], text[4], text[5], text[6], text[7], lateGap.Milliseconds(), node).Query(func(rows pgx.Rows) (err error) {
			done, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Finished, err error) {
				err = row.Scan(&f.Org, &f.Post, &f.State, &f.Due)
				return f, err
			})
			return err
		})
	})
	return done, err
}

// nullable keeps the result and the code as text and makes other empty values NULL.
func nullable(v string, column int) *string {
	if v == "" && column != 0 && column != 2 {
		return nil
	}
	return &v
}

// LookBatch is how many unknown posts are taken at once.
const LookBatch = 256

const look = `-- publishing.Look
with open as (
  select p.id from post p where ` + mine + ` and p.state = 'UNKNOWN' and p.claim_until <= now() order by p.claim_until limit $5 for no key update of p skip locked
)
update post p set looks = p.looks + 1, claim_until = now() + $4 * interval '1 millisecond', updated_at = now()
from open where p.id = any (array[open.id])
returning p.id, not exists (select 1 from node n where n.id = p.claim_holder), now()`

// Unknown is a post whose outcome is looked up now.
type Unknown struct {
	Post       publishing.PostID
	HolderGone bool // the process that sent it is proved gone
	Now        time.Time
}

// Look takes the unknown posts whose time has come; nobody else looks at them for as long as hold.
func (s *Store) Look(ctx context.Context, l Lease, hold time.Duration) (out []Unknown, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(look, l.Shards, l.epochs(), l.Holder, hold.Milliseconds(), LookBatch).Query(func(rows pgx.Rows) (err error) {
			out, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (u Unknown, err error) {
				err = row.Scan(&u.Post, &u.HolderGone, &u.Now)
				return u, err
			})
			return err
		})
	})
	return out, err
}
