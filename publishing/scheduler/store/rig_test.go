package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	channelstore "crier/publishing/channel/store"
	publishingdb "crier/publishing/db"
	poststore "crier/publishing/post/store"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/fixture"
	"crier/tests/tenant"
)

// rig is one organization on a database, and a lease over all its shards.
type rig struct {
	*testing.T
	db    *pg.DB
	store *publishingdb.DB
	org   tenancy.OrgID
	lease publishing.Lease
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigOn(t, dbtest.Open(t))
}

// newRigOn returns a rig for a new organization of a database.
func newRigOn(t *testing.T, db *pg.DB) *rig {
	t.Helper()
	r := &rig{T: t, db: db, store: publishingdb.New(db), org: tenant.New(t, db).Org}
	r.lease = r.newLease()
	return r
}

func (r *rig) ok(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) clock(sql string, args ...any) {
	r.Helper()
	r.ok(r.db.InRole(r.Context(), pg.Clock, func(tx pgx.Tx) error {
		_, err := tx.Exec(r.Context(), sql, args...)
		return err
	}))
}

// tenant executes a statement as the organization.
func (r *rig) tenant(sql string, args ...any) {
	r.Helper()
	r.ok(r.db.InOrg(r.Context(), r.org.UUID(), func(tx pgx.Tx) error {
		_, err := tx.Exec(r.Context(), sql, args...)
		return err
	}))
}

// value returns the only value of a row.
func value[T any](r *rig, sql string, args ...any) (v T) {
	r.Helper()
	r.ok(r.db.InRole(r.Context(), pg.Clock, func(tx pgx.Tx) error { return tx.QueryRow(r.Context(), sql, args...).Scan(&v) }))
	return v
}

// newLease makes a new process the owner of every shard.
func (r *rig) newLease() publishing.Lease {
	r.Helper()
	l := publishing.Lease{Holder: uuid.New()}
	r.clock(`insert into node (id, home, address, roles, expires_at) values ($1, $1, '', '{}', now() + interval '1 hour')`, l.Holder)
	r.clock(`update shard set owner = $1`, l.Holder)
	l.Shards = value[[]int16](r, `select array_agg(shard order by shard) from shard`)
	return l
}

func (r *rig) channel() publishing.ChannelID {
	r.Helper()
	c := fixture.Channel(r.org)
	r.connect(c)
	return c.ID
}

// connect connects a channel, for the first time or again.
func (r *rig) connect(c publishing.Channel) {
	r.Helper()
	_, _, err := channelstore.ConnectChannel(r.Context(), r.store, c, []byte("sealed"), nil, nil)
	r.ok(err)
}

// post creates a queued post with some parts. A negative delay makes it overdue.
func (r *rig) post(channel publishing.ChannelID, in time.Duration, delays ...time.Duration) publishing.PostID {
	r.Helper()
	due := time.Now().Add(in).UTC()
	posts := fixture.Post(r.org, channel, due, delays...)
	r.insert(posts...)
	if in < 0 { // an insert changes a time in the past to now
		r.clock(`update post set due = $2 where id = $1`, posts[0].ID, due)
	}
	return posts[0].ID
}

func (r *rig) insert(posts ...publishing.Post) {
	r.Helper()
	rows := written(posts)
	r.ok(r.inOrg(func(tx *publishingdb.Tx) error { return poststore.Insert(r.Context(), tx, rows) }))
}

func written(posts []publishing.Post) []poststore.NewPost {
	rows := make([]poststore.NewPost, len(posts))
	for i, p := range posts {
		rows[i] = poststore.NewPost{Post: p, By: "test"}
	}
	return rows
}

func (r *rig) inOrg(fn func(tx *publishingdb.Tx) error) error {
	return r.store.InOrg(r.Context(), r.org, fn)
}

func (r *rig) claim(permits int) []publishing.Claimed {
	r.Helper()
	return r.claimBy(r.lease, permits).Claimed
}

func (r *rig) claimBy(l publishing.Lease, permits int) publishing.ClaimResult {
	r.Helper()
	round, err := r.claimOf(l, publishing.NoClaimLimits(), publishing.Want{Org: r.org, Permits: permits})
	r.ok(err)
	return round
}

// rules are those of a claim that lasts a minute.
func rules() schedulerstore.ClaimRules {
	return schedulerstore.ClaimRules{Hold: time.Minute, MaxLate: 24 * time.Hour, Window: publishing.ClaimWindow, Node: "test"}
}

func (r *rig) claimOf(l publishing.Lease, limits publishing.ClaimLimits, wants ...publishing.Want) (publishing.ClaimResult, error) {
	return schedulerstore.Claim(r.Context(), r.store, l, wants, limits, 1, rules())
}

