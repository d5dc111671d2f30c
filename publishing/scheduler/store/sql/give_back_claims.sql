-- publishing.GiveBack
--
-- Returns to the queue the posts of claims whose response this process never received. Nobody knows the tokens of these
-- claims, so nothing was sent under them.
--
-- Result: the organizations of the posts.
--
--   $1 shards smallint[]: shards of the process
--   $2 node uuid: the process
--   $3 numbers bigint[]: numbers of the claim statements
--   $4 node_name text: name of the process in timelines
--
--   PREPARE give_back_claims (smallint[], uuid, bigint[], text) AS
--   EXPLAIN EXECUTE give_back_claims (null, null, null, null);
with unanswered as (
  -- The claimed posts, locked.
  select p.id from post p
  where p.shard = any ($1::smallint[]) and p.state = 'PUBLISHING' and p.claim_holder = $2
    and p.claim_round = any ($3::bigint[])
  for no key update of p skip locked
), returned as (
  -- The posts, back in the queue. Those that have been deleted end.
  update post p set state = case when p.deleted_at is null then 'QUEUE' else 'ERROR' end,
    error = case when p.deleted_at is not null then 'The post was deleted while it was being published.' end,
    error_code = case when p.deleted_at is not null then
      case when p.maybe_sent then 'outcome_unknown' else 'deleted' end end,
    outcome_unknown = p.deleted_at is not null and p.maybe_sent,
    phase = null, claim_token = null, claim_holder = null, claim_until = null,
    attempt = greatest(p.attempt - 1, 0), committing_at = null, updated_at = now()
  from unanswered a where p.id = any (array[a.id])
  returning p.org_id, p.id, p.channel_id, p.state
), freed_channel as (
  -- The channels of the posts that have ended.
  update channel_queue q set busy_post = null
  from returned r
  where q.channel_id = any (array[r.channel_id]) and q.busy_post = r.id and r.state = 'ERROR'
), timeline as (
  -- What happened, in the timelines of the posts.
  insert into post_event (org_id, post_id, event, node, reason)
  select org_id, id, 'returned', $4, 'the response to its claim was lost' from returned
)
select distinct org_id from returned
