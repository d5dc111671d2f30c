package publishtest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/publishing"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/fixture"
)

// StoreRig is an organization for tests that call stores directly, with the lease of a process that
// owns every shard.
type StoreRig struct {
	*Base
	Org   tenancy.OrgID
	Lease dispatch.Lease
}

// NewStoreRig returns a StoreRig with its own database.
func NewStoreRig(t *testing.T) *StoreRig {
	t.Helper()
	return NewStoreRigOn(New(t))
}

// NewStoreRigOn returns a StoreRig for a new organization in b's database. Its lease replaces the
// leases of earlier rigs.
func NewStoreRigOn(b *Base) *StoreRig {
	b.Helper()
	return &StoreRig{Base: b, Org: b.Organization().Org, Lease: b.NewLease()}
}

// NewLease makes a new process the owner of every shard and returns its lease.
func (b *Base) NewLease() dispatch.Lease {
	b.Helper()
	l := dispatch.Lease{Holder: uuid.New()}
	b.Clock(`insert into node (id, home, address, roles, expires_at)
		values ($1, $1, '', '{}', now() + interval '1 hour')`, l.Holder)
	b.Clock(`update shard set owner = $1`, l.Holder)
	l.Shards = Value[[]int16](b, `select array_agg(shard order by shard) from shard`)
	return l
}

// AwaitLock returns once a statement waits for a lock. The statement is named as in its header,
// without "publishing.". AwaitLock ends the test if done has a result before that.
func (b *Base) AwaitLock(statement string, done <-chan error) {
	b.Helper()
	super, database := dbtest.Super(b.T), Value[string](b, `select current_database()::text`)
	for waits := 0; waits == 0; {
		if len(done) > 0 {
			b.Fatal("it was over before it waited:", <-done)
		}
		b.OK(super.QueryRow(b.Context(), `select count(*) from pg_stat_activity
			where datname = $1 and query like '-- publishing.' || $2 || '%' and wait_event_type = 'Lock'`,
			database, statement).Scan(&waits))
	}
}

// Exec executes a statement with the organization's role.
func (r *StoreRig) Exec(sql string, args ...any) {
	r.Helper()
	r.Tenant(r.Org, sql, args...)
}

// Count returns the number of the organization's rows in a table.
func (r *StoreRig) Count(table, where string, args ...any) (n int) {
	r.Helper()
	r.OK(r.DB.Read(r.Context(), r.Org.UUID(), func(b *pgx.Batch) {
		b.Queue("select count(*) from "+table+" where "+where, args...).
			QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
	}))
	return n
}

// InOrg runs fn in a transaction with the organization's role and returns its error.
func (r *StoreRig) InOrg(fn func(tx *db.Tx) error) error {
	return r.Store.InOrg(r.Context(), r.Org, fn)
}

// Channel connects a new channel. Its sealed credential is the text "sealed".
func (r *StoreRig) Channel() publishing.ChannelID {
	r.Helper()
	c := fixture.Channel(r.Org)
	r.ConnectChannel(c)
	return c.ID
}

// ChannelAt connects a new channel whose posts go to a server.
func (r *StoreRig) ChannelAt(server string) publishing.ChannelID {
	r.Helper()
	c := r.Channel()
	r.Clock(`update channel_queue set destination = $2 where channel_id = $1`, c, server)
	return c
}

// ConnectChannel connects a channel, for the first time or again. Its sealed credential is the text
// "sealed".
func (r *StoreRig) ConnectChannel(c publishing.Channel) {
	r.Helper()
	_, _, err := channelstore.ConnectChannel(r.Context(), r.Store, c, []byte("sealed"), nil, nil)
	r.OK(err)
}

// Disconnect disconnects a channel and reports whether it was connected.
func (r *StoreRig) Disconnect(c publishing.ChannelID) (found bool) {
	r.Helper()
	r.OK(r.InOrg(func(tx *db.Tx) (err error) {
		found, err = channelstore.Disconnect(r.Context(), tx, c, poststore.EndOfChannel)
		return err
	}))
	return found
}

// Post stores a queued post with one part, and another part for each delay. If in is negative, the
// post is overdue.
func (r *StoreRig) Post(channel publishing.ChannelID, in time.Duration, delays ...time.Duration) publishing.PostID {
	r.Helper()
	due := time.Now().Add(in).UTC()
	posts := fixture.Post(r.Org, channel, due, delays...)
	r.Insert(r.Org, posts...)
	if in < 0 { // inserting changes a time in the past to now
		r.Clock(`update post set due = $2 where id = $1`, posts[0].ID, due)
	}
	return posts[0].ID
}

