package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	channelstore "crier/publishing/channel/store"
	"crier/publishing/db"
	notificationstore "crier/publishing/notification/store"
	poststore "crier/publishing/post/store"
	"crier/publishing/purge"
	purgestore "crier/publishing/purge/store"
	"crier/publishing/scheduler/dispatch"
	webhookstore "crier/publishing/webhook/store"
	"crier/tests/dbtest"
	"crier/tests/fixture"
)

const day = 24 * time.Hour

// keeps is the age at which the rules of these tests delete rows; old is a day more, recent a day
// less.
const (
	keeps  = 30 * day
	old    = keeps + day
	recent = keeps - day
)

func (r *rig) pruner() *purge.Pruner {
	return purge.NewPruner(purge.Retention{Keys: keeps, Events: keeps, Deleted: keeps}, r.Store)
}

func (r *rig) prune(kind purge.Prunable) int {
	r.Helper()
	n, err := r.pruner().Prune(r.Context(), kind)
	r.OK(err)
	return n
}

// published returns a published post with a further part for each delay.
func (r *rig) published(channel publishing.ChannelID, delays ...time.Duration) publishing.PostID {
	r.Helper()
	post := r.Post(channel, -time.Second, delays...)
	for _, c := range r.Claim(10) {
		if c.Post == post {
			r.Mark(c)
			if done := r.FinishOne(r.Outcome(c, dispatch.ResultPublished, "release")); done.State != publishing.StatePublished {
				r.Fatalf("the post is not published: %+v", done)
			}
			return post
		}
	}
	r.Fatalf("%s is not claimed", post)
	return post
}

// deleted marks the posts of a group as deleted for the given time.
func (r *rig) deleted(post publishing.PostID, ago time.Duration) {
	r.Helper()
	r.Exec(`update post set deleted_at = now() - $2 * interval '1 millisecond', updated_at = now() - $2 * interval '1 millisecond'
		where group_id = (select group_id from post where id = $1)`, post, ago.Milliseconds())
}

// aged sets the age of a post's group and of the post's timeline.
func (r *rig) aged(post publishing.PostID, ago time.Duration) {
	r.Helper()
	r.Exec(`update post set updated_at = now() - $2 * interval '1 millisecond' where group_id = (select group_id from post where id = $1)`, post, ago.Milliseconds())
	r.Exec(`update post_event set at = now() - $2 * interval '1 millisecond' where post_id = $1`, post, ago.Milliseconds())
}

// deletedCase is a post and the number of rows of its group that a prune keeps.
type deletedCase struct {
	post func(r *rig) publishing.PostID
	kept int
}

// pruneDeleted creates the posts of the cases, prunes once, and checks the number of deleted posts
// and what is left of each group. It returns the posts.
func (r *rig) pruneDeleted(cases map[string]deletedCase, deleted int) map[string]publishing.PostID {
	r.Helper()
	posts := map[string]publishing.PostID{}
	for name, c := range cases {
		posts[name] = c.post(r)
	}
	if n := r.prune(purgestore.PruneDeleted); n != deleted {
		r.Errorf("%d posts were deleted, want %d", n, deleted)
	}
	for name, c := range cases {
		if n := r.Count("post", "group_id in (select group_id from post where id = $1)", posts[name]); n != c.kept {
			r.Errorf("%s: %d rows are left, want %d", name, n, c.kept)
		}
		for _, table := range []string{"part", "publication", "post_event"} {
			if n := r.Count(table, "post_id = $1", posts[name]); c.kept == 0 && n != 0 {
				r.Errorf("%s: %d rows of %s are left", name, n, table)
			}
		}
	}
	return posts
}

