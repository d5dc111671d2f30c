package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// The end of claims, by their tokens.
//
// A success is accepted from whichever process sends it, because it is a fact: in its publication always; in its post
// while the claim's token is current, or when the post was given up or un-scheduled meanwhile though it may have been
// sent. Everything else is accepted only while the token is current. A second success with another release id is kept
// beside the first.
//
// maybe_sent begins with an unknown outcome and ends with a success or a proof of the opposite; a later refusal or a
// retry is neither. While it stands, a post that is given up is outcome_unknown, whatever the last answer was. That of
// a post is that of its publications: a success of one part says nothing of another.
//
// Posts that fell due while a channel was held for long, by an unknown outcome or a back-off, go out with gaps.
const finish = `-- publishing.Finish
with o as (
  select post, token, result, nullif(error, '') as error, code, after_ms, ended, pub, nullif(release_id, '') as release_id, nullif(release_url, '') as release_url,
    nullif(ref, '') as ref, nullif(root_id, '') as root_id, nullif(root_url, '') as root_url, proven, result in ('published', 'resume') as sent
  from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::boolean[], $8::uuid[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $16::boolean[])
    as o(post, token, result, error, code, after_ms, ended, pub, release_id, release_url, ref, root_id, root_url, proven)
), locked as (
  -- The posts of current claims, and those that were given up or un-scheduled without knowing of their success.
  -- Those that another transaction has locked, or whose channel it has, are left for the next statement.
  select o.*, p.state as was, p.deleted_at is not null as deleted, p.maybe_sent, p.republish as round, (p.claim_token = o.token) is true as current
  from o join post p on p.id = any (array[o.post]) join channel_queue q on q.channel_id = any (array[p.channel_id])
  where p.claim_token = o.token or o.sent and p.maybe_sent and p.state in ('ERROR', 'DRAFT', 'QUEUE')
    and exists (select from publication x where x.id = o.pub and x.post_id = any (array[p.id]) and (x.number = p.republish) is true)
  order by o.post for no key update of p, q skip locked
), found as (
  -- Posts that are given up although all of them was found to be published meanwhile.
  select l.post from locked l where l.result = 'error' and l.maybe_sent and l.current
    and not exists (select from publication x where x.post_id = any (array[l.post]) and (x.number = l.round) is true and x.phase <> 'done')
), v as (
  -- What each post becomes, and whether it may still be on the platform without our knowing.
  select l.*,
    case when l.result = 'published' or l.post in (select post from found) then 'PUBLISHED' when not l.current then l.was when l.was = 'ERROR' then l.was
      when l.result in ('unknown', 'later') then 'UNKNOWN'
      when l.result = 'error' or l.deleted then 'ERROR' else 'QUEUE' end as becomes,
    case when l.result = 'published' or l.post in (select post from found) then false
      when l.sent then exists (select from publication x
        where x.post_id = any (array[l.post]) and (x.number = l.round) is true and x.id <> l.pub and x.maybe_sent and x.phase <> 'done')
      when l.result in ('unknown', 'later') or l.code = 'outcome_unknown' then true else l.maybe_sent and not l.proven end as doubt
  from locked l
), each as (
  -- With those whose post is not locked here, which store their success all the same. A query over another one's rows
  -- says "not in": that is a look-up by hash, while a join or an anti-join would compare all with all.
  select pub, post, result, code, sent, proven, release_id, release_url, ref, current, was, doubt from v
  union all
  select pub, post, result, code, sent, proven, release_id, release_url, ref, false, null, false from o where sent and post not in (select post from locked)
), pub as (
  update publication x set
    phase = case when v.sent then 'done' when v.result in ('unknown', 'later') or v.result = 'error' and v.doubt then x.phase when v.result = 'error' then 'failed' else 'preparing' end,
    maybe_sent = case when v.sent then false when v.result in ('unknown', 'later') or v.code = 'outcome_unknown' then true else x.maybe_sent and not v.proven end,
    release_id = case when v.sent then v.release_id end, release_url = case when v.sent then v.release_url end, ref = case when v.sent then v.ref::jsonb end,
    done_at = case when v.sent then now() end
  from each v
  where x.id = v.pub and x.post_id = any (array[v.post]) and x.phase <> 'done' and (v.sent or v.current and v.was in ('PUBLISHING', 'UNKNOWN'))
  returning x.org_id, x.id, x.post_id, x.position, x.phase, x.release_id
), second as (
  update publication x set second_release_id = o.release_id
  from o where x.id = o.pub and x.post_id = any (array[o.post]) and o.sent and o.pub not in (select id from pub)
    and x.phase = 'done' and x.release_id <> o.release_id and x.second_release_id is null
  returning x.org_id, x.post_id, x.second_release_id
), upd as (
  update post p set
    state = v.becomes,
    release_id = case when v.result = 'published' then v.root_id when v.becomes = 'PUBLISHED' then coalesce((
      select x.release_id from publication x where x.post_id = any (array[v.post]) and (x.number = v.round) is true order by x.position limit 1), 'missing') end,
    release_url = case when v.result = 'published' then v.root_url end,
    error = case when v.becomes <> 'ERROR' then null when v.result = 'error' then v.error || case when v.doubt and v.code <> 'outcome_unknown' then $17::text else '' end
      when v.deleted then 'The post was deleted while it was being published.'
      when v.doubt then 'A part of this thread is published; whether the parts after it are is not known.' else 'A part of this thread is published; the parts after it were not sent.' end,
    error_code = case when v.becomes <> 'ERROR' then null when v.doubt then 'outcome_unknown' when v.result = 'error' then v.code when v.deleted then 'deleted' else 'retries_used_up' end,
    outcome_unknown = v.becomes = 'ERROR' and v.doubt, maybe_sent = v.doubt,
    phase = case when v.becomes = 'UNKNOWN' then 'committing' end,
    call_ended = p.call_ended or v.ended, reaps = case when v.sent then 0 else p.reaps end,
    failing_since = case when v.result = 'retry' and v.after_ms > 0 then coalesce(p.failing_since, now()) when v.result <> 'resume' then p.failing_since end,
    claim_token = case when v.result in ('retry', 'resume') or v.becomes in ('QUEUE', 'DRAFT') then null else p.claim_token end,
    claim_holder = case when v.becomes = 'UNKNOWN' then p.claim_holder end,
    claim_until = case when v.becomes = 'UNKNOWN' then now() + v.after_ms * interval '1 millisecond' end,
    not_before = case when v.becomes = 'QUEUE' and v.result = 'retry' and v.after_ms > 0 then now() + v.after_ms * interval '1 millisecond' end,
    updated_at = now()
  from v
  where p.id = any (array[v.post])
    and (v.current and (p.state in ('PUBLISHING', 'UNKNOWN') or v.sent and p.state = 'ERROR' and p.maybe_sent) or not v.current and p.state in ('ERROR', 'DRAFT', 'QUEUE') and p.maybe_sent)
  returning p.org_id, p.id, p.group_id, p.channel_id, p.state, p.due, coalesce(p.nominal_due, p.due) as nominal, v.result, v.error as reason, v.pub, v.was,
    case when p.error_code is not null then p.error_code else v.code end as code, least(p.failing_since, p.committing_at) as stuck_since
), kept as (
  -- Back to the queue before any part was reached: it was not the platform that failed.
  update channel_queue q set resumed_at = now() from upd
  where q.channel_id = any (array[upd.channel_id]) and upd.state = 'QUEUE' and upd.result = 'retry' and upd.pub = '00000000-0000-0000-0000-000000000000'
), free as (
  update channel_queue q set busy_post = null, done_at = now(), held_until = case when upd.stuck_since < now() - interval '2 minutes' then now() else q.held_until end,
    not_before = case when upd.due < q.held_until - interval '2 minutes' then now() + $14 * interval '1 millisecond' end
  from upd where q.channel_id = any (array[upd.channel_id]) and q.busy_post = upd.id and upd.state in ('PUBLISHED', 'ERROR')
), released as (
  -- The part that waited for this one; its nominal due time is what it would be had this one been on time.
  update post f set state = 'QUEUE', due = now() + f.delay_minutes * interval '1 minute', nominal_due = upd.nominal + f.delay_minutes * interval '1 minute', updated_at = now()
  from upd cross join lateral (select n.id from post n where n.after_post = upd.id and (n.org_id = upd.org_id) is true offset 0) next
  where upd.state = 'PUBLISHED' and f.id = any (array[next.id]) and (f.state = 'WAITING') is true and f.deleted_at is null
), followers as (
  ` + failFollowers + ` and upd.state = 'ERROR' returning f.org_id, f.id
), told as (
  insert into post_event (org_id, post_id, event, node, reason)
  select org_id, id, case result when 'published' then 'confirmed' when 'error' then 'failed' when 'retry' then 'retried' when 'resume' then 'sent' when 'later' then 'looked' else result end, $15,
    coalesce(nullif(code, ''), reason, (select 'part ' || x.position + 1 from publication x where x.id = upd.pub and x.post_id = any (array[upd.id])))
  from upd
  union all select org_id, id, 'failed', $15, 'predecessor_failed' from followers
  union all select org_id, post_id, 'sent', $15, 'part ' || position + 1 || ', learnt after its claim had ended: ' || release_id from pub
    where phase = 'done' and post_id not in (select id from upd)
  union all select org_id, post_id, 'published_twice', $15, 'also as ' || second_release_id from second
)
select org_id, id, state, coalesce(due, now()), id in (select post_id from second), false from upd
union all
select org_id, post_id, '', now(), true, false from second where post_id not in (select id from upd)
union all
select p.org_id, p.id, p.state, now(), false, true from o join post p on p.id = any (array[o.post])
where o.post not in (select post from locked)
  and (p.claim_token = o.token and (p.state in ('PUBLISHING', 'UNKNOWN')) is true or o.sent and p.maybe_sent and (p.state in ('ERROR', 'DRAFT', 'QUEUE')) is true
    and exists (select from publication x where x.id = o.pub and x.post_id = any (array[p.id]) and (x.number = p.republish) is true))
union all
-- Another transaction has just stored a success of this publication, which this statement does not see yet.
select x.org_id, x.post_id, '', now(), false, true from o join publication x on x.id = o.pub and x.post_id = any (array[o.post])
where o.sent and x.phase <> 'done' and o.pub not in (select id from pub)`

