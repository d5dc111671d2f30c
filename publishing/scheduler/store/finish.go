package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

//go:embed sql/finish.sql
var finish string

// Finish stores outcomes in one statement and returns what changed. It matches outcomes with posts
// by claim token. There must be at most one outcome per post.
//
// If a post is missing from done, or has no State there, its claim was lost. Even then, Finish
// records that the part was published if the outcome says so. If Postgres rejects one outcome, no
// outcome is stored; see batch.Isolate. After an error, Finish can be called again with the same
// outcomes.
func Finish(
	ctx context.Context, d *db.DB, outcomes []dispatch.Outcome, lateGap time.Duration, node string,
) (done []dispatch.Finished, err error) {
	n := len(outcomes)
	posts, tokens, pubs := make([][16]byte, n), make([][16]byte, n), make([][16]byte, n)
	after, ended, proven := make([]int64, n), make([]bool, n), make([]bool, n)
	results, reasons, codes := make([]string, n), make([]string, n), make([]string, n)
	releaseIDs, releaseURLs, refs := make([]string, n), make([]string, n), make([]string, n)
	rootIDs, rootURLs := make([]string, n), make([]string, n)
	for i, o := range outcomes {
		posts[i], tokens[i], pubs[i] = o.Post.UUID(), o.Token, o.Publication.UUID()
		after[i], ended[i], proven[i] = o.After.Milliseconds(), o.CallEnded, o.Proven
		results[i], reasons[i], codes[i] = string(o.Result), o.Error, o.Code
		releaseIDs[i], releaseURLs[i], refs[i] = o.ReleaseID, o.ReleaseURL, string(o.Ref)
		rootIDs[i], rootURLs[i] = o.RootID, o.RootURL
	}
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(finish, posts, tokens, results, reasons, codes, after, ended, pubs, releaseIDs, releaseURLs, refs,
			rootIDs, rootURLs, lateGap.Milliseconds(), node, proven, publishing.MaybeSentAdvice).
			Query(db.Collect(&done, finishedColumns))
	})
	return done, err
}

// finishedColumns must match the column order of finish.sql, because db.Collect scans by position.
func finishedColumns(f *dispatch.Finished) []db.Column {
	return []db.Column{
		db.Col("org_id", &f.Org), db.Col("id", &f.Post), db.Col("state", &f.State), db.Col("due", &f.Due),
		db.Col("published_twice", &f.PublishedTwice), db.Col("locked", &f.Locked),
	}
}

// MaxUnknown is the maximum number of posts that FindUnknown returns.
const MaxUnknown = 1000

//go:embed sql/find_unknown.sql
var findUnknown string

type unknownRow struct {
	Post        publishing.PostID `db:"id"`
	Org         tenancy.OrgID     `db:"org_id"`
	Destination string            `db:"destination"`
	Stale       bool              `db:"stale"`
}

func scanUnknown(row pgx.CollectableRow) (dispatch.UnknownPost, error) {
	r, err := pgx.RowToStructByName[unknownRow](row)
	return dispatch.UnknownPost(r), err
}

// FindUnknown returns posts in the lease's shards that have an unknown outcome and whose platform
// is due to be queried. Organizations take turns, and so do the destinations within an
// organization. Posts in except are not returned. For a destination in resting, only posts whose
// outcome has been unknown for longer than unknownFor are returned.
//
// FindUnknown takes no locks; ClaimUnknown does. If the lease is stale, FindUnknown returns no
// posts. It returns any Postgres error.
func FindUnknown(
	ctx context.Context, d *db.DB, l dispatch.Lease, except []publishing.PostID, resting []string,
	unknownFor time.Duration,
) (out []dispatch.UnknownPost, err error) {
	resting = append([]string{}, resting...) // null would match no destination at all
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(findUnknown, l.Shards, l.Holder, db.UUIDs(except), MaxUnknown, resting, unknownFor.Milliseconds()).
			Query(db.Into(&out, scanUnknown))
	})
	return out, err
}

//go:embed sql/claim_unknown.sql
var claimUnknown string

// ClaimedUnknown is a post with an unknown outcome that this process has claimed so that it can
// query the platform.
type ClaimedUnknown struct {
	Org   tenancy.OrgID     `db:"org_id"`
	Post  publishing.PostID `db:"id"`
	Token uuid.UUID         `db:"claim_token"`
	// Committing is when the irreversible call was marked.
	Committing time.Time `db:"committing_at"`
	// HolderGone is set if the lease of the process that sent the post has expired.
	HolderGone bool `db:"holder_gone"`
	// Now is the database's time.
	Now time.Time `db:"now"`
}

// ClaimUnknown claims and returns the given posts that still have an unknown outcome and are due
// for a query. No other process claims them for the duration hold. Posts locked by another
// transaction are skipped. After a Postgres error, posts may have been claimed; FindUnknown returns
// these posts again once hold has passed.
func ClaimUnknown(
	ctx context.Context, d *db.DB, posts []publishing.PostID, hold time.Duration,
) (out []ClaimedUnknown, err error) {
	err = d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(claimUnknown, db.UUIDs(posts), hold.Milliseconds()).
			Query(db.Into(&out, pgx.RowToStructByName[ClaimedUnknown]))
	})
	return out, err
}