// upkeep does one kind of upkeep on the posts that need it, and returns their number.
func (r *rig) upkeep(l publishing.Lease, kind schedulerstore.Upkeep, after time.Duration) int {
	r.Helper()
	ids, err := schedulerstore.Find(r.Context(), r.store, l, kind, after, nil, schedulerstore.MaxUpkeep)
	r.ok(err)
	n, err := schedulerstore.Do(r.Context(), r.store, kind, ids, after, "test")
	r.ok(err)
	return n
}

func (r *rig) reap(l publishing.Lease) int {
	r.Helper()
	return r.upkeep(l, schedulerstore.UpkeepReap, 0)
}

func (r *rig) expire(l publishing.Lease) int {
	r.Helper()
	return r.upkeep(l, schedulerstore.UpkeepExpire, 24*time.Hour)
}

// age gives up posts that are prepared for longer than 6 hours and followers that wait for longer than one.
func (r *rig) age(l publishing.Lease) int {
	r.Helper()
	return r.upkeep(l, schedulerstore.UpkeepStuck, 6*time.Hour) + r.upkeep(l, schedulerstore.UpkeepOrphans, time.Hour)
}

// look claims the unknown outcomes whose time has come.
func (r *rig) look(l publishing.Lease, hold time.Duration) []schedulerstore.ClaimedUnknown {
	r.Helper()
	found, err := schedulerstore.FindUnknown(r.Context(), r.store, l, nil, nil, time.Hour)
	r.ok(err)
	ids := make([]publishing.PostID, len(found))
	for i, f := range found {
		ids[i] = f.Post
	}
	open, err := schedulerstore.ClaimUnknown(r.Context(), r.store, ids, hold)
	r.ok(err)
	return open
}

// mark asks for the marks of claims, which then last a minute.
func (r *rig) mark(claims ...publishing.Claimed) []bool {
	r.Helper()
	marks := make([]schedulerstore.Mark, len(claims))
	for i, c := range claims {
		marks[i] = schedulerstore.Mark{Post: c.Post, Token: c.Token, Publication: r.publication(c.Post)}
	}
	may, _, err := schedulerstore.MarkCommitting(r.Context(), r.store, marks, time.Minute, 15*time.Second)
	r.ok(err)
	return may
}

func (r *rig) finish(c publishing.Claimed, result publishing.Result, code string) []publishing.Finished {
	r.Helper()
	o := publishing.Outcome{Org: c.Org, Post: c.Post, Token: c.Token, Result: result, Code: code, Error: code, RootID: "release", After: time.Hour}
	if result != publishing.ResultRetry {
		o.After = 0
	}
	done, err := schedulerstore.Finish(r.Context(), r.store, []publishing.Outcome{o}, 30*time.Second, "test")
	r.ok(err)
	return done
}

func (r *rig) root(post publishing.PostID) publishing.Post {
	r.Helper()
	roots, err := poststore.Root(r.Context(), r.store, r.org, post)
	r.ok(err)
	if len(roots) != 1 {
		r.Fatalf("%d roots", len(roots))
	}
	return roots[0]
}

func (r *rig) expect(post publishing.PostID, want publishing.State) {
	r.Helper()
	if got := r.root(post).State; got != want {
		r.Errorf("the post is %s, not %s", got, want)
	}
}

func (r *rig) groupOf(post publishing.PostID) publishing.GroupID {
	r.Helper()
	return value[publishing.GroupID](r, `select group_id from post where id = $1`, post)
}

// delete deletes the group of a post.
func (r *rig) delete(post publishing.PostID) {
	r.Helper()
	group := r.groupOf(post)
	r.ok(r.inOrg(func(tx *publishingdb.Tx) error {
		posts, err := poststore.LockGroup(r.Context(), tx, group)
		if err != nil {
			return err
		}
		return poststore.Delete(r.Context(), tx, posts)
	}))
}

// publication returns the publication of the first part of a post.
func (r *rig) publication(post publishing.PostID) publishing.PublicationID {
	r.Helper()
	return r.partAt(post, 0)
}

// partAt returns the publication of one part of a post.
func (r *rig) partAt(post publishing.PostID, position int) publishing.PublicationID {
	r.Helper()
	return value[publishing.PublicationID](r, `select id from publication where post_id = $1
		and position = $2 + (select min(position) from publication where post_id = $1) order by number limit 1`, post, position)
}

// may asks for the mark of one call, and returns whether the call may be made.
func (r *rig) may(post publishing.PostID, token uuid.UUID, pub publishing.PublicationID) (bool, error) {
	for {
		may, busy, err := schedulerstore.MarkCommitting(r.Context(), r.store, []schedulerstore.Mark{{Post: post, Token: token, Publication: pub}}, time.Hour, time.Minute)
		if err != nil || !busy[0] { // like the sender, it asks again while another transaction has locked the post
			return err == nil && may[0], err
		}
	}
}