// Finish stores outcomes by their tokens, in one statement. What is not among the answers, or there without a state,
// had lost its claim; that a part is published is stored all the same. An error of one outcome stores none: see
// batch.Isolate. There must be one outcome at most of each post.
func (s *Store) Finish(ctx context.Context, outcomes []publishing.Outcome, lateGap time.Duration, node string) (done []publishing.Finished, err error) {
	n := len(outcomes)
	posts, tokens, pubs := make([][16]byte, n), make([][16]byte, n), make([][16]byte, n)
	after, ended, proven := make([]int64, n), make([]bool, n), make([]bool, n)
	text := [8][]string{}
	for i, o := range outcomes {
		posts[i], tokens[i], pubs[i] = o.Post.UUID(), o.Token, o.Publication.UUID()
		after[i], ended[i], proven[i] = o.After.Milliseconds(), o.CallEnded, o.Proven
		for j, v := range []string{string(o.Result), o.Error, o.Code, o.ReleaseID, o.ReleaseURL, string(o.Ref), o.RootID, o.RootURL} {
			text[j] = append(text[j], v)
		}
	}
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(finish, posts, tokens, text[0], text[1], text[2], after, ended, pubs, text[3], text[4], text[5], text[6], text[7],
			lateGap.Milliseconds(), node, proven, publishing.MaybeSentAdvice).Query(into(&done, pgx.RowToStructByPos[publishing.Finished]))
	})
	return done, err
}

