package store_test

import (
	"slices"
	"testing"
	"time"

	"crier/publishing"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
)

func TestEvents_HavePartsThatCouldNotFollow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	post := r.Post(r.Channel(), -time.Second, time.Hour, time.Hour)
	r.Finish(r.Claim(1)[0], dispatch.ResultError, publishing.CodeRejected)
	events, err := poststore.Events(t.Context(), r.Store, r.Org, r.GroupOf(post))
	r.OK(err)
	var failed []string
	for _, e := range events {
		if e.Kind == publishing.EventFailed {
			failed = append(failed, *e.Reason)
		}
	}
	slices.Sort(failed)
	if want := []string{"predecessor_failed", "predecessor_failed", publishing.CodeRejected}; !slices.Equal(failed, want) {
		t.Errorf("%q, want %q", failed, want)
	}
}
