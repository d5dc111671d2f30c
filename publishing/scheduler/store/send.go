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

// SaveHandle stores the handle of a publication that is being prepared, and extends the claim to
// last for hold from now. It returns false if the claim is lost; nothing is then stored, and
// nothing may be sent.
//
// After a Postgres error, the handle may have been stored, but nothing may be sent until a later
// call returns true.
func SaveHandle(
	ctx context.Context, d *db.DB, post publishing.PostID, token uuid.UUID, pub publishing.PublicationID,
	handle json.RawMessage, hold time.Duration,
) (bool, error) {
	return clockRow(ctx, d, handleSave, post, token, pub, hold.Milliseconds(), handle)
}

// clockRow executes a statement as the role that works across organizations (pg.Clock). changed is
// true only if the statement changed exactly one row.
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
	// Destination is the host that the call goes to. It is stored as the publication's SentTo.
	// Example: bsky.social
	Destination string
	// Handle is the publication's new handle, or empty if the handle has not changed.
	Handle json.RawMessage
}

// markRow is a mark that was stored or, if busy is set, a mark whose post another transaction has
// locked.
type markRow struct {
	token uuid.UUID
	busy  bool
}

// columns must match the column order of mark_committing.sql, because db.Collect scans by position.
func (r *markRow) columns() []db.Column {
	return []db.Column{db.Col("token", &r.token), db.Col("busy", &r.busy)}
}

// MarkCommitting records that irreversible calls come next, and stores their publications' handles,
// in one statement. It extends each claim to last for hold from now, unless the claim would gain at
// most spare.
//
// For each mark, may is true if the call may be made. busy is true if another transaction has
// locked the post; the mark must then be requested again. If both are false, the claim is lost or
// the call is forbidden.
//
// After an error, all values are false, but marks may have been stored. If a call is then not made,
// its mark must be removed, or its outcome counts as unknown.
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

// PartDone records that a part with successors is published, and extends the claim to last for hold
// from now. It returns false if no further part may be sent, because the claim is lost or the post
// is deleted; the sender then finishes the post with what it knows. In either case, the part is
// recorded as published.
//
// After a Postgres error, PartDone must be repeated until it succeeds or the claim ends, because a
// published part must be recorded.
func PartDone(
	ctx context.Context, d *db.DB, post publishing.PostID, token uuid.UUID, x dispatch.Publication,
	hold time.Duration,
	node string,
) (bool, error) {
	return clockRow(ctx, d, savePartDone, post, token, x.ID, x.ReleaseID, x.URL, x.Ref, hold.Milliseconds(), node)
}

//go:embed sql/unmark_committing.sql
var unmarkCommitting string

// Unmark removes a call's mark after a response that proves that the call published nothing, and
// extends the claim to last for hold from now. It returns false if it changed nothing, because the
// claim is lost or an earlier call is known to have published the part. Nothing more may then be
// sent.
//
// After a Postgres error, the mark may remain. The part's outcome then counts as unknown.
func Unmark(
	ctx context.Context, d *db.DB, post publishing.PostID, token uuid.UUID, pub publishing.PublicationID,
	hold time.Duration,
	node string,
) (bool, error) {
	return clockRow(ctx, d, unmarkCommitting, post, token, pub, hold.Milliseconds(), node)
}
