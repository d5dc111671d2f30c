package store_test

import (
	"log/slog"
	"sync"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/approval"
	"crier/publishing/db"
	"crier/publishing/post"
	poststore "crier/publishing/post/store"
	"crier/tenancy"
)

// An occurrence is projected until the step stores it. A read at the same time finds it exactly once.
func TestOccurrence_IsFoundWhileItIsStored(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const series = 40
	var later []publishing.PostID
	for range series {
		first := r.repeated(r.channel(), publishing.Repeat{Days: 1}, "UTC")
		later = append(later, publishing.Occurrence(first, 1))
		r.endOnly(first, publishing.ResultPublished, "")
	}
	posts := post.New(post.Config{}, post.Deps{
		DB: db.New(r.db), Clock: clock.System{}, Log: slog.New(slog.DiscardHandler),
		Approvals: approval.NewRequests(approval.RequestDeps{DB: db.New(r.db), Clock: clock.System{}}),
	})
	who := tenancy.Principal{Org: r.org}
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
				all, err := poststore.Roots(t.Context(), r.store, r.org, publishing.ListPosts{Start: from, End: to}, publishing.CustomerID{}, 10_000)
				if err != nil || len(all) != series {
					t.Errorf("%d are listed, want %d: %v", len(all), series, err)
					return
				}
			}
		})
	}
	written := 0
	for tries := 0; written < series && tries < 10; tries++ {
		n, _, err := r.sender().WriteOccurrences(t.Context(), r.lease)
		r.ok(err)
		written += n
	}
	close(done)
	readers.Wait()
	if written != series {
		t.Errorf("%d occurrences are stored, want %d", written, series)
	}
}
