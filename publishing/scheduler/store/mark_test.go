package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"crier/publishing"
	schedulerstore "crier/publishing/scheduler/store"
)

// work loads a claimed post.
func (r *rig) work(post publishing.PostID) publishing.Work {
	r.Helper()
	works, err := schedulerstore.Load(r.Context(), r.store, []publishing.PostID{post})
	if r.ok(err); len(works) != 1 || len(works[0].Parts) == 0 {
		r.Fatalf("loaded %+v, want one post with its parts", works)
	}
	return works[0]
}

func TestMark_StoresTheHandleOfItsPart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.post(r.channel(), -time.Second)
	claimed := r.claim(1)[0]
	mark := schedulerstore.Mark{Post: post, Token: claimed.Token, Publication: r.work(post).Parts[0].ID, Destination: "example.com",
		Handle: json.RawMessage(`{"facets": 1}`)}
	may, _, err := schedulerstore.MarkCommitting(t.Context(), r.store, []schedulerstore.Mark{mark}, time.Minute, 0)
	if r.ok(err); !may[0] {
		t.Fatal("a claimed post cannot be marked")
	}
	w := r.work(post)
	if x := w.Parts[0]; string(x.Handle) != `{"facets": 1}` || x.Phase != publishing.PhaseCommitting || x.SentTo != "example.com" || w.Committing.IsZero() {
		t.Errorf("after the mark the call began at %s, and the part is %+v", w.Committing, x)
	}
	// The next try finds what the first one prepared, and a mark without a handle keeps it.
	r.store1(r.sent(claimed, publishing.ResultRetry, ""))
	r.clock(`update post set not_before = null where id = $1`, post)
	mark.Token, mark.Handle = r.claim(1)[0].Token, nil
	may, _, err = schedulerstore.MarkCommitting(t.Context(), r.store, []schedulerstore.Mark{mark}, time.Minute, 0)
	if err != nil || !may[0] {
		t.Fatalf("the second claim cannot be marked: %v", err)
	}
	if x := r.work(post).Parts[0]; string(x.Handle) != `{"facets": 1}` {
		t.Errorf("the handle of the second try is %s", x.Handle)
	}
}

func TestFinish_RefusedCallAfterItsReapCanBeSentAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.post(r.channel(), -time.Second)
	claimed := r.claim(1)
	if !r.mark(claimed...)[0] {
		t.Fatal("a claimed post cannot be marked")
	}
	r.clock(`delete from node where id = $1`, r.lease.Holder)
	r.lease = r.newLease()
	r.reap(r.lease)
	r.expect(post, publishing.StateUnknown)
	// Its process was only paused. It continues, and its call fails before a byte is written.
	r.store1(r.sent(claimed[0], publishing.ResultRetry, ""))
	r.expect(post, publishing.StateQueue)
	r.clock(`update post set not_before = null where id = $1`, post)
	if again := r.claim(1); len(again) != 1 || !r.mark(again...)[0] {
		t.Errorf("the next claim cannot be marked: %+v", again)
	}
}