func TestPrune_DeletedPosts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	posts := r.pruneDeleted(map[string]deletedCase{
		"old": {
			post: func(r *rig) publishing.PostID {
				p := r.published(r.Channel())
				r.deleted(p, old)
				return p
			},
		},
		"deleted before it was sent": {
			post: func(r *rig) publishing.PostID {
				p := r.Post(r.Channel(), day)
				r.deleted(p, old)
				return p
			},
		},
		"recent": {
			post: func(r *rig) publishing.PostID {
				p := r.published(r.Channel())
				r.deleted(p, recent)
				return p
			},
			kept: 1,
		},
		"not deleted": {
			post: func(r *rig) publishing.PostID {
				p := r.published(r.Channel())
				r.aged(p, 10*keeps)
				return p
			},
			kept: 1,
		},
		"being published": {
			post: func(r *rig) publishing.PostID {
				p := r.Post(r.Channel(), -time.Second)
				r.Claim(10)
				r.deleted(p, old)
				return p
			},
			kept: 1,
		},
		"outcome not known": {
			post: func(r *rig) publishing.PostID {
				p := r.Post(r.Channel(), -time.Second)
				c := r.Claim(10)[0]
				r.Mark(c)
				r.Finish(c, dispatch.ResultUnknown, "")
				r.deleted(p, old)
				return p
			},
			kept: 1,
		},
		"given up without knowing its outcome": {
			post: func(r *rig) publishing.PostID {
				p := r.Post(r.Channel(), -time.Second)
				c := r.Claim(10)[0]
				r.Mark(c)
				r.Finish(c, dispatch.ResultUnknown, "")
				r.Finish(c, dispatch.ResultError, publishing.CodeOutcomeUnknown)
				r.deleted(p, old)
				return p
			},
			kept: 1,
		},
		"a call of an earlier round not accounted for": {
			post: func(r *rig) publishing.PostID {
				p := r.published(r.Channel())
				r.Exec(`update publication set phase = 'committing', maybe_sent = true, release_id = null, done_at = null where post_id = $1`, p)
				r.deleted(p, old)
				return p
			},
			kept: 1,
		},
	}, 2)
	if n := r.Count("publication", "post_id = $1 and release_id = 'release'", posts["not deleted"]); n != 1 {
		t.Error("the release id of a post that exists is gone")
	}
}

func TestPrune_DeletedThreads(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.pruneDeleted(map[string]deletedCase{
		"a thread": {
			post: func(r *rig) publishing.PostID {
				p := r.published(r.Channel(), time.Hour)
				r.deleted(p, old)
				return p
			},
		},
		"a thread whose later part may be out": {
			post: func(r *rig) publishing.PostID {
				p := r.published(r.Channel(), time.Hour)
				r.Exec(`update post set state = 'ERROR', due = now(), error = 'x', maybe_sent = true, outcome_unknown = true where after_post = $1`, p)
				r.deleted(p, old)
				return p
			},
			kept: 2,
		},
		"a part that an edit replaced, of a post that exists": {
			post: func(r *rig) publishing.PostID {
				p := r.published(r.Channel(), time.Hour)
				r.deleted(p, old)
				r.Exec(`update post set after_post = null, due = publish_date, state = 'DRAFT' where after_post = $1`, p)
				r.Exec(`update post set deleted_at = null where id = $1`, p)
				return p
			},
			kept: 2,
		},
		"with a part that an edit replaced": {
			post: func(r *rig) publishing.PostID {
				p := r.published(r.Channel())
				r.dropped(p, 1)
				r.deleted(p, old)
				return p
			},
		},
		"with a part that an edit replaced and that may be out": {
			post: func(r *rig) publishing.PostID {
				p := r.published(r.Channel())
				r.dropped(p, 1)
				r.Exec(`update post set state = 'ERROR', error = 'x', maybe_sent = true, outcome_unknown = true where delay_minutes > 0
					and group_id = (select group_id from post where id = $1)`, p)
				r.deleted(p, old)
				return p
			},
			kept: 2,
		},
		"with two parts that edits replaced, one of which may be out": {
			post: func(r *rig) publishing.PostID {
				p := r.published(r.Channel())
				r.dropped(p, 2)
				r.Exec(`update post set state = 'ERROR', error = 'x', maybe_sent = true, outcome_unknown = true where id = (
					select id from post where delay_minutes > 0 and group_id = (select group_id from post where id = $1) limit 1)`, p)
				r.deleted(p, old)
				return p
			},
			kept: 3,
		},
	}, 4)
}