// MaxLooks is how many unknown outcomes are found at once.
const MaxLooks = 1000

// The organizations take turns, and the destinations of each, so that none with many unknown outcomes keeps others from
// being found, however many host names it has. Of a destination that is not asked now ($5) only those are found that
// were sent longer ago than an outcome may stay unknown ($6): they end without being asked for.
const findUnknown = `-- publishing.FindUnknown
select id, org_id, place, stale from (
  select *, row_number() over (partition by org_id order by nth, claim_until) as turn from (
    select p.id, p.org_id, '@' || q.destination as place, p.committing_at < now() - $6 * interval '1 millisecond' as stale,
      row_number() over (partition by q.destination order by p.claim_until) as nth, p.claim_until
    from post p cross join lateral (select c.destination from channel_queue c where c.channel_id = any (array[p.channel_id]) offset 0) q
    where ` + mine + ` and ` + lookable + ` and p.id <> all ($3::uuid[])) d
  where stale or place <> all ($5::text[])) u
order by greatest(nth, turn), claim_until limit $4`

// FindUnknown lists unknown outcomes of the lease's shards whose time has come, those of each organization and of each
// destination in turn.
// except is left out, and of the resting destinations everything that has not been unknown for longer than
// unknownFor.
func (s *Store) FindUnknown(ctx context.Context, l publishing.Lease, except []publishing.PostID, resting []string, unknownFor time.Duration) (out []publishing.UnknownPost, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(findUnknown, l.Shards, l.Holder, uuids(except), MaxLooks, append([]string{}, resting...), unknownFor.Milliseconds()).
			Query(into(&out, pgx.RowToStructByPos[publishing.UnknownPost]))
	})
	return out, err
}

const look = `-- publishing.Look
with open as (
  ` + these + lookable + locked + `
)
update post p set looks = p.looks + 1, claim_until = now() + $2 * interval '1 millisecond', updated_at = now()
from open where p.id = any (array[open.id])
returning p.org_id, p.id, p.claim_token, p.committing_at, not exists (select from node n where n.id = p.claim_holder and n.expires_at > now()), now()`

// ClaimedUnknown is a post with an unknown outcome that this process asks about now.
type ClaimedUnknown struct {
	Org        tenancy.OrgID
	Post       publishing.PostID
	Token      uuid.UUID
	Committing time.Time // when its call was about to be made
	HolderGone bool      // the lease of the process that sent it is over
	Now        time.Time
}

// Look takes those of the unknown posts whose time has come; no other process looks at them for as long as hold.
func (s *Store) Look(ctx context.Context, posts []publishing.PostID, hold time.Duration) (out []ClaimedUnknown, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(look, uuids(posts), hold.Milliseconds()).Query(into(&out, pgx.RowToStructByPos[ClaimedUnknown]))
	})
	return out, err
}
