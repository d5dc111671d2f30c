package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

// A row for each publication of a post, or one with none. The first has the settings; "attached" says whether the part
// has media.
const work = `-- publishing.Work
select p.org_id, p.id, p.group_id, p.claim_token, p.attempt,
  case when p.failing_since is null then interval '0' else now() - greatest(p.failing_since, q.resumed_at) end, p.due,
  case when row_number() over (partition by want.id order by x.position, x.number) = 1 then p.settings end, p.committing_at, p.call_ended, p.looks, p.reaps, p.maybe_sent,
  c.id, c.connector, c.name, c.profile, c.picture, c.account_id, c.account, c.grade, c.disabled, c.refresh_needed, c.deleted_at is not null, c.credential, q.destination,
  x.id, x.post_id, x.part_id, coalesce(x.position, 0), coalesce(x.created_at, now()), coalesce(x.claimed_at, x.created_at, now()), x.marked_at, coalesce(x.sent_to, ''), coalesce(x.phase, ''),
  x.handle, x.release_id, x.release_url, x.ref, coalesce(a.content, ''), coalesce(a.html, false),
  exists (select from attachment t where t.part_id = any (array[a.id]) and (t.org_id = a.org_id) is true offset 0) as attached
from unnest($1::uuid[]) want(id) join post p on p.id = any (array[want.id]) join channel c on c.id = any (array[p.channel_id]) and (c.org_id = p.org_id) is true
join channel_queue q on q.channel_id = any (array[p.channel_id]) and (q.org_id = p.org_id) is true
left join publication x on x.group_id = any (array[p.group_id]) and (x.org_id = p.org_id) is true and (x.number = p.republish) is true
  and (x.post_id = p.id or x.phase = 'done' and x.position < (select min(y.position) from part y where y.post_id = any (array[p.id]) and (y.org_id = p.org_id) is true))
left join part a on a.id = any (array[x.part_id]) and (a.org_id = x.org_id and x.post_id = p.id) is true
order by want.id, x.position, x.number`

const workMedia = `-- publishing.WorkMedia
select t.part_id, t.alt, ` + mediaColumns + `
from unnest($1::uuid[], $2::uuid[]) want(org, part) join attachment t on t.part_id = any (array[want.part]) and (t.org_id = want.org) is true
join media m on m.id = any (array[t.media_id]) and (m.org_id = t.org_id) is true
order by t.position`

// Load reads claimed posts with everything that sending them needs. Posts that are no longer claimed are left out.
func (s *Store) Load(ctx context.Context, posts []publishing.PostID) (out []publishing.Work, err error) {
	var rows []workRow
	err = s.db.WriteRole(ctx, pg.Sender, func(b *pgx.Batch) {
		b.Queue(work, uuids(posts)).Query(into(&rows, scanWork))
	})
	if err != nil {
		return nil, err
	}
	media, err := s.workMedia(ctx, rows)
	if err != nil {
		return nil, err // a work without its media would be taken for a text
	}
	for _, row := range rows {
		if len(out) == 0 || out[len(out)-1].Post != row.Post {
			out = append(out, row.Work)
		}
		w := &out[len(out)-1]
		switch x := row.publication; {
		case x.ID.IsZero():
		case x.Post == w.Post:
			x.Media = media[sentPart{w.Org, x.Part}]
			w.Parts = append(w.Parts, x)
		default:
			w.Before = append(w.Before, x)
		}
	}
	return out, nil
}