func TestPrune_SeriesKeepsWhatItNeeds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	channel := r.Channel()
	root := r.Repeated(channel, publishing.Repeat{Days: 1}, "UTC")
	r.End(root, dispatch.ResultPublished, "")
	second := publishing.Occurrence(root, 1)
	if !r.Exists(second) {
		t.Fatal("the second occurrence is not written")
	}
	var skipped publishing.GroupID
	r.OK(r.InOrg(func(tx *db.Tx) (err error) { // a later occurrence is deleted
		skipped, _, err = poststore.Materialize(t.Context(), tx, publishing.Occurrence(root, 3).UUID(), false)
		return err
	}))
	later := publishing.Occurrence(root, 3)
	r.deleted(root, old)
	r.deleted(later, old)
	r.Exec(`update post set deleted_at = now() - interval '1 year' where group_id = (select template from series where id = $1)`, root)
	if n := r.prune(purgestore.PruneDeleted); n != 1 || r.Count("post", "id = $1", root) != 0 {
		t.Fatalf("%d posts were deleted, want the first occurrence", n)
	}
	if r.Count("post", "group_id = $1", skipped) != 1 {
		t.Fatal("an occurrence that was left out is forgotten: it would be written again")
	}
	r.MakeDue(second)
	r.End(second, dispatch.ResultPublished, "")
	if third := publishing.Occurrence(root, 2); !r.Exists(third) {
		t.Fatal("the series does not go on")
	}
	r.deleted(second, old)
	r.Exec(`update series set stopped_at = now(), stopped_for = 'deleted' where id = $1`, root)
	r.WriteOccurrences()
	if n := r.prune(purgestore.PruneDeleted); n != 2 || r.Count("post", "id = $1", later) != 1 {
		t.Fatalf("%d posts were deleted, want the template and the occurrence behind the current one", n)
	}
	r.deleted(publishing.Occurrence(root, 2), old)
	if n := r.prune(purgestore.PruneDeleted); n != 2 || r.Count("post", "true") != 0 {
		t.Fatalf("%d posts were deleted, want all that were left of a series that has stopped", n)
	}
}

func TestPrune_Events(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ended, fresh, planned, draft, unclear := r.published(r.Channel()), r.published(r.Channel()), r.Post(r.Channel(), 400*day), r.Post(r.Channel(), day), r.published(r.Channel())
	moved := r.published(r.Channel())
	r.Exec(`update post set state = 'DRAFT' where id = $1`, draft)
	r.Exec(`update post set state = 'ERROR', error = 'x', maybe_sent = true, outcome_unknown = true where id = $1`, unclear)
	for _, p := range []publishing.PostID{ended, planned, draft, unclear, moved} {
		r.aged(p, old)
	}
	r.aged(fresh, recent)
	r.Exec(`update post set updated_at = now() where id = $1`, moved) // it has just ended again
	want := r.Count("post_event", "post_id = $1", ended)
	if n := r.prune(purgestore.PruneEvents); n != want {
		t.Errorf("%d events were deleted, want the %d of the post that ended long ago", n, want)
	}
	for name, p := range map[string]publishing.PostID{"recent": fresh, "planned": planned, "a draft": draft, "with an unknown outcome": unclear, "ended lately": moved} {
		if r.Count("post_event", "post_id = $1", p) == 0 {
			t.Errorf("the timeline of a post is gone: %s", name)
		}
	}
	if r.Count("post_event", "post_id = $1", ended) != 0 || r.Count("publication", "post_id = $1 and release_id is not null", ended) != 1 {
		t.Error("a post that ended long ago has its events, or lost its release id")
	}
}

