package post_test

import (
	"sync"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/publishing"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
	"crier/tests/publishtest"
)

// An occurrence is projected until the step stores it. A concurrent read finds it exactly once.
func TestOccurrence_IsFoundWhileBeingStored(t *testing.T) {
	t.Parallel()
	r := publishtest.NewStoreRig(t)
	const series = 40
	var later []publishing.PostID
	for range series {
		first := r.Repeated(r.Channel(), publishing.Repeat{Days: 1}, "UTC")
		later = append(later, publishing.Occurrence(first, 1))
		r.ClaimAndFinish(first, dispatch.ResultPublished, "")
	}
	posts := publishtest.Deps{DB: r.Store, Clock: clock.System{}, Log: r.Logger}.Posts(publishtest.Limits)
	who := tenancy.Principal{Org: r.Org}
	from, to := time.Now().Add(time.Hour), time.Now().Add(36*time.Hour)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for reader := range 6 {
		readers.Go(func() {
			for n := reader; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				if reader%2 == 0 {
					if _, err := posts.Get(t.Context(), who, later[n%series].String()); err != nil {
						t.Errorf("it is not found: %v", err)
						return
					}
					continue
				}
				all, err := poststore.Roots(t.Context(), r.Store, r.Org, publishing.ListPosts{Start: from, End: to}, publishing.CustomerID{}, 10_000)
				if err != nil || len(all) != series {
					t.Errorf("%d are listed, want %d: %v", len(all), series, err)
					return
				}
			}
		})
	}
	written := 0
	for tries := 0; written < series && tries < 10; tries++ {
		n, _, err := r.Sender().WriteOccurrences(t.Context(), r.Lease)
		r.OK(err)
		written += n
	}
	close(done)
	readers.Wait()
	if written != series {
		t.Errorf("%d occurrences are stored, want %d", written, series)
	}
}
