-- publishing.CommitMark
--
-- Marks claims whose irreversible call comes next, and stores the handles of their parts: this is the fence of every
-- send. A call is made only after its mark is stored, and a post that was deleted, moved, paused or taken over gets no
-- mark.
--
-- A claim that still has nearly all its time is not renewed, because that would write every index of the post again.
--
-- Result: the token of each claim, with false if its call may be made, or with true if another transaction has locked
-- the post, so that nothing is decided. A claim without a row must not make its call.
--
--   $1 posts uuid[]: the posts; the other lists have one element for each
--   $2 tokens uuid[]: claim tokens
--   $3 publications uuid[]: the publications of the parts that are sent
--   $4 claim_time bigint: milliseconds that the claims last from now
--   $5 spare bigint: milliseconds by which a claim may be shorter without being renewed
--   $6 destinations text[]: where the calls go
--   $7 handles text[]: what preparing the parts decided, as JSON; null = nothing new
--
--   PREPARE mark_committing (uuid[], uuid[], uuid[], bigint, bigint, text[], text[]) AS
--   EXPLAIN EXECUTE mark_committing (null, null, null, null, null, null, null);
with asked as (
  -- The requested calls.
  select *
  from unnest($1::uuid[], $2::uuid[], $3::uuid[], $6::text[], $7::text[])
    as asked(post, token, pub, destination, handle)
), locked as (
  -- The calls whose claim is current, with the post locked.
  select m.* from asked m join post p on p.id = any (array[m.post])
  where p.claim_token = m.token and (p.state = 'PUBLISHING') is true
  order by m.post for no key update of p skip locked
), committing_post as (
  -- The posts that may be sent.
  update post p set phase = 'committing', committing_at = now(), call_ended = false,
    claim_until = case when p.claim_until < now() + ($4::bigint - $5::bigint) * interval '1 millisecond'
      then now() + $4::bigint * interval '1 millisecond' else p.claim_until end
  from locked m
  where p.id = any (array[m.post]) and p.claim_token = m.token and (p.state = 'PUBLISHING') is true
    and p.deleted_at is null
    and exists (
      select 1 from publication x where x.id = m.pub and x.post_id = any (array[p.id]) and x.phase = 'preparing')
    and not exists (select 1 from channel_queue q where q.channel_id = any (array[p.channel_id]) and q.paused)
  returning p.id, m.pub, m.token, m.destination, m.handle
), committing_publication as (
  -- Their publications. sent_to is * once calls that may have arrived went to several destinations.
  update publication x set phase = 'committing', handle = coalesce(c.handle::jsonb, x.handle),
    marked_at = coalesce(x.marked_at, now()),
    sent_to = case when x.maybe_sent and coalesce(x.sent_to, '*') <> c.destination then '*' else c.destination end
  from committing_post c
  where x.id = c.pub and x.post_id = any (array[c.id]) and x.phase = 'preparing'
  returning c.token
)
select token, false as busy from committing_publication
union all
select m.token, true from asked m join post p on p.id = any (array[m.post])
where p.claim_token = m.token and (p.state = 'PUBLISHING') is true and m.token not in (select token from locked)