func TestPrune_Keys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	key := func(name string, ago time.Duration, posts ...publishing.PostID) {
		var answers []string
		for _, p := range posts {
			answers = append(answers, `{"post":"`+p.String()+`"}`)
		}
		r.Exec(`insert into idempotency (org_id, key, request_hash, body, created_at) values ($1, $2, 'x', $3, now() - $4 * interval '1 millisecond')`,
			r.Org, name, "["+strings.Join(answers, ",")+"]", ago.Milliseconds())
	}
	ended := func(ago time.Duration, delays ...time.Duration) publishing.PostID {
		p := r.published(r.Channel(), delays...)
		r.aged(p, ago)
		return p
	}
	planned := r.Post(r.Channel(), 400*day)
	r.aged(planned, old)
	removed := ended(old)
	r.deleted(removed, recent)
	draft := r.Post(r.Channel(), day)
	r.Exec(`update post set state = 'DRAFT' where id = $1`, draft)
	r.aged(draft, old)
	repeated := r.Repeated(r.Channel(), publishing.Repeat{Days: 1}, "UTC")
	r.End(repeated, dispatch.ResultPublished, "")
	r.aged(repeated, old)

	key("ended long ago", old, ended(old))
	key("of a post that is gone", old, id.New[publishing.PostTag]())
	key("without posts", old)
	key("kept: recent", recent, ended(old))
	key("kept: scheduled for later", old, planned)
	key("kept: published lately", old, ended(recent))
	key("kept: deleted lately", old, removed)
	key("kept: a draft", old, draft)
	key("kept: one of two is scheduled", old, ended(old), planned)
	key("kept: a later part waits", old, ended(old, time.Hour))
	key("kept: repeated", old, repeated)
	if n := r.prune(purgestore.PruneKeys); n != 3 {
		t.Errorf("%d keys were deleted, want 3", n)
	}
	if kept, lost := r.Count("idempotency", "key like 'kept: %'"), r.Count("idempotency", "key not like 'kept: %'"); kept != 8 || lost != 0 {
		t.Errorf("%d of 8 keys are kept, and %d that are of no use", kept, lost)
	}
}

func TestPrune_Connects(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hashOf := func(n int) []byte { return []byte(fmt.Sprintf("%032d", n)) }
	for n, in := range []time.Duration{-old, -time.Second, time.Hour} {
		r.OK(channelstore.SaveState(t.Context(), r.Store, hashOf(n), channelstore.ConnectState{Org: r.Org, Connector: "sandbox", ExpiresAt: time.Now().Add(in)}))
	}
	if n := r.prune(purgestore.PruneConnects); n != 2 || r.Count("connect_state", "hash = $1", hashOf(2)) != 1 {
		t.Errorf("%d connects were deleted, want the two whose time is over", n)
	}
}

func TestPrune_UploadAddresses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n, ago := range []time.Duration{old, 26 * time.Hour, 24*time.Hour + time.Minute, time.Minute, -time.Minute} {
		r.OK(r.InOrg(func(tx *db.Tx) error {
			_, err := tx.Exec(t.Context(), `insert into upload_address (org_id, hash, via, credential_hash, created_at, expires_at, media_id)
				values ($1, sha256($2), 'key', sha256('key'), now(), now() - $3 * interval '1 millisecond', case when $4 then gen_random_uuid() end)`,
				r.Org, []byte{byte(n)}, ago.Milliseconds(), n%2 == 0)
			return err
		}))
	}
	if n := r.prune(purgestore.PruneUploads); n != 2 || r.Count("upload_address", "expires_at > now() - interval '25 hours'") != 3 {
		t.Errorf("%d addresses were deleted, want the two that expired more than 25 hours ago", n)
	}
}

func TestPrune_NotificationsByTheirLastEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	add := func(ago time.Duration) {
		r.OK(r.InOrg(func(tx *db.Tx) error {
			return notificationstore.AddNotification(r.Context(), tx, fixture.Incident(r.Channel(), time.Now().Add(-ago)))
		}))
	}
	for range 3 {
		add(91 * day)
	}
	add(89 * day)
	pruner := purge.NewPruner(purge.Retention{Notifications: 90 * day}, r.Store)
	n, err := pruner.Prune(t.Context(), purgestore.PruneNotifications)
	r.OK(err)
	if left := r.Count("notification", "true"); n != 3 || left != 1 {
		t.Errorf("%d notifications were deleted and %d are left, want 3 and 1", n, left)
	}
}