// MakeDue makes a post due now.
func (r *StoreRig) MakeDue(post publishing.PostID) {
	r.Helper()
	r.Clock(`update post set due = now() - interval '1 second' where id = $1`, post)
}

// Exists reports whether a post is stored and has not been deleted.
func (r *StoreRig) Exists(post publishing.PostID) bool {
	r.Helper()
	roots, err := poststore.Root(r.Context(), r.Store, r.Org, post)
	r.OK(err)
	return len(roots) == 1
}

// Root returns a post, which must be the root of its thread.
func (r *StoreRig) Root(post publishing.PostID) publishing.Post {
	r.Helper()
	roots, err := poststore.Root(r.Context(), r.Store, r.Org, post)
	r.OK(err)
	if len(roots) != 1 {
		r.Fatalf("%d roots", len(roots))
	}
	return roots[0]
}

// WantState fails the test unless the post has the state.
func (r *StoreRig) WantState(post publishing.PostID, want publishing.State) {
	r.Helper()
	if got := r.Root(post).State; got != want {
		r.Errorf("the post is %s, not %s", got, want)
	}
}

// WantInTimeline ends the test unless the timeline of the post has the event.
func (r *StoreRig) WantInTimeline(post publishing.PostID, event publishing.EventKind) {
	r.Helper()
	events, err := poststore.Events(r.Context(), r.Store, r.Org, r.Root(post).Group)
	r.OK(err)
	for _, e := range events {
		if e.Kind == event {
			return
		}
	}
	r.Fatalf("the timeline has no %q: %+v", event, events)
}

// GroupOf returns the group of a post.
func (r *StoreRig) GroupOf(post publishing.PostID) publishing.GroupID {
	r.Helper()
	return Value[publishing.GroupID](r.Base, `select group_id from post where id = $1`, post)
}

// Delete deletes the group of a post.
func (r *StoreRig) Delete(post publishing.PostID) {
	r.Helper()
	group := r.GroupOf(post)
	r.OK(r.InOrg(func(tx *db.Tx) error {
		posts, err := poststore.LockGroup(r.Context(), tx, group)
		if err != nil {
			return err
		}
		return poststore.Delete(r.Context(), tx, posts)
	}))
}

// MoveTo moves the group of a post to a state, regardless of its current state.
func (r *StoreRig) MoveTo(post publishing.PostID, to publishing.State) {
	r.Helper()
	group := r.GroupOf(post)
	r.OK(r.InOrg(func(tx *db.Tx) error {
		old, err := poststore.LockGroup(r.Context(), tx, group)
		if err != nil {
			return err
		}
		_, err = poststore.Move(r.Context(), tx, old, to, false, "test")
		return err
	}))
}

// Rewrite replaces the content of a post like a person's edit, and keeps the id of its first part.
// It returns Conflict if the post is claimed or published.
func (r *StoreRig) Rewrite(post publishing.PostID, content func(channel publishing.ChannelID) []publishing.Post) error {
	return r.InOrg(func(tx *db.Tx) error {
		group, err := poststore.GroupOf(r.Context(), tx, post)
		if err != nil {
			return err
		}
		old, err := poststore.LockGroup(r.Context(), tx, group)
		if err != nil {
			return err
		}
		for _, p := range old {
			err := publishing.Move(p.State, publishing.StateQueue, p.OutcomeUnknown, p.Published, false)
			if err != nil {
				return err
			}
		}
		posts := content(old[0].Channel)
		posts[0].ID, posts[0].Group = post, group
		posts[0].Parts[0].ID = id.FromUUID[publishing.PartTag](post.UUID())
		return poststore.Rewrite(r.Context(), tx, group, old, NewPosts(posts))
	})
}

// Edit replaces a post with one that is due now and has two parts with the same text. See Rewrite
// for the errors.
func (r *StoreRig) Edit(post publishing.PostID, text string) error {
	return r.Rewrite(post, func(channel publishing.ChannelID) []publishing.Post {
		posts := fixture.Post(r.Org, channel, time.Now(), 0)
		for i := range posts[0].Parts {
			posts[0].Parts[i].Content = publishing.Content{Text: text}
		}
		return posts
	})
}
