-- publishing.Finish
--
-- Ends claims by their tokens: stores the outcomes of sends, many in one statement, but at most one for each post.
--
-- A success is accepted from any process, because it is a fact. It is always stored in its publication. It is stored in
-- its post if the claim's token is current, or if the post was given up or unscheduled in the meantime although it may
-- have been sent. Everything else is accepted only while the token is current. A second success with another release id
-- is kept beside the first.
--
-- maybe_sent is set by an unknown outcome, and cleared by a success or by proof that nothing was sent; a later refusal
-- or a retry is neither. While it is set, a post that is given up is outcome_unknown, whatever the last response was.
-- The flag of a post follows from its publications: the success of one part says nothing about another.
--
-- Posts that became due while an unknown outcome or a back-off kept their channel busy for long are sent with gaps.
--
-- Result: one row for each post that was changed or that has a second success: organization, post, its state ("" if it
-- was not changed), its due time, whether there is a second success, false. One row ending with true for each outcome
-- that another transaction kept from being stored: it must be sent again. An outcome without a row had lost its claim.
--
--   $1 posts uuid[]: the posts; $2 to $13 and $16 have one element for each
--   $2 tokens uuid[]: claim tokens
--   $3 results text[]: publishing.Result
--   $4 errors text[]: why the post is given up, for people; '' = none
--   $5 codes text[]: error codes
--   $6 after_ms bigint[]: for a retry, the wait; for an unknown outcome, milliseconds until the platform is asked
--   $7 ended boolean[]: the sender itself reports that its call has ended
--   $8 publications uuid[]: the publication that the outcome is about; zero = none was reached
--   $9 release_ids text[]: what the platform calls the part
--   $10 release_urls text[]: its address
--   $11 refs text[]: what the parts after it reply to, as JSON
--   $12 root_ids text[]: what the platform calls the first part
--   $13 root_urls text[]: its address
--   $14 late_gap double precision: milliseconds between posts that were kept back
--   $15 node_name text: name of the process in timelines
--   $16 proven boolean[]: it is proven that no call for the publication reached the platform
--   $17 advice text: publishing.MaybeSentAdvice
--
--   PREPARE finish (uuid[], uuid[], text[], text[], text[], bigint[], boolean[], uuid[], text[], text[], text[],
--     text[], text[], double precision, text, boolean[], text) AS
--   EXPLAIN EXECUTE finish (null, null, null, null, null, null, null, null, null, null, null, null, null, null,
--     null, null, null);
with outcome as (
  -- The outcomes, with null for empty texts. sent: the part is on the platform.
  select post, token, result, nullif(error, '') as error, code, after_ms, ended, pub,
    nullif(release_id, '') as release_id, nullif(release_url, '') as release_url, nullif(ref, '') as ref,
    nullif(root_id, '') as root_id, nullif(root_url, '') as root_url, proven, result in ('published', 'resume') as sent
  from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::boolean[], $8::uuid[],
      $9::text[], $10::text[], $11::text[], $12::text[], $13::text[], $16::boolean[])
    as outcome(post, token, result, error, code, after_ms, ended, pub, release_id, release_url, ref, root_id, root_url,
      proven)
), locked as (
  -- The posts with current claims, and those that were given up or unscheduled before their success was known. Posts
  -- that another transaction has locked, or whose channel it has locked, are left for the next statement.
  select o.*, p.state as was, p.deleted_at is not null as deleted, p.maybe_sent, p.republish as round,
    (p.claim_token = o.token) is true as current
  from outcome o
  join post p on p.id = any (array[o.post])
  join channel_queue q on q.channel_id = any (array[p.channel_id])
  where p.claim_token = o.token
    or o.sent and p.maybe_sent and p.state in ('ERROR', 'DRAFT', 'QUEUE')
      and exists (
        select from publication x
        where x.id = o.pub and x.post_id = any (array[p.id]) and (x.number = p.republish) is true)
  order by o.post for no key update of p, q skip locked
), found_published as (
  -- Posts that are given up although every part was found to be published in the meantime.
  select l.post from locked l
  where l.result = 'error' and l.maybe_sent and l.current
    and not exists (
      select from publication x
      where x.post_id = any (array[l.post]) and (x.number = l.round) is true and x.phase <> 'done')
), decided as (
  -- What each post becomes, and whether it may be on the platform without our knowledge.
  select l.*,
    case
      when l.result = 'published' or l.post in (select post from found_published) then 'PUBLISHED'
      when not l.current then l.was
      when l.was = 'ERROR' then l.was
      when l.result in ('unknown', 'later') then 'UNKNOWN'
      when l.result = 'error' or l.deleted then 'ERROR'
      else 'QUEUE' end as becomes,
    case
      when l.result = 'published' or l.post in (select post from found_published) then false
      when l.sent then exists (
        select from publication x
        where x.post_id = any (array[l.post]) and (x.number = l.round) is true and x.id <> l.pub and x.maybe_sent
          and x.phase <> 'done')
      when l.result in ('unknown', 'later') or l.code = 'outcome_unknown' then true
      else l.maybe_sent and not l.proven end as outcome_unknown
  from locked l
), answer as (
  -- The same, with the successes of posts that are not locked here: their publications still store them.
  select pub, post, result, code, sent, proven, release_id, release_url, ref, current, was, outcome_unknown
  from decided
  union all
  select pub, post, result, code, sent, proven, release_id, release_url, ref, false, null, false
  from outcome where sent and post not in (select post from locked)
), stored_publication as (
  -- The publications. A second success changes nothing here.
  update publication x set
    phase = case
      when v.sent then 'done'
      when v.result in ('unknown', 'later') or v.result = 'error' and v.outcome_unknown then x.phase
      when v.result = 'error' then 'failed'
      else 'preparing' end,
    maybe_sent = case
      when v.sent then false
      when v.result in ('unknown', 'later') or v.code = 'outcome_unknown' then true
      else x.maybe_sent and not v.proven end,
    release_id = case when v.sent then v.release_id end,
    release_url = case when v.sent then v.release_url end,
    ref = case when v.sent then v.ref::jsonb end,
    done_at = case when v.sent then now() end
  from answer v
  where x.id = v.pub and x.post_id = any (array[v.post]) and x.phase <> 'done'
    and (v.sent or v.current and v.was in ('PUBLISHING', 'UNKNOWN'))
  returning x.org_id, x.id, x.post_id, x.position, x.phase, x.release_id
), second_success as (
  -- Publications that were already published under another release id.
  update publication x set second_release_id = o.release_id
  from outcome o
  where x.id = o.pub and x.post_id = any (array[o.post]) and o.sent
    and o.pub not in (select id from stored_publication)
    and x.phase = 'done' and x.release_id <> o.release_id and x.second_release_id is null
  returning x.org_id, x.post_id, x.second_release_id
), changed_post as (
  -- The posts. A retry or the success of one part ends the claim; an unknown outcome keeps its token and its holder.
  update post p set
    state = v.becomes,
    release_id = case
      when v.result = 'published' then v.root_id
      when v.becomes = 'PUBLISHED' then coalesce((
        select x.release_id from publication x
        where x.post_id = any (array[v.post]) and (x.number = v.round) is true
        order by x.position limit 1), 'missing') end,
    release_url = case when v.result = 'published' then v.root_url end,
    error = case
      when v.becomes <> 'ERROR' then null
      when v.result = 'error' then
        v.error || case when v.outcome_unknown and v.code <> 'outcome_unknown' then $17::text else '' end
      when v.deleted then 'The post was deleted while it was being published.'
      when v.outcome_unknown then 'A part of this thread is published; it is not known whether the parts after it are.'
      else 'A part of this thread is published; the parts after it were not sent.' end,
    error_code = case
      when v.becomes <> 'ERROR' then null
      when v.outcome_unknown then 'outcome_unknown'
      when v.result = 'error' then v.code
      when v.deleted then 'deleted'
      else 'retries_used_up' end,
    outcome_unknown = v.becomes = 'ERROR' and v.outcome_unknown,
    maybe_sent = v.outcome_unknown,
    phase = case when v.becomes = 'UNKNOWN' then 'committing' end,
    call_ended = p.call_ended or v.ended,
    reaps = case when v.sent then 0 else p.reaps end,
    failing_since = case
      when v.result = 'retry' and v.after_ms > 0 then coalesce(p.failing_since, now())
      when v.result <> 'resume' then p.failing_since end,
    claim_token = case when v.result in ('retry', 'resume') or v.becomes in ('QUEUE', 'DRAFT') then null
      else p.claim_token end,
    claim_holder = case when v.becomes = 'UNKNOWN' then p.claim_holder end,
    claim_until = case when v.becomes = 'UNKNOWN' then now() + v.after_ms * interval '1 millisecond' end,
    not_before = case when v.becomes = 'QUEUE' and v.result = 'retry' and v.after_ms > 0
      then now() + v.after_ms * interval '1 millisecond' end,
    updated_at = now()
  from decided v
  where p.id = any (array[v.post])
    and (v.current and (p.state in ('PUBLISHING', 'UNKNOWN') or v.sent and p.state = 'ERROR' and p.maybe_sent)
      or not v.current and p.state in ('ERROR', 'DRAFT', 'QUEUE') and p.maybe_sent)
  returning p.org_id, p.id, p.group_id, p.channel_id, p.state, p.due, coalesce(p.nominal_due, p.due) as nominal,
    v.result, v.error as reason, v.pub, v.was,
    case when p.error_code is not null then p.error_code else v.code end as code,
    least(p.failing_since, p.committing_at) as stuck_since
), not_reached as (
  -- Channels of posts that go back to the queue before any part was reached: it was not the platform that failed.
  update channel_queue q set resumed_at = now()
  from changed_post u
  where q.channel_id = any (array[u.channel_id]) and u.state = 'QUEUE' and u.result = 'retry'
    and u.pub = '00000000-0000-0000-0000-000000000000'
), freed_channel as (
  -- Channels of posts that have ended. If a post was stuck, the next of those that waited behind it waits for the gap.
  update channel_queue q set busy_post = null, done_at = now(),
    held_until = case when u.stuck_since < now() - interval '2 minutes' then now() else q.held_until end,
    not_before = case when u.due < q.held_until - interval '2 minutes' then now() + $14 * interval '1 millisecond' end
  from changed_post u
  where q.channel_id = any (array[u.channel_id]) and q.busy_post = u.id and u.state in ('PUBLISHED', 'ERROR')
), queued_follower as (
  -- The follower that waited for a published post. Its nominal due time is the one it would have if this post had been
  -- on time.
  update post f set state = 'QUEUE', due = now() + f.delay_minutes * interval '1 minute',
    nominal_due = u.nominal + f.delay_minutes * interval '1 minute', updated_at = now()
  from changed_post u
  cross join lateral (
    select n.id from post n where n.after_post = u.id and (n.org_id = u.org_id) is true offset 0) next
  where u.state = 'PUBLISHED' and f.id = any (array[next.id]) and (f.state = 'WAITING') is true
    and f.deleted_at is null
), failed_follower as (
  -- The followers of a post that was given up.
  update post f set state = 'ERROR', error = 'The part before this one was not published.',
    error_code = 'predecessor_failed', updated_at = now()
  from changed_post u
  where f.group_id = any (array[u.group_id]) and (f.org_id = u.org_id and f.state = 'WAITING') is true
    and f.deleted_at is null and u.state = 'ERROR'
  returning f.org_id, f.id
), timeline as (
  -- What happened, in the timelines of the posts.
  insert into post_event (org_id, post_id, event, node, reason)
  select org_id, id,
    case result
      when 'published' then 'confirmed'
      when 'error' then 'failed'
      when 'retry' then 'retried'
      when 'resume' then 'sent'
      when 'later' then 'looked'
      else result end,
    $15,
    coalesce(nullif(code, ''), reason, (
      select 'part ' || x.position + 1 from publication x where x.id = u.pub and x.post_id = any (array[u.id])))
  from changed_post u
  union all
  select org_id, id, 'failed', $15, 'predecessor_failed' from failed_follower
  union all
  select org_id, post_id, 'sent', $15,
    'part ' || position + 1 || ', learned after its claim had ended: ' || release_id
  from stored_publication
  where phase = 'done' and post_id not in (select id from changed_post)
  union all
  select org_id, post_id, 'published_twice', $15, 'also as ' || second_release_id from second_success
)
select org_id, id, state, coalesce(due, now()) as due, id in (select post_id from second_success) as published_twice,
  false as locked
from changed_post
union all
select org_id, post_id, '', now(), true, false
from second_success where post_id not in (select id from changed_post)
union all
-- Another transaction has locked the post or its channel.
select p.org_id, p.id, p.state, now(), false, true
from outcome o join post p on p.id = any (array[o.post])
where o.post not in (select post from locked)
  and (p.claim_token = o.token and (p.state in ('PUBLISHING', 'UNKNOWN')) is true
    or o.sent and p.maybe_sent and (p.state in ('ERROR', 'DRAFT', 'QUEUE')) is true
      and exists (
        select from publication x
        where x.id = o.pub and x.post_id = any (array[p.id]) and (x.number = p.republish) is true))
union all
-- Another transaction has just stored a success of this publication, which this statement does not see yet.
select x.org_id, x.post_id, '', now(), false, true
from outcome o join publication x on x.id = o.pub and x.post_id = any (array[o.post])
where o.sent and x.phase <> 'done' and o.pub not in (select id from stored_publication)