// An earlier secret is kept until an hour after its end, when no process can still sign with it.
func TestPrune_EndedSecrets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	hook := r.Webhook()
	now := time.Now()
	for _, end := range []time.Duration{-2 * time.Hour, -30 * time.Minute, time.Hour} {
		r.OK(r.InOrg(func(tx *db.Tx) error {
			return webhookstore.RotateWebhook(r.Context(), tx, hook, []byte("sealed"), now.Add(end), now)
		}))
	}
	if n := r.prune(purgestore.PruneSecrets); n != 1 {
		t.Errorf("%d secrets were deleted, want 1", n)
	}
	if n := r.Count("webhook_old_key", "ends_at > now() - interval '1 hour'"); n != 2 {
		t.Errorf("%d secrets are left, want those that sign or ended just now", n)
	}
}

// deletedPosts makes posts that may be pruned, each with one row in post, part and post_event.
func (r *rig) deletedPosts(count int) []publishing.PostID {
	r.Helper()
	var posts []publishing.Post
	ids := make([]publishing.PostID, count)
	channel := r.Channel()
	for i := range ids {
		posts = append(posts, fixture.Post(r.Org, channel, time.Now().Add(time.Hour).UTC())...)
		ids[i] = posts[i].ID
	}
	r.Insert(r.Org, posts...)
	r.Exec(`update post set deleted_at = now() - interval '1 year' where org_id = $1`, r.Org)
	return ids
}

// dropped adds posts to a group as if edits had replaced them a year ago, each with an event.
func (r *rig) dropped(post publishing.PostID, count int) {
	r.Helper()
	r.Exec(`with p as (
			insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date, delay_minutes, deleted_at)
			select org_id, gen_random_uuid(), group_id, channel_id, shard, 'DRAFT', now(), now(), 5, now() - interval '1 year'
			from post, generate_series(1, $2::int) where id = $1 returning org_id, id)
		insert into post_event (org_id, post_id, event) select org_id, id, 'written' from p`, post, count)
}

func TestPrune_GoesThroughBatches(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.deletedPosts(450) // deleted at the same time, so that batches end between equal times
	r.deleted(r.Post(r.Channel(), day), recent)
	if n := r.prune(purgestore.PruneDeleted); n != 450 || r.Count("post", "true") != 1 {
		t.Errorf("%d posts were deleted, want 450", n)
	}
}

// harm makes the database execute body when the post is deleted.
func (r *rig) harm(post publishing.PostID, body string) {
	r.Helper()
	owner, err := pgx.Connect(r.Context(), r.Address)
	r.OK(err)
	r.Cleanup(func() { _ = owner.Close(context.WithoutCancel(r.Context())) })
	for _, sql := range []string{
		`create function harm() returns trigger language plpgsql as $$ begin if old.id = '` + post.String() + `' then ` + body + ` end if; return old; end $$`,
		`create trigger harm before delete on post for each row execute function harm()`,
	} {
		_, err := owner.Exec(r.Context(), sql)
		r.OK(err)
	}
}

func TestPrune_DeletesOthersDespiteFailingRow(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]struct{ body, code string }{
		"refused":  {body: `raise exception 'no' using errcode = 'P0001';`, code: "P0001"},
		"too slow": {body: `perform pg_sleep(60);`, code: "57014"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			bad := r.deletedPosts(3)[0]
			r.harm(bad, harm.body)
			n, err := r.pruner().Prune(t.Context(), purgestore.PruneDeleted)
			if n != 2 || r.Count("post", "id = $1", bad) != 1 {
				t.Errorf("%d of the 2 other posts were deleted", n)
			}
			if err == nil || !strings.Contains(err.Error(), harm.code) || !strings.Contains(err.Error(), bad.String()) {
				t.Errorf("the error does not name the row and why: %v", err)
			}
		})
	}
}

// Every edit of a thread leaves deleted posts in its group, so a group may have any number of them.
func TestPrune_DeletesOthersDespiteLargeGroup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.deletedPosts(60)
	bad, large, living := ids[0], ids[1], ids[2]
	r.dropped(bad, 150)
	r.dropped(large, 5000)
	r.dropped(living, 500)
	r.Exec(`update post set deleted_at = null where id = $1`, living)
	r.harm(bad, `raise exception 'no' using errcode = 'P0001';`)
	_, err := r.pruner().Prune(t.Context(), purgestore.PruneDeleted)
	others := `group_id not in (select group_id from post where id in ($1, $2))`
	if n := r.Count("post", others, bad, living); n != 0 {
		t.Errorf("%d posts of the other deleted groups are left", n)
	}
	for name, p := range map[string]publishing.PostID{"that cannot be deleted": bad, "that exists": living} {
		if r.Count("post", "id = $1", p) != 1 {
			t.Errorf("the post %s is gone", name)
		}
	}
	if n := r.Count("post", "group_id = (select group_id from post where id = $1)", living); n != 501 {
		t.Errorf("%d posts are left of a group that exists, want 501", n)
	}
	if err == nil || !strings.Contains(err.Error(), "1 items could not be changed") || !strings.Contains(err.Error(), bad.String()) {
		t.Errorf("the group that cannot be deleted is not tried as a whole: %v", err)
	}
}

