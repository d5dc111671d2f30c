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
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
)

const handleSave = `-- publishing.HandleSave
with mine as (
  update post set claim_until = now() + $4 * interval '1 millisecond'
  where id = $1 and claim_token = $2 and state = 'PUBLISHING' returning id
)
update publication x set handle = $5 from mine
where x.id = $3 and x.post_id = any (array[mine.id]) and x.phase = 'preparing'`

// SaveHandle stores the handle of a publication that is being prepared, and extends the claim so
// that it lasts for the duration hold from now. It returns false if the claim is lost. In that
// case, nothing is stored, and nothing may be sent.
//
// After a Postgres error, the handle may have been stored. Nothing may be sent until a later call
// to SaveHandle returns true.
func SaveHandle(
	ctx context.Context, d *db.DB, post publishing.PostID, token uuid.UUID, pub publishing.PublicationID,
	handle json.RawMessage, hold time.Duration,
) (bool, error) {
	return clockRow(ctx, d, handleSave, post, token, pub, hold.Milliseconds(), handle)
}

// clockRow executes a statement in the role that can access all organizations (pg.Clock). changed
// is true if the statement changed exactly one row.
func clockRow(ctx context.Context, d *db.DB, sql string, args ...any) (changed bool, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(sql, args...).Exec(func(tag pgconn.CommandTag) error {
			changed = tag.RowsAffected() == 1
			return nil
		})
	})
	return changed, err
}

//go:embed sql/mark_committing.sql
var markCommitting string

// Mark is a request to mark one irreversible call.
type Mark struct {
	Post        publishing.PostID
	Token       uuid.UUID
	Publication publishing.PublicationID
	// Destination is the host that the call is sent to. It is stored as SentTo in the publication.
	// Example: bsky.social
	Destination string
	// Handle is the publication's new handle. It is empty if the handle has not changed.
	Handle json.RawMessage
}

// markRow is a row returned by mark_committing.sql. It represents a stored mark or, if busy is set,
// a mark that was not stored because another transaction has locked the post.
type markRow struct {
	token uuid.UUID
	busy  bool
}

// columns must match the column order of mark_committing.sql, because db.Collect scans by position.
func (r *markRow) columns() []db.Column {
	return []db.Column{db.Col("token", &r.token), db.Col("busy", &r.busy)}
}

// MarkCommitting records, in one statement, that irreversible calls are about to be made, and
// stores their publications' handles. It extends each claim so that it lasts for the duration hold
// from now. A claim that would gain no more than spare is not extended.
//
// For each mark, may is true if the call may be made. busy is true if another transaction has
// locked the post; in that case, request the mark again. If both are false, the claim is lost or
// the call is not allowed.
//
// After an error, all values are false, but marks may have been stored. If a call is not made
// although its mark may have been stored, the mark must be removed. Otherwise, the call's outcome
// counts as unknown.
func MarkCommitting(
	ctx context.Context, d *db.DB, marks []Mark, hold, spare time.Duration,
) (may, busy []bool, err error) {
	n := len(marks)
	posts, tokens, pubs := make([][16]byte, n), make([][16]byte, n), make([][16]byte, n)
	destinations, handles := make([]string, n), make([]*string, n)
	for i, m := range marks {
		posts[i], tokens[i], pubs[i], destinations[i] = m.Post.UUID(), m.Token, m.Publication.UUID(), m.Destination
		if len(m.Handle) > 0 {
			handle := string(m.Handle)
			handles[i] = &handle
		}
	}
	may, busy = make([]bool, n), make([]bool, n)
	var rows []markRow
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(markCommitting, posts, tokens, pubs, hold.Milliseconds(), spare.Milliseconds(), destinations, handles).
			Query(db.Collect(&rows, (*markRow).columns))
	})
	if err != nil {
		return may, busy, err
	}
	for i, m := range marks {
		may[i] = slices.Contains(rows, markRow{token: m.Token})
		busy[i] = slices.Contains(rows, markRow{token: m.Token, busy: true})
	}
	return may, busy, nil
}

//go:embed sql/save_part_done.sql
var savePartDone string

// PartDone records the publication of a part that is followed by more parts, and extends the claim
// so that it lasts for the duration hold from now. It returns false if no further part may be sent,
// because the claim is lost, the post is deleted, or the part has been published under a different
// release id.
//
// If PartDone returns false, the sender must stop and pass the outcome to Finish. The part is
// recorded as published even then.
//
// After a Postgres error, repeat the call until it succeeds or the claim ends, because a published
// part must be recorded.
func PartDone(
	ctx context.Context, d *db.DB, post publishing.PostID, token uuid.UUID, x dispatch.Publication,
	hold time.Duration,
	node string,
) (bool, error) {
	return clockRow(ctx, d, savePartDone, post, token, x.ID, x.ReleaseID, x.URL, x.Ref, hold.Milliseconds(), node)
}

//go:embed sql/unmark_committing.sql
var unmarkCommitting string

// Unmark removes a call's mark after a response has proven that the call published nothing. It also
// extends the claim so that it lasts for the duration hold from now. It returns false if the claim
// is lost, or if an earlier call is known to have published the part. In that case, nothing is
// changed, and nothing more may be sent.
//
// After a Postgres error, the mark may still exist. In that case, the part's outcome counts as
// unknown.
func Unmark(
	ctx context.Context, d *db.DB, post publishing.PostID, token uuid.UUID, pub publishing.PublicationID,
	hold time.Duration,
	node string,
) (bool, error) {
	return clockRow(ctx, d, unmarkCommitting, post, token, pub, hold.Milliseconds(), node)
}
