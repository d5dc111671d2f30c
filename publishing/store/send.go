package store

import (
	"context"
	_ "embed"
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

//go:embed sql/load_work.sql
var loadWork string

const workMedia = `-- publishing.WorkMedia
select t.part_id, t.alt, ` + mediaColumns + `
from unnest($1::uuid[], $2::uuid[]) want(org, part) join attachment t on t.part_id = any (array[want.part]) and (t.org_id = want.org) is true
join media m on m.id = any (array[t.media_id]) and (m.org_id = t.org_id) is true
order by t.position`

// Load reads claimed posts with everything that sending them needs. Posts that are no longer claimed are left out.
func (s *Store) Load(ctx context.Context, posts []publishing.PostID) (out []publishing.Work, err error) {
	var rows []workRow
	err = s.db.WriteRole(ctx, pg.Sender, func(b *pgx.Batch) {
		b.Queue(loadWork, uuids(posts)).Query(into(&rows, scanWork))
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
	err = row.Scan(&w.Org, &w.Post, &w.Group, &w.Token, &w.Attempt, &w.Failing, &w.Due, &w.Settings, &committing, &w.CallEnded, &w.ReconcileAttempts, &w.Reaps, &w.MaybeSent,
		&c.ID, &c.Connector, &c.Name, &c.Profile, &c.Picture, &c.AccountID, &c.Account, &c.Grade, &c.Disabled, &c.RefreshNeeded, &w.Disconnected, &w.Credential, &c.Destination,
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

//go:embed sql/mark_committing.sql
var markCommitting string

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
		b.Queue(markCommitting, posts, tokens, pubs, hold.Milliseconds(), spare.Milliseconds(), destinations, handles).Query(func(rows pgx.Rows) error {
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

//go:embed sql/save_part_done.sql
var savePartDone string

// PartDone stores a published part that has successors; false means that no further part may be
// sent, and that the sender must finish the post with what it knows.
func (s *Store) PartDone(ctx context.Context, post publishing.PostID, token uuid.UUID, x publishing.Publication, hold time.Duration, node string) (bool, error) {
	return s.clockRow(ctx, savePartDone, post, token, x.ID, x.ReleaseID, x.URL, x.Ref, hold.Milliseconds(), node)
}

//go:embed sql/unmark_committing.sql
var unmarkCommitting string

// Unmark takes the mark back after an answer that proves that nothing was published. False means that nothing changed
// and that nothing more may be sent: the claim is lost, or an earlier call of the part is known to have published it.
func (s *Store) Unmark(ctx context.Context, post publishing.PostID, token uuid.UUID, pub publishing.PublicationID, hold time.Duration, node string) (bool, error) {
	return s.clockRow(ctx, unmarkCommitting, post, token, pub, hold.Milliseconds(), node)
}
