package store_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
	"crier/tests/fixture"
	"crier/tests/publishtest"
)

// The scheduler finds posts by their ids alone, so an organization must not be able to use the id
// of another organization's post.
func TestInsert_RefusesIDOfAnotherOrganization(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), time.Hour)
	other := r.another()
	mine := fixture.Post(other.Org, other.Channel(), time.Now().Add(time.Hour))
	mine[0].ID = post
	mine[0].Parts[0].ID = id.New[publishing.PartTag]()
	err := other.InOrg(func(tx *db.Tx) error { return poststore.Insert(t.Context(), tx, publishtest.NewPosts(mine)) })
	if pe := (*pgconn.PgError)(nil); !errors.As(err, &pe) || pe.Code != "23505" {
		t.Errorf("taken twice: %v", err)
	}
}

// Edits and deletions run concurrently with a claim and its mark. A post whose change was accepted
// is not sent as it was before.
func TestRewrite_RefusedOnceSendBegins(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 60 {
		c := r.Channel()
		post := r.Post(c, -time.Second, 0)
		var race sync.WaitGroup
		var sent string
		var edited error
		race.Go(func() {
			for _, x := range r.Claim(1) {
				w := r.Load(x.Post)
				ok, err := r.MayCommit(x.Post, x.Token, w.Parts[0].ID)
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
			edited = r.Edit(post, "new")
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

// The lock waits for the statement that stores the part. The read after it must not use an older
// snapshot.
func TestLockGroup_SeesPartPublishedWhileItWaited(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second, 0)
	got := r.Claim(1)
	w := r.Load(post)
	ref := "out"
	w.Parts[0].ReleaseID, w.Parts[0].URL, w.Parts[0].Ref = &ref, &ref, json.RawMessage(`{}`)
	var waiting sync.WaitGroup
	var edited error
	r.OK(r.DB.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `update publication set phase = 'done', release_id = 'out', done_at = now() where id = $1`, w.Parts[0].ID); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), `update post set state = 'QUEUE', claim_token = null, claim_holder = null, claim_until = null, phase = null where id = $1`, got[0].Post); err != nil {
			return err
		}
		waiting.Go(func() { edited = r.Edit(post, "new") })
		return r.blocked(tx)
	}))
	waiting.Wait()
	if !fault.Is(edited, fault.Conflict) {
		t.Fatalf("a thread whose first part is out may be edited: %v", edited)
	}
}

// blocked returns once another transaction waits for a lock that tx holds.
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

// A part with a delay that keeps its id gets another publication after the edit, in the round of
// its root.
func TestRewrite_KeepsPartIDs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Channel()
	posts := fixture.Post(r.Org, c, time.Now(), time.Hour)
	r.Insert(r.Org, posts...)
	out := func() {
		r.Helper()
		for range 2 {
			for _, x := range r.Claim(1) {
				w := r.Load(x.Post)
				if len(w.Parts) != 1 || len(w.Before) != w.Parts[0].Position {
					t.Fatalf("loaded %+v, want one part and those before it", w)
				}
				o := dispatch.Outcome{Org: x.Org, Post: x.Post, Token: x.Token, Result: dispatch.ResultPublished, Publication: w.Parts[0].ID, ReleaseID: "out", RootID: "out"}
				if done, err := schedulerstore.Finish(t.Context(), r.Store, []dispatch.Outcome{o}, time.Second, "test"); err != nil || len(done) != 1 {
					t.Fatalf("finish returns %+v (%v), want one result", done, err)
				}
				r.Clock(`update post set due = now() where group_id = $1 and state = 'QUEUE'`, posts[0].Group)
			}
		}
	}
	out()
	for range 2 { // every edit publishes both parts again under the same part ids
		r.OK(r.InOrg(func(tx *db.Tx) error {
			old, err := poststore.LockGroup(t.Context(), tx, posts[0].Group)
			if err != nil {
				return err
			}
			again := fixture.Post(r.Org, c, time.Now(), time.Hour)
			again[0].ID, again[0].Parts[0].ID, again[1].After, again[1].Parts[0].ID = posts[0].ID, posts[0].Parts[0].ID, posts[0].ID, posts[1].Parts[0].ID
			again[0].Group, again[1].Group = posts[0].Group, posts[0].Group
			return poststore.Rewrite(t.Context(), tx, posts[0].Group, old, publishtest.NewPosts(again))
		}))
		out()
		r.WantState(posts[0].ID, publishing.StatePublished)
	}
	if rounds := publishtest.Value[int](r.Base, `select count(*) from publication where part_id = $1 and phase = 'done'`, posts[1].Parts[0].ID); rounds != 3 {
		t.Fatalf("the delayed part went out %d times", rounds)
	}
}