// workMedia reads the media of those parts that have some. Nobody changes them while the post is claimed.
func (s *Store) workMedia(ctx context.Context, rows []workRow) (map[sentPart][]publishing.AttachedMedium, error) {
	var orgs, parts [][16]byte
	for _, row := range rows {
		if row.attached {
			orgs, parts = append(orgs, row.Org.UUID()), append(parts, row.publication.Part.UUID())
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	out := map[sentPart][]publishing.AttachedMedium{}
	err := s.db.WriteRole(ctx, pg.Sender, func(b *pgx.Batch) {
		clear(out)
		b.Queue(workMedia, orgs, parts).Query(each(pgx.RowToStructByPos[attached], func(m attached) {
			of := sentPart{m.Org, m.Part}
			out[of] = append(out[of], publishing.AttachedMedium{Medium: m.Medium, Alt: m.Alt})
		}))
	})
	return out, err
}

// sentPart is a part of an organization: no other's counts, whatever its id.
type sentPart struct {
	org  tenancy.OrgID
	part publishing.PartID
}

// workRow is a post with one of its publications, or with none.
type workRow struct {
	publishing.Work
	publication publishing.Publication
	attached    bool
}

func scanWork(row pgx.CollectableRow) (out workRow, err error) {
	var committing, marked *time.Time
	w, c, x := &out.Work, &out.Channel, &out.publication
	err = row.Scan(&w.Org, &w.Post, &w.Group, &w.Token, &w.Attempt, &w.Failing, &w.Due, &w.Settings, &committing, &w.CallEnded, &w.Looks, &w.Reaps, &w.MaybeSent,
		&c.ID, &c.Connector, &c.Name, &c.Profile, &c.Picture, &c.AccountID, &c.Account, &c.Grade, &c.Disabled, &c.RefreshNeeded, &w.Gone, &w.Credential, &c.Destination,
		&x.ID, &x.Post, &x.Part, &x.Position, &x.Due, &x.ClaimedAt, &marked, &x.SentTo, &x.Phase, &x.Handle, &x.ReleaseID, &x.URL, &x.Ref, &x.Content.Text, &x.Content.HTML, &out.attached)
	if committing != nil {
		w.Committing = *committing
	}
	if marked != nil {
		x.MarkedAt = *marked
	}
	c.Org = w.Org
	return out, err
}

const handleSave = `-- publishing.HandleSave
with mine as (
  update post set claim_until = now() + $4 * interval '1 millisecond' where id = $1 and claim_token = $2 and state = 'PUBLISHING' returning id
)
update publication x set handle = $5 from mine where x.id = $3 and x.post_id = any (array[mine.id]) and x.phase = 'preparing'`

// SaveHandle stores what a step reached and renews the claim; false means that the claim is lost.
func (s *Store) SaveHandle(ctx context.Context, post publishing.PostID, token uuid.UUID, pub publishing.PublicationID, handle json.RawMessage, hold time.Duration) (bool, error) {
	return s.clockRow(ctx, handleSave, post, token, pub, hold.Milliseconds(), handle)
}

// The fence of every send: a post that was deleted, moved, paused or taken over is not sent.
// A claim that still has nearly all its time is not renewed: that would write every index of the post once more.
const commitMark = `-- publishing.CommitMark
with m as (
  select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $6::text[], $7::text[]) as m(post, token, pub, destination, handle)
), locked as (
  select m.* from m join post p on p.id = any (array[m.post]) where p.claim_token = m.token and (p.state = 'PUBLISHING') is true order by m.post for no key update of p skip locked
), mine as (
  update post p set phase = 'committing', committing_at = now(), call_ended = false,
    claim_until = case when p.claim_until < now() + ($4::bigint - $5::bigint) * interval '1 millisecond' then now() + $4::bigint * interval '1 millisecond' else p.claim_until end
  from locked m
  where p.id = any (array[m.post]) and p.claim_token = m.token and (p.state = 'PUBLISHING') is true and p.deleted_at is null
    and exists (select 1 from publication x where x.id = m.pub and x.post_id = any (array[p.id]) and x.phase = 'preparing')
    and not exists (select 1 from channel_queue q where q.channel_id = any (array[p.channel_id]) and q.paused)
  returning p.id, m.pub, m.token, m.destination, m.handle
), marked as (
  update publication x set phase = 'committing', handle = coalesce(mine.handle::jsonb, x.handle), marked_at = coalesce(x.marked_at, now()),
    sent_to = case when x.maybe_sent and coalesce(x.sent_to, '*') <> mine.destination then '*' else mine.destination end
  from mine where x.id = mine.pub and x.post_id = any (array[mine.id]) and x.phase = 'preparing' returning mine.token
)
select token, false from marked
union all
select m.token, true from m join post p on p.id = any (array[m.post])
where p.claim_token = m.token and (p.state = 'PUBLISHING') is true and m.token not in (select token from locked)`

// Mark names the call that a claim is about to make.
type Mark struct {
	Post        publishing.PostID
	Token       uuid.UUID
	Publication publishing.PublicationID
	Destination string          // where the call goes
	Handle      json.RawMessage // what preparing the part has decided; empty when it decided nothing new
}

// MarkCommitting stores that the irreversible calls come next, with the handles of their parts, in one statement; may is true of each mark whose
// call may be made, and busy of each whose post another transaction has locked, so that nothing is decided. The
// claims last for hold from now, or as much as spare less.
func (s *Store) MarkCommitting(ctx context.Context, marks []Mark, hold, spare time.Duration) (may, busy []bool, err error) {
	posts, tokens, pubs := make([][16]byte, len(marks)), make([][16]byte, len(marks)), make([][16]byte, len(marks))
	destinations, handles := make([]string, len(marks)), make([]*string, len(marks))
	for i, m := range marks {
		posts[i], tokens[i], pubs[i], destinations[i] = m.Post.UUID(), m.Token, m.Publication.UUID(), m.Destination
		if len(m.Handle) > 0 {
			handle := string(m.Handle)
			handles[i] = &handle
		}
	}
	var written, locked []uuid.UUID
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		written, locked = nil, nil
		b.Queue(commitMark, posts, tokens, pubs, hold.Milliseconds(), spare.Milliseconds(), destinations, handles).Query(func(rows pgx.Rows) error {
			var token uuid.UUID
			var other bool
			_, err := pgx.ForEachRow(rows, []any{&token, &other}, func() error {
				if other {
					locked = append(locked, token)
				} else {
					written = append(written, token)
				}
				return nil
			})
			return err
		})
	})
	may, busy = make([]bool, len(marks)), make([]bool, len(marks))
	for i, m := range marks {
		may[i], busy[i] = err == nil && slices.Contains(written, m.Token), err == nil && slices.Contains(locked, m.Token)
	}
	return may, busy, err
}

