package store_test

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tests/fixture"
)

// rewrite replaces the content of a post as an edit by a person does, and keeps the id of its first part. It returns
// false when the post is claimed or published.
func (r *rig) rewrite(post publishing.PostID, content func(channel publishing.ChannelID) []publishing.Post) error {
	return r.inOrg(func(tx *db.Tx) error {
		group, err := poststore.GroupOf(r.Context(), tx, post)
		if err != nil {
			return err
		}
		old, err := poststore.LockGroup(r.Context(), tx, group)
		if err != nil {
			return err
		}
		for _, p := range old {
			if err := publishing.Move(p.State, publishing.StateQueue, p.OutcomeUnknown, p.Published, false); err != nil {
				return err
			}
		}
		posts := content(old[0].Channel)
		posts[0].ID, posts[0].Group = post, group
		posts[0].Parts[0].ID = id.FromUUID[publishing.PartTag](post.UUID())
		return poststore.Rewrite(r.Context(), tx, group, old, written(posts))
	})
}

func (r *rig) edit(post publishing.PostID, text string) error {
	return r.rewrite(post, func(channel publishing.ChannelID) []publishing.Post {
		posts := fixture.Post(r.org, channel, time.Now(), 0)
		for i := range posts[0].Parts {
			posts[0].Parts[i].Content = publishing.Content{Text: text}
		}
		return posts
	})
}

// Edits and deletions run beside a claim and its mark: a post that was allowed to change is not sent as it was before.
func TestRewrite_RefusedOnceSendBegins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 60 {
		c := r.channel()
		post := r.post(c, -time.Second, 0)
		var race sync.WaitGroup
		var sent string
		var edited error
		race.Go(func() {
			for _, x := range r.claim(1) {
				w := r.work(x.Post)
				ok, err := r.may(x.Post, x.Token, w.Parts[0].ID)
				if err != nil {
					t.Error(err)
				}
				if ok {
					sent = w.Parts[0].Content.Text
				}
			}
		})
		race.Go(func() {
			time.Sleep(time.Duration(n%12) * 500 * time.Microsecond)
			edited = r.edit(post, "new")
		})
		race.Wait()
		switch {
		case edited == nil && sent == "part 0":
			t.Fatal("the old text is sent after an edit was accepted")
		case edited != nil && (!fault.Is(edited, fault.Conflict) || sent != "part 0"):
			t.Fatalf("the edit was refused (%v), and %q is sent", edited, sent)
		}
	}
}

// The lock waits for the statement that stores the part, and the read after it must not use an older snapshot.
func TestLockGroup_SeesPartPublishedWhileItWaited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.post(r.channel(), -time.Second, 0)
	got := r.claim(1)
	w := r.work(post)
	ref := "out"
	w.Parts[0].ReleaseID, w.Parts[0].URL, w.Parts[0].Ref = &ref, &ref, json.RawMessage(`{}`)
	var waiting sync.WaitGroup
	var edited error
	r.ok(r.db.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `update publication set phase = 'done', release_id = 'out', done_at = now() where id = $1`, w.Parts[0].ID); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), `update post set state = 'QUEUE', claim_token = null, claim_holder = null, claim_until = null, phase = null where id = $1`, got[0].Post); err != nil {
			return err
		}
		waiting.Go(func() { edited = r.edit(post, "new") })
		return r.blocked(tx)
	}))
	waiting.Wait()
	if !fault.Is(edited, fault.Conflict) {
		t.Fatalf("a thread whose first part is out may be edited: %v", edited)
	}
}

// blocked returns once another transaction waits for a lock of this one.
func (r *rig) blocked(tx pgx.Tx) error {
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var n int
		if err := tx.QueryRow(r.Context(), `select count(*) from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))`).Scan(&n); err != nil || n > 0 {
			return err
		}
	}
	r.Error("nobody waits")
	return nil
}

// A part with a delay that keeps its id has another publication after the edit, of the round of its root.
func TestRewrite_KeepsPartIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.channel()
	posts := fixture.Post(r.org, c, time.Now(), time.Hour)
	r.insert(posts...)
	out := func() {
		r.Helper()
		for range 2 {
			for _, x := range r.claim(1) {
				w := r.work(x.Post)
				if len(w.Parts) != 1 || len(w.Before) != w.Parts[0].Position {
					t.Fatalf("loaded %+v, want one part and those before it", w)
				}
				o := publishing.Outcome{Org: x.Org, Post: x.Post, Token: x.Token, Result: publishing.ResultPublished, Publication: w.Parts[0].ID, ReleaseID: "out", RootID: "out"}
				if done, err := schedulerstore.Finish(t.Context(), r.store, []publishing.Outcome{o}, time.Second, "test"); err != nil || len(done) != 1 {
					t.Fatalf("finish returns %+v (%v), want one result", done, err)
				}
				r.clock(`update post set due = now() where group_id = $1 and state = 'QUEUE'`, posts[0].Group)
			}
		}
	}
	out()
	for range 2 { // every edit publishes both parts again, with the same part ids
		r.ok(r.inOrg(func(tx *db.Tx) error {
			old, err := poststore.LockGroup(t.Context(), tx, posts[0].Group)
			if err != nil {
				return err
			}
			again := fixture.Post(r.org, c, time.Now(), time.Hour)
			again[0].ID, again[0].Parts[0].ID, again[1].After, again[1].Parts[0].ID = posts[0].ID, posts[0].Parts[0].ID, posts[0].ID, posts[1].Parts[0].ID
			again[0].Group, again[1].Group = posts[0].Group, posts[0].Group
			return poststore.Rewrite(t.Context(), tx, posts[0].Group, old, written(again))
		}))
		out()
		r.expect(posts[0].ID, publishing.StatePublished)
	}
	if rounds := value[int](r, `select count(*) from publication where part_id = $1 and phase = 'done'`, posts[1].Parts[0].ID); rounds != 3 {
		t.Fatalf("the delayed part went out %d times", rounds)
	}
}
