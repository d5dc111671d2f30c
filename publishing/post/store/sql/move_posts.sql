-- publishing.PostMove
--
-- Moves the posts of a group to DRAFT or into the queue, where followers wait. The caller has locked them.
--
-- Every manual move starts a new round, the same for all posts of the group: publications of earlier rounds stay as
-- they ended. The exception is a group that is unscheduled although one of its posts may have been sent ($3): it keeps
-- its round, and stays marked as possibly sent.
--
-- Result: the due time of each post, null for followers.
--
-- It also sets the columns of the list postReset: see README.md.
--
--   $1 posts uuid[]: all posts of the group
--   $2 state text: DRAFT or QUEUE
--   $3 keep_unknown boolean: a post that may have been sent stays marked as such
--
--   PREPARE move_posts (uuid[], text, boolean) AS
--   EXPLAIN EXECUTE move_posts (null, null, null);
with round as (
  -- The current round of the group, and whether one of its posts may have been sent.
  select max(republish) as last, bool_or(maybe_sent) as any_maybe_sent from post where id = any($1)
)
update post set
  state = case when $2 = 'DRAFT' then 'DRAFT' when after_post is null then 'QUEUE' else 'WAITING' end,
  due = case
    when after_post is not null then null
    when $2 = 'DRAFT' then publish_date
    else greatest(publish_date, now()) end,
  republish = case when $3 and round.any_maybe_sent then round.last else round.last + 1 end,
  maybe_sent = $3 and maybe_sent /* , postReset */
from round where id = any($1)
returning due