// Followers are deleted with the root of their group, although a statement deletes a limited number
// of posts.
func TestPrune_GroupsOverTheLimitOfAStatement(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	channel := r.Channel()
	var posts []publishing.Post
	for range 100 {
		posts = append(posts, fixture.Post(r.Org, channel, time.Now().Add(time.Hour).UTC(), slices.Repeat([]time.Duration{time.Hour}, 24)...)...)
	}
	r.Insert(r.Org, posts...)
	r.Exec(`update post set deleted_at = now() - interval '1 year'`)
	if n := r.prune(purgestore.PruneDeleted); n != 2500 {
		t.Errorf("%d posts were deleted, want the 2500 of 100 groups", n)
	}
}

func TestFindOld_FindsNothingForExistingPost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.dropped(r.Post(r.Channel(), day), 300)
	rows, err := purgestore.FindOld(t.Context(), r.Store, purgestore.PruneDeleted, keeps, purgestore.OldRow{}, 100)
	r.OK(err)
	if len(rows) != 0 {
		t.Errorf("%d of what edits dropped are found, though their post exists", len(rows))
	}
}

// deadline is a context that ends with DeadlineExceeded when it is canceled.
type deadline struct{ context.Context }

func (d deadline) Err() error {
	if d.Context.Err() == nil {
		return nil
	}
	return context.DeadlineExceeded
}

func TestPrune_ContinuesAfterKeptRows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.deletedPosts(250)
	r.Exec(`update post set state = 'ERROR', error = 'x', maybe_sent = true, outcome_unknown = true`)
	r.deletedPosts(3)
	pruner := r.pruner()
	ctx, over := context.WithCancel(t.Context())
	defer over()
	r.OK(r.DB.InOrg(t.Context(), r.Org.UUID(), func(tx pgx.Tx) error {
		// The first delete waits for this lock, which must not end because this transaction is
		// idle.
		if _, err := tx.Exec(t.Context(), `set local idle_in_transaction_session_timeout = 0; lock table part in exclusive mode`); err != nil {
			return err
		}
		var n int
		done := make(chan error, 1)
		go func() {
			var err error
			n, err = pruner.Prune(deadline{Context: ctx}, purgestore.PruneDeleted)
			done <- err
		}()
		r.AwaitLock("PruneDeleted", done)
		over()
		if err := <-done; n != 0 || err != nil {
			t.Errorf("a run that its deadline ended returned %d, %v", n, err)
		}
		return nil
	}))
	r.Exec(`update post set state = 'DRAFT', error = null, maybe_sent = false, outcome_unknown = false`)
	// The next run deletes the rest after the previous one, the run after it starts over.
	for _, want := range []int{53, 200} {
		if n, err := pruner.Prune(t.Context(), purgestore.PruneDeleted); n != want || err != nil {
			t.Errorf("%d posts were deleted, want %d: %v", n, want, err)
		}
	}
}

func TestPrune_SkipsLockedRows(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ids := r.deletedPosts(3)
	r.OK(r.DB.InOrg(t.Context(), r.Org.UUID(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `select 1 from post where id = $1 for key share`, ids[1]); err != nil {
			return err
		}
		if n := r.prune(purgestore.PruneDeleted); n != 2 {
			t.Errorf("%d posts were deleted beside one that is locked, want 2", n)
		}
		return nil
	}))
	if n := r.prune(purgestore.PruneDeleted); n != 1 {
		t.Errorf("the post that was locked is not deleted later: %d", n)
	}
}