func (s *Store) clockRow(ctx context.Context, sql string, args ...any) (changed bool, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
			changed = tag.RowsAffected() == 1
			return nil
		})
	})
	return changed, err
}

// That a part is out is stored whoever tells it and whatever became of the claim. The next part may go only while the
// claim is held, and not when the part is out under another release id already, or may be because another transaction
// has just stored one: Finish then stores the second one. The post is locked before its publication, as everywhere.
const partDone = `-- publishing.PartDone
with held as (
  select from post where id = $1 and claim_token = $2 for no key update
), done as (
  update publication set phase = 'done', maybe_sent = false, release_id = $4, release_url = $5, ref = $6, done_at = now()
  where id = $3 and post_id = $1 and phase <> 'done' and (select count(*) from held) >= 0 returning org_id, post_id, position
), timeline as (
  insert into post_event (org_id, post_id, event, node, reason) select org_id, post_id, 'sent', $8, 'part ' || position + 1 from done
)
update post set phase = 'preparing', call_ended = false, failing_since = null, maybe_sent = false, reaps = 0, claim_until = now() + $7 * interval '1 millisecond'
where id = $1 and claim_token = $2 and state = 'PUBLISHING' and deleted_at is null
  and (exists (select from done) or exists (select from publication x where x.id = $3 and x.post_id = $1 and x.phase = 'done' and (x.release_id <> $4) is not true))`

// PartDone stores a published part that has successors; false means that no further part may be
// sent, and that the sender must finish the post with what it knows.
func (s *Store) PartDone(ctx context.Context, post publishing.PostID, token uuid.UUID, x publishing.Publication, hold time.Duration, node string) (bool, error) {
	return s.clockRow(ctx, partDone, post, token, x.ID, x.ReleaseID, x.URL, x.Ref, hold.Milliseconds(), node)
}

// The post is locked before its publication, as everywhere, and both before either changes: a late success that is
// stored meanwhile is seen.
const commitUnmark = `-- publishing.CommitUnmark
with claimed as (
  select p.id, p.org_id from post p where p.id = $1 and p.claim_token = $2 and p.state = 'PUBLISHING' and p.phase = 'committing' for no key update
), part as (
  select c.id, c.org_id from claimed c join publication x on x.post_id = any (array[c.id]) where x.id = $3 and x.phase = 'committing' for no key update of x
), mine as (
  update post p set phase = 'preparing', claim_until = now() + $4 * interval '1 millisecond' from part where p.id = any (array[part.id]) returning p.id, p.org_id
), told as (
  insert into post_event (org_id, post_id, event, node, reason) select org_id, id, 'retried', $5, 'the access was renewed' from mine
)
update publication x set phase = 'preparing' from mine where x.id = $3 and x.post_id = any (array[mine.id])`

// Unmark takes the mark back after an answer that proves that nothing was published. False means that nothing changed
// and that nothing more may be sent: the claim is lost, or an earlier call of the part is known to have published it.
func (s *Store) Unmark(ctx context.Context, post publishing.PostID, token uuid.UUID, pub publishing.PublicationID, hold time.Duration, node string) (bool, error) {
	return s.clockRow(ctx, commitUnmark, post, token, pub, hold.Milliseconds(), node)
}
