package store

import (
	"context"
	_ "embed"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	"crier/tenancy"
)

//go:embed sql/finish.sql
var finish string

// Finish stores outcomes by their tokens, in one statement. What is not among the answers, or there without a state,
// had lost its claim; that a part is published is stored all the same. An error of one outcome stores none: see
// batch.Isolate. There must be one outcome at most of each post.
func (s *Store) Finish(ctx context.Context, outcomes []publishing.Outcome, lateGap time.Duration, node string) (done []publishing.Finished, err error) {
	n := len(outcomes)
	posts, tokens, pubs := make([][16]byte, n), make([][16]byte, n), make([][16]byte, n)
	after, ended, proven := make([]int64, n), make([]bool, n), make([]bool, n)
	text := [8][]string{}
	for i, o := range outcomes {
		posts[i], tokens[i], pubs[i] = o.Post.UUID(), o.Token, o.Publication.UUID()
		after[i], ended[i], proven[i] = o.After.Milliseconds(), o.CallEnded, o.Proven
		for j, v := range []string{string(o.Result), o.Error, o.Code, o.ReleaseID, o.ReleaseURL, string(o.Ref), o.RootID, o.RootURL} {
			text[j] = append(text[j], v)
		}
	}
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(finish, posts, tokens, text[0], text[1], text[2], after, ended, pubs, text[3], text[4], text[5], text[6], text[7],
			lateGap.Milliseconds(), node, proven, publishing.MaybeSentAdvice).Query(into(&done, pgx.RowToStructByPos[publishing.Finished]))
	})
	return done, err
}

// MaxLooks is how many unknown outcomes are found at once.
const MaxLooks = 1000

//go:embed sql/find_unknown.sql
var findUnknown string

// FindUnknown lists unknown outcomes of the lease's shards whose time has come, those of each organization and of each
// destination in turn.
// except is left out, and of the resting destinations everything that has not been unknown for longer than
// unknownFor.
func (s *Store) FindUnknown(ctx context.Context, l publishing.Lease, except []publishing.PostID, resting []string, unknownFor time.Duration) (out []publishing.UnknownPost, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(findUnknown, l.Shards, l.Holder, uuids(except), MaxLooks, append([]string{}, resting...), unknownFor.Milliseconds()).
			Query(into(&out, pgx.RowToStructByPos[publishing.UnknownPost]))
	})
	return out, err
}

//go:embed sql/claim_unknown.sql
var claimUnknown string

// ClaimedUnknown is a post with an unknown outcome that this process asks about now.
type ClaimedUnknown struct {
	Org        tenancy.OrgID
	Post       publishing.PostID
	Token      uuid.UUID
	Committing time.Time // when its call was about to be made
	HolderGone bool      // the lease of the process that sent it is over
	Now        time.Time
}

// Look takes those of the unknown posts whose time has come; no other process looks at them for as long as hold.
func (s *Store) Look(ctx context.Context, posts []publishing.PostID, hold time.Duration) (out []ClaimedUnknown, err error) {
	err = s.db.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) {
		b.Queue(claimUnknown, uuids(posts), hold.Milliseconds()).Query(into(&out, pgx.RowToStructByPos[ClaimedUnknown]))
	})
	return out, err
}
