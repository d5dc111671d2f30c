package conformance

import (
	"errors"
	"testing"
	"time"

	"crier/publishing"
	"crier/publishing/connector"
)

const retryAfter = 7 * time.Second // the Retry-After of RateLimit

// commitFaults injects each fault into a Commit and then recovers as the engine does.
func (s Suite) commitFaults(t *testing.T) {
	for _, k := range []struct {
		fault Fault
		kind  connector.Kind
		after time.Duration
	}{
		{fault: RefuseDial, kind: connector.KindTransient, after: 0},
		{fault: LoseRequest, kind: connector.KindUnknown, after: 0},
		{fault: DropAnswer, kind: connector.KindUnknown, after: 0},
		{fault: CutAnswer, kind: connector.KindUnknown, after: 0},
		{fault: RateLimit, kind: connector.KindTransient, after: retryAfter},
		{fault: RateLimitBare, kind: connector.KindTransient, after: 0},
		{fault: ErrorBefore, kind: connector.KindUnknown, after: 0},
		{fault: ErrorAfter, kind: connector.KindUnknown, after: 0},
		{fault: Expired, kind: connector.KindReauth, after: 0},
		{fault: Replaced, kind: connector.KindTransient, after: 0},
	} {
		t.Run(string(k.fault)+" is "+string(k.kind), func(t *testing.T) {
			r := s.onShared(t)
			item := r.prepare(r.itemWithMedia())
			r.arm(k.fault)
			_, err := r.commit(&item)
			r.wantKind(err, k.kind, k.after)
			r.recover(item, k.kind, k.fault.acts())
		})
	}
}

func (r *rig) wantKind(err error, kind connector.Kind, after time.Duration) {
	r.t.Helper()
	var e *connector.Error
	if !errors.As(err, &e) || e.Kind != kind || e.After != after {
		r.t.Fatalf("got %v, want the kind %s after %v", err, kind, after)
	}
}

// recover handles a failed Commit as the engine does. acted is true if the platform published the
// item. At the end, recover expects exactly one post. After an unknown outcome, there are two
// exceptions: the platform cannot be queried, or it has GradeSearchable and acted is false.
func (r *rig) recover(item connector.Item, kind connector.Kind, acted bool) {
	r.t.Helper()
	count := map[bool]int{true: 1}[acted]
	r.want(count, item)
	switch kind {
	case connector.KindUnknown:
		r.settle(item, acted)
		return
	case connector.KindReauth:
		if _, ok := r.c.(connector.Refresher); ok {
			r.renewCredential()
		}
	}
	if _, err := r.commit(&item); err != nil {
		r.t.Fatalf("Commit after the fault: %v", err)
	}
	r.want(1, item)
}

// settle handles a Commit with an unknown outcome. It calls Reconcile, checks the verdict, and
// commits again if the verdict and the grade permit it. acted is true if the platform published the
// item.
func (r *rig) settle(item connector.Item, acted bool) {
	r.t.Helper()
	before := len(r.published(item))
	v, err := r.reconcile(item)
	if err != nil {
		r.t.Fatalf("Reconcile: %v", err)
	}
	switch {
	case !r.grade().Askable():
		if v.Outcome != connector.CannotTell {
			r.t.Errorf("Reconcile returns %s on a platform that cannot be asked", v.Outcome)
		}
		// the user decides whether to send again
		return
	case acted:
		seen := r.want(1, item)[0]
		if v.Outcome != connector.Published || v.Ref.ID != seen.ID {
			r.t.Fatalf("Reconcile returns %s %q, want published %q", v.Outcome, v.Ref.ID, seen.ID)
		}
		if r.grade().Deduplicates() {
			r.commitAgain(item, seen.ID)
		}
		return
	case r.grade() == publishing.GradeSearchable:
		if v.Outcome == connector.Published {
			r.t.Errorf("Reconcile returns published %q, but nothing was published", v.Ref.ID)
		}
		return
	}
	if v.Outcome != connector.NotPublished {
		r.t.Fatalf("Reconcile returns %s, want %s", v.Outcome, connector.NotPublished)
	}
	if _, err := r.commit(&item); err != nil {
		r.t.Fatalf("Commit after %s: %v", connector.NotPublished, err)
	}
	r.want(before+1, item)
}

// prepareFaults injects each fault into the first call made by Prepare and then publishes the item.
// Prepare must never return KindUnknown, because its calls are reversible.
func (s Suite) prepareFaults(t *testing.T) {
	for _, k := range []struct {
		fault Fault
		kind  connector.Kind
		after time.Duration
	}{
		{fault: RefuseDial, kind: connector.KindTransient, after: 0},
		{fault: DropAnswer, kind: connector.KindTransient, after: 0},
		{fault: CutAnswer, kind: connector.KindTransient, after: 0},
		{fault: RateLimit, kind: connector.KindTransient, after: retryAfter},
		{fault: ErrorBefore, kind: connector.KindTransient, after: 0},
		{fault: ErrorAfter, kind: connector.KindTransient, after: 0},
		{fault: Expired, kind: connector.KindReauth, after: 0},
		{fault: Replaced, kind: connector.KindTransient, after: 0},
	} {
		t.Run(string(k.fault)+" is "+string(k.kind), func(t *testing.T) {
			r := s.onShared(t)
			item := r.itemWithMedia()
			r.line.failCalls(k.fault, 1)
			item, err := Prepare(t.Context(), watched{Connector: r.c, r: r}, r.s, item)
			r.requireCall(MethodPrepare)
			r.wantKind(err, k.kind, k.after)
			if _, ok := r.c.(connector.Refresher); ok && k.kind == connector.KindReauth {
				r.renewCredential()
			}
			r.publishOnce(item)
		})
	}
}

// reconcileFaults injects each fault into Reconcile, which must not conclude that nothing was
// published.
func (s Suite) reconcileFaults(t *testing.T) {
	for _, fault := range []Fault{RefuseDial, DropAnswer, CutAnswer, RateLimit, ErrorBefore, Expired, Replaced} {
		t.Run(string(fault)+" proves nothing", func(t *testing.T) {
			r := s.onShared(t)
			item := r.prepared()
			if _, err := r.commit(&item); err != nil {
				t.Fatalf("Commit: %v", err)
			}
			r.line.failCalls(fault, maxSteps)
			v, err := r.reconcile(item)
			r.requireCall(MethodReconcile)
			if err != nil {
				kind := connector.KindOf(err, false)
				if kind != connector.KindTransient && kind != connector.KindReauth {
					t.Errorf("Reconcile fails with %s, want transient or reauth: %v", kind, err)
				}
			} else if v.Outcome != connector.CannotTell {
				t.Fatalf("Reconcile returns %s without a response from the platform, want %s",
					v.Outcome, connector.CannotTell)
			}
			r.line.failCalls("", 0)
			r.settle(item, true)
		})
	}
}
