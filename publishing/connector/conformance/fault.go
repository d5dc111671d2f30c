package conformance

import (
	"errors"
	"testing"
	"time"

	"crier/publishing/connector"
)

const asked = 7 * time.Second // the Retry-After of RateLimit

// commitFaults breaks the irreversible call in every way and then does what the engine would do.
func (s Suite) commitFaults(t *testing.T) {
	for _, k := range []struct {
		fault Fault
		kind  connector.Kind
		after time.Duration
	}{
		{RefuseDial, connector.KindTransient, 0},
		{LoseRequest, connector.KindUnknown, 0},
		{DropAnswer, connector.KindUnknown, 0},
		{CutAnswer, connector.KindUnknown, 0},
		{RateLimit, connector.KindTransient, asked},
		{RateLimitBare, connector.KindTransient, 0},
		{ErrorBefore, connector.KindUnknown, 0},
		{ErrorAfter, connector.KindUnknown, 0},
		{Expired, connector.KindReauth, 0},
		{Replaced, connector.KindTransient, 0},
	} {
		t.Run(string(k.fault)+" is "+string(k.kind), func(t *testing.T) {
			r := s.home(t)
			item := r.prepare(r.loaded())
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
		r.t.Fatalf("want the kind %s after %v, got %v", kind, after, err)
	}
}

// recover does what the engine does after a failed commit; acted tells whether the platform has published.
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
		r.t.Fatalf("Commit, once the platform is well: %v", err)
	}
	r.want(1, item)
}

// settle asks the platform what became of an unknown commit and goes on as the answer and the grade allow.
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
			r.t.Errorf("Reconcile answers %s on a platform that cannot be asked", v.Outcome)
		}
		return // the person decides
	case acted:
		seen := r.want(1, item)[0]
		if v.Outcome != connector.Published || v.Ref.ID != seen.ID {
			r.t.Fatalf("Reconcile answers %s %q, want published %q", v.Outcome, v.Ref.ID, seen.ID)
		}
		if r.grade().Deduplicates() {
			r.commitAgain(item, seen.ID)
		}
		return
	case r.grade() == "D":
		if v.Outcome == connector.Published {
			r.t.Errorf("Reconcile answers published %q, but nothing is", v.Ref.ID)
		}
		return
	}
	if v.Outcome != connector.NotPublished {
		r.t.Fatalf("Reconcile answers %s, want %s", v.Outcome, connector.NotPublished)
	}
	if _, err := r.commit(&item); err != nil {
		r.t.Fatalf("Commit after %s: %v", connector.NotPublished, err)
	}
	r.want(before+1, item)
}

// prepareFaults breaks the first reversible call of an item, then lets it through. What is reversible is never unknown.
func (s Suite) prepareFaults(t *testing.T) {
	for _, k := range []struct {
		fault Fault
		kind  connector.Kind
		after time.Duration
	}{
		{RefuseDial, connector.KindTransient, 0},
		{DropAnswer, connector.KindTransient, 0},
		{CutAnswer, connector.KindTransient, 0},
		{RateLimit, connector.KindTransient, asked},
		{ErrorBefore, connector.KindTransient, 0},
		{ErrorAfter, connector.KindTransient, 0},
		{Expired, connector.KindReauth, 0},
		{Replaced, connector.KindTransient, 0},
	} {
		t.Run(string(k.fault)+" is "+string(k.kind), func(t *testing.T) {
			r := s.home(t)
			item := r.loaded()
			r.line.breakCalls(k.fault, 1)
			item, err := Prepare(t.Context(), watched{r.c, r}, r.s, item)
			r.mustCall(MethodPrepare)
			r.wantKind(err, k.kind, k.after)
			if _, ok := r.c.(connector.Refresher); ok && k.kind == connector.KindReauth {
				r.renewCredential()
			}
			r.publishOnce(item)
		})
	}
}

// reconcileFaults asks a platform that is down: silence is no proof that nothing was published.
func (s Suite) reconcileFaults(t *testing.T) {
	for _, fault := range []Fault{RefuseDial, DropAnswer, CutAnswer, RateLimit, ErrorBefore, Expired, Replaced} {
		t.Run(string(fault)+" proves nothing", func(t *testing.T) {
			r := s.home(t)
			item := r.prepared()
			if _, err := r.commit(&item); err != nil {
				t.Fatalf("Commit: %v", err)
			}
			r.line.breakCalls(fault, maxSteps)
			v, err := r.reconcile(item)
			r.mustCall(MethodReconcile)
			if err == nil && v.Outcome != connector.CannotTell {
				t.Fatalf("Reconcile answers %s without an answer of the platform", v.Outcome)
			}
			kind := connector.KindOf(err, false)
			if err != nil && kind != connector.KindTransient && kind != connector.KindReauth {
				t.Errorf("Reconcile fails with %s, want transient or reauth: %v", kind, err)
			}
			r.line.breakCalls("", 0)
			r.settle(item, true)
		})
	}
}
