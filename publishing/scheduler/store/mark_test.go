package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"crier/publishing"
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
)

func TestMark_StoresTheHandleOfItsPart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second)
	claimed := r.Claim(1)[0]
	mark := schedulerstore.Mark{Post: post, Token: claimed.Token, Publication: r.Load(post).Parts[0].ID, Destination: "example.com",
		Handle: json.RawMessage(`{"facets": 1}`)}
	may, _, err := schedulerstore.MarkCommitting(t.Context(), r.Store, []schedulerstore.Mark{mark}, time.Minute, 0)
	if r.OK(err); !may[0] {
		t.Fatal("a claimed post cannot be marked")
	}
	w := r.Load(post)
	if x := w.Parts[0]; string(x.Handle) != `{"facets": 1}` || x.Phase != dispatch.PhaseCommitting || x.SentTo != "example.com" || w.Committing.IsZero() {
		t.Errorf("after the mark the call began at %s, and the part is %+v", w.Committing, x)
	}
	// The next try finds what the first one prepared, and a mark without a handle keeps it.
	r.FinishOne(r.Outcome(claimed, dispatch.ResultRetry, ""))
	r.Clock(`update post set not_before = null where id = $1`, post)
	mark.Token, mark.Handle = r.Claim(1)[0].Token, nil
	may, _, err = schedulerstore.MarkCommitting(t.Context(), r.Store, []schedulerstore.Mark{mark}, time.Minute, 0)
	if err != nil || !may[0] {
		t.Fatalf("the second claim cannot be marked: %v", err)
	}
	if x := r.Load(post).Parts[0]; string(x.Handle) != `{"facets": 1}` {
		t.Errorf("the handle of the second try is %s", x.Handle)
	}
}

func TestFinish_RefusedCallAfterItsReapCanBeSentAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second)
	claimed := r.Claim(1)
	if !r.Mark(claimed...)[0] {
		t.Fatal("a claimed post cannot be marked")
	}
	r.Clock(`delete from node where id = $1`, r.Lease.Holder)
	r.Lease = r.NewLease()
	r.reap(r.Lease)
	r.WantState(post, publishing.StateUnknown)
	// Its process was only paused. It continues, and its call fails before a byte is written.
	r.FinishOne(r.Outcome(claimed[0], dispatch.ResultRetry, ""))
	r.WantState(post, publishing.StateQueue)
	r.Clock(`update post set not_before = null where id = $1`, post)
	if again := r.Claim(1); len(again) != 1 || !r.Mark(again...)[0] {
		t.Errorf("the next claim cannot be marked: %+v", again)
	}
}
