-- publishing.Work
--
-- Reads claimed posts with everything that is needed to send them. The role of the sender sees no other posts.
--
-- Result: one row for each publication of a post, in the order of the parts, or one row without a publication. The
-- publications are those of the post itself and those of the parts before it that are published. The first row of a
-- post has its settings, and whether its content differs from what was approved (postDigest in approved.go has the same
-- expression). The last column is true if the part has media.
--
--   $1 posts uuid[]: the posts
--
--   PREPARE load_work (uuid[]) AS
--   EXPLAIN EXECUTE load_work (null);
select
  -- the post; "failing" is how long its attempts have failed, without the time when its channel was kept back
  p.org_id, p.id as post_id, p.group_id, p.claim_token, p.attempt,
  case when p.failing_since is null then interval '0'
    else now() - greatest(p.failing_since, q.resumed_at) end as failing,
  p.due,
  case when row_number() over (partition by want.id order by x.position, x.number) = 1 then p.settings end as settings,
  case
    when p.approved is null or row_number() over (partition by want.id order by x.position, x.number) > 1 then false
    else p.approved <> sha256(convert_to(jsonb_build_array(p.channel_id, p.delay_minutes, p.settings, (
      select jsonb_agg(jsonb_build_array(a.content, a.html, (
        select jsonb_agg(jsonb_build_array(t.media_id, t.alt) order by t.position) from attachment t
        where t.part_id = any (array[a.id]) and (t.org_id = a.org_id) is true)) order by a.position)
      from part a where a.post_id = any (array[p.id]) and (a.org_id = p.org_id) is true))::text, 'UTF8'))
  end as unapproved,
  p.committing_at, p.call_ended, p.looks, p.reaps, p.maybe_sent,
  -- the channel
  c.id as channel_id, c.connector, c.name, c.profile, c.picture, c.account_id, c.account, c.grade,
  c.disabled, c.refresh_needed, c.deleted_at is not null as disconnected, c.credential, q.destination,
  -- the publication and its part
  x.id as publication_id, x.post_id as part_post_id, x.part_id, coalesce(x.position, 0) as position,
  coalesce(x.created_at, now()) as booked_for, coalesce(x.claimed_at, x.created_at, now()) as claimed_at, x.marked_at,
  coalesce(x.sent_to, '') as sent_to, coalesce(x.phase, '') as phase, x.handle, x.release_id, x.release_url, x.ref,
  coalesce(a.content, '') as content, coalesce(a.html, false) as html,
  exists (
    select from attachment t
    where t.part_id = any (array[a.id]) and (t.org_id = a.org_id) is true offset 0) as attached
from unnest($1::uuid[]) want(id)
join post p on p.id = any (array[want.id])
join channel c on c.id = any (array[p.channel_id]) and (c.org_id = p.org_id) is true
join channel_queue q on q.channel_id = any (array[p.channel_id]) and (q.org_id = p.org_id) is true
left join publication x on x.group_id = any (array[p.group_id]) and (x.org_id = p.org_id) is true
  and (x.number = p.republish) is true
  and (x.post_id = p.id
    or x.phase = 'done' and x.position < (
      select min(y.position) from part y
      where y.post_id = any (array[p.id]) and (y.org_id = p.org_id) is true))
left join part a on a.id = any (array[x.part_id]) and (a.org_id = x.org_id and x.post_id = p.id) is true
order by want.id, x.position, x.number
