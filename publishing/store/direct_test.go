package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tests/fixture"
)

// direct connects a channel whose texts are claimed as marked.
func (r *rig) direct() publishing.ChannelID {
	r.Helper()
	c := fixture.Channel(r.org)
	c.Direct = true
	_, _, err := r.store.Connect(r.Context(), c, []byte("sealed"))
	r.ok(err)
	return c.ID
}

// phases are those of a post and of its publications in order.
func (r *rig) phases(post publishing.PostID) (state, phase string, parts []string) {
	r.Helper()
	r.ok(r.db.InRole(r.Context(), pg.Clock, func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), `select p.state, coalesce(p.phase, ''), array(select x.phase from publication x where x.post_id = p.id order by x.number, x.position) from post p where p.id = $1`, post).
			Scan(&state, &phase, &parts)
	}))
	return state, phase, parts
}

func (r *rig) wantPhases(post publishing.PostID, state, phase string, parts ...string) {
	r.Helper()
	s, p, all := r.phases(post)
	same := s == state && p == phase && len(all) == len(parts)
	for i := range parts {
		same = same && all[i] == parts[i]
	}
	if !same {
		r.Errorf("%s %s %v, want %s %s %v", s, p, all, state, phase, parts)
	}
}

func TestATextThatNeedsNoPreparationIsClaimedAsMarked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.direct()
	thread := r.post(c, -time.Minute, 0, 0)
	claimed := r.claim(1)
	if len(claimed) != 1 || !claimed[0].Direct {
		t.Errorf("%+v", claimed)
	}
	r.wantPhases(thread, "PUBLISHING", "committing", "committing", "preparing", "preparing")
	works, err := r.store.Load(t.Context(), []publishing.PostID{thread}, nil)
	if err != nil || len(works) != 1 || works[0].Phase != "committing" || works[0].Committing.IsZero() {
		t.Fatalf("%+v: %v", works, err)
	}
	// A claim that came to nothing before its call: the mark goes with it, and the next one is made in two steps.
	if got := r.finish(claimed[0], publishingstore.ResultRetry, ""); len(got) != 1 {
		t.Fatal(got)
	}
	r.wantPhases(thread, "QUEUE", "", "preparing", "preparing", "preparing")
	r.clock(`update post set not_before = null where id = $1`, thread)
	claimed = r.claim(1)
	r.wantPhases(thread, "PUBLISHING", "preparing", "preparing", "preparing", "preparing")
	if !r.mark(claimed...)[0] {
		t.Error("the second claim cannot be marked")
	}
	r.finish(claimed[0], publishingstore.ResultPublished, "")

	refused := r.post(c, -time.Second)
	claimed = r.claim(1)
	r.wantPhases(refused, "PUBLISHING", "committing", "committing")
	r.finish(claimed[0], publishingstore.ResultError, publishing.CodeChannelDisabled)
	r.wantPhases(refused, "ERROR", "", "preparing")
}

func TestWhatADeadProcessClaimedAsMarkedIsInDoubt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.post(r.direct(), -time.Second)
	if got := r.claim(1); len(got) != 1 {
		t.Fatal(got)
	}
	r.clock(`delete from node where id = $1`, r.lease.Holder)
	r.lease = r.newLease()
	if n := r.reap(r.lease); n == 0 {
		t.Fatal("the claim of a dead process is not ended")
	}
	r.wantPhases(post, "UNKNOWN", "committing", "committing")
}

func TestFinish_MarkedClaimThatComesToNothingAfterItsReapCanBeSentAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.post(r.direct(), -time.Second)
	claimed := r.claim(1)
	r.clock(`delete from node where id = $1`, r.lease.Holder)
	r.lease = r.newLease()
	r.reap(r.lease)
	r.wantPhases(post, "UNKNOWN", "committing", "committing")
	// Its process only stood still. It goes on, cannot load the post any more, and gives the claim back.
	r.finish(claimed[0], publishingstore.ResultRetry, "")
	r.wantPhases(post, "QUEUE", "", "preparing")
	r.clock(`update post set not_before = null where id = $1`, post)
	if again := r.claim(1); len(again) != 1 || !r.mark(again...)[0] {
		t.Errorf("the next claim cannot be marked: %+v", again)
	}
}

func TestWhatNeedsPreparationIsNotClaimedAsMarked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.direct()
	post := r.post(c, -time.Second)
	r.ok(r.db.InOrg(t.Context(), r.org.UUID(), func(tx pgx.Tx) error {
		medium := uuid.New()
		if _, err := tx.Exec(t.Context(), `insert into media (org_id, id, key, name, ext, content_type, size) values ($1, $2, 'key-of-24-characters-0000', 'dot', 'png', 'image/png', 1)`, r.org, medium); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `insert into attachment (org_id, part_id, position, media_id) select org_id, id, 0, $2 from part where post_id = $1`, post, medium)
		return err
	}))
	if got := r.claim(1); len(got) != 1 || got[0].Direct {
		t.Fatal(got)
	}
	r.wantPhases(post, "PUBLISHING", "preparing", "preparing")
	ids := []publishing.PostID{post}
	if works, err := r.store.Load(t.Context(), ids, ids); err != nil || len(works) != 1 || len(works[0].Parts) != 1 || len(works[0].Parts[0].Media) != 1 {
		t.Errorf("%+v, %v", works, err)
	}
	plain := r.post(r.channel(), -time.Second)
	if got := r.claim(1); len(got) != 1 {
		t.Fatal(got)
	}
	r.wantPhases(plain, "PUBLISHING", "preparing", "preparing")
}