func TestPrune_ByTwoProcessesAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.deletedPosts(500)
	var all [3]int
	var group errgroup.Group
	for i := range all {
		own := dbtest.OpenURL(t, r.Address)
		group.Go(func() (err error) {
			all[i], err = purge.NewPruner(purge.Retention{Deleted: keeps}, db.New(own)).Prune(t.Context(), purgestore.PruneDeleted)
			return err
		})
	}
	r.OK(group.Wait())
	// This prunes the rows that one process had locked when another one read them.
	r.prune(purgestore.PruneDeleted)
	if left, sum := r.Count("post", "true"), all[0]+all[1]+all[2]; left != 0 || sum > 500 {
		t.Errorf("%d posts are left and %d were counted", left, sum)
	}
}

func TestPrune_KilledProcessLeavesNoPartialPost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	// The sleep lets the kill happen during its batch.
	r.harm(r.deletedPosts(500)[300], `perform pg_sleep(1);`)
	doomed := dbtest.OpenURL(t, r.Address)
	done := make(chan error, 1)
	go func() {
		_, err := purge.NewPruner(purge.Retention{Deleted: keeps}, db.New(doomed)).Prune(context.WithoutCancel(t.Context()), purgestore.PruneDeleted)
		done <- err
	}()
	super := dbtest.Super(t)
	var database string
	r.OK(r.DB.Pool(pg.Retention).QueryRow(t.Context(), "select current_database()").Scan(&database))
	for killed := 0; killed == 0; {
		// Until the process has ended, the next run skips the rows that it has locked.
		r.OK(super.QueryRow(t.Context(), `select count(*) filter (where pg_terminate_backend(pid, 60000)) from pg_stat_activity
			where datname = $1 and query like '-- publishing.PruneDeleted%' and wait_event = 'PgSleep'`, database).Scan(&killed))
		if killed == 0 && len(done) > 0 {
			t.Fatal("it was over before it could be killed:", <-done)
		}
	}
	if err := <-done; err == nil {
		t.Error("a killed connection is no error")
	}
	left := r.Count("post", "true")
	if left == 0 {
		t.Error("nothing is left to do for the next run")
	}
	if parts, events := r.Count("part", "true"), r.Count("post_event", "true"); parts != left || events != left {
		t.Errorf("%d posts are left with %d parts and %d events", left, parts, events)
	}
	r.prune(purgestore.PruneDeleted)
	if n := r.Count("post", "true"); n != 0 {
		t.Errorf("the next run leaves %d posts", n)
	}
}

// The role's policies apply to every statement.
func TestPrune_PoliciesForbidOtherDeletes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	unknown, living, gone := r.Post(r.Channel(), -time.Second), r.Post(r.Channel(), day), r.Post(r.Channel(), day)
	r.Claim(10)
	r.deleted(unknown, old)
	r.deleted(gone, old)
	r.Exec(`insert into idempotency (org_id, key, request_hash, body) values ($1, 'today', 'x', '[]')`, r.Org)
	retention := func(sql string) (n int64, err error) {
		err = r.DB.InRole(t.Context(), pg.Retention, func(tx pgx.Tx) error {
			tag, err := tx.Exec(t.Context(), sql)
			n = tag.RowsAffected()
			return err
		})
		return n, err
	}
	for sql, want := range map[string]int64{"delete from idempotency": 0, "delete from connect_state": 0, "delete from post_event": 1} {
		if n, err := retention(sql); err != nil || n != want {
			t.Errorf("%s: %d rows, want %d: %v", sql, n, want, err)
		}
	}
	if n, err := retention("delete from post"); err != nil || n != 1 || r.Count("post", "id in ($1, $2)", unknown, living) != 2 {
		t.Errorf("%d posts were deleted, want the one that is deleted and not claimed: %v", n, err)
	}
	for _, sql := range []string{
		"update post set org_id = '" + uuid.NewString() + "'", "update idempotency set org_id = '" + uuid.NewString() + "'",
		"select settings from post", "select content from part", "select credential from channel", "delete from publication", "delete from channel",
	} {
		if _, err := retention(sql); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s ends with %v, want permission denied (42501)", sql, err)
		}
	}
}
