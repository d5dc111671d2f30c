package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"crier/platform/batch"
	"crier/platform/clock"
)

var (
	errBad  = errors.New("one item is bad")
	errAway = errors.New("the database is away")
)

func TestIsolate_DoesAllButBadItems(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		items := make([]int, rapid.IntRange(0, 200).Draw(t, "items"))
		for i := range items {
			items[i] = i
		}
		bad := rapid.MapOf(rapid.IntRange(0, 199), rapid.Just(true)).Draw(t, "bad")
		awayAfter := rapid.IntRange(1, 400).Draw(t, "calls until the database is away")
		calls := 0
		var done, alone []int
		left, err := batch.Isolate(items, func(some []int) error {
			if calls++; calls > awayAfter {
				return errAway
			}
			if slices.ContainsFunc(some, func(i int) bool { return bad[i] }) {
				return errBad
			}
			done = append(done, some...)
			return nil
		}, func(err error) bool { return errors.Is(err, errBad) }, func(i int, err error) {
			if !bad[i] || !errors.Is(err, errBad) {
				t.Fatalf("alone was called with the good item %d or another error: %v", i, err)
			}
			alone = append(alone, i)
		})
		if (err != nil) != (len(left) > 0) || err != nil && !errors.Is(err, errAway) {
			t.Fatalf("got %v with %d items left, want errAway exactly when items are left", err, len(left))
		}
		if all := slices.Sorted(slices.Values(slices.Concat(done, alone, left))); !slices.Equal(all, items) {
			t.Fatalf("done, alone and left are %v, want every item once", all)
		}
		if slices.ContainsFunc(done, func(i int) bool { return bad[i] }) {
			t.Fatalf("done are %v, want no bad item", done)
		}
	})
}

// numbers is a table whose rows a Sweep deletes.
type numbers struct {
	rows []int
	bad  map[int]bool
	away bool
}

func (n *numbers) sweep(size int) *batch.Sweep[int] {
	return &batch.Sweep[int]{
		Size: size, IsItemError: func(err error) bool { return errors.Is(err, errBad) },
		Find: func(_ context.Context, after, limit int) (found []int, err error) {
			for _, row := range n.rows {
				if row > after && len(found) < limit {
					found = append(found, row)
				}
			}
			return found, nil
		},
		Do: func(_ context.Context, rows []int) (int, error) {
			if n.away {
				return 0, errAway
			}
			if slices.ContainsFunc(rows, func(i int) bool { return n.bad[i] }) {
				return 0, errBad
			}
			n.rows = slices.DeleteFunc(n.rows, func(i int) bool { return slices.Contains(rows, i) })
			return len(rows), nil
		},
	}
}

func TestSweep_DoesAllButBadItems(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := &numbers{bad: rapid.MapOf(rapid.IntRange(1, 50), rapid.Just(true)).Draw(t, "bad")}
		var left []int
		total := rapid.IntRange(0, 50).Draw(t, "rows")
		for i := 1; i <= total; i++ {
			n.rows = append(n.rows, i)
			if n.bad[i] {
				left = append(left, i)
			}
		}
		changed, err := n.sweep(rapid.IntRange(1, 20).Draw(t, "size")).Run(context.Background())
		if changed != total-len(left) || !slices.Equal(n.rows, left) {
			t.Fatalf("%d of %d are changed and %v left, want %v", changed, total, n.rows, left)
		}
		named := len(left) == 0 || err != nil &&
			strings.HasPrefix(err.Error(), fmt.Sprintf("%d items could not be changed, for example %d:", len(left), left[0]))
		if errors.Is(err, errBad) != (len(left) > 0) || !named {
			t.Fatalf("%d bad items: got the error %v, want their number and the first", len(left), err)
		}
	})
}

func TestSweep_EndsAtOutageAndWithContext(t *testing.T) {
	t.Parallel()
	n := &numbers{rows: []int{1, 2, 3, 4}, away: true}
	if changed, err := n.sweep(2).Run(t.Context()); changed != 0 || !errors.Is(err, errAway) {
		t.Errorf("without the database: got %d, %v; want none and errAway", changed, err)
	}
	n.away = false
	ctx, cancel := context.WithCancel(t.Context())
	s := n.sweep(2)
	do := s.Do
	s.Do = func(ctx context.Context, rows []int) (int, error) { cancel(); return do(ctx, rows) }
	if changed, err := s.Run(ctx); changed != 2 || !errors.Is(err, context.Canceled) || len(n.rows) != 2 {
		t.Errorf("cancelled: got %d, %v with %v left; want 2 of 4 and context.Canceled", changed, err, n.rows)
	}
	ctx, cancel = context.WithCancel(t.Context())
	s = n.sweep(2)
	s.Do = func(context.Context, []int) (int, error) { cancel(); return 0, errBad }
	if _, err := s.Run(ctx); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "could not be changed") {
		t.Errorf("got %v, want context.Canceled and no item blamed", err)
	}
}

func TestSweep_PauseIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &numbers{rows: []int{1, 2, 3, 4}}
		s := n.sweep(2)
		s.PauseFactor = 1e6
		do := s.Do
		s.Do = func(ctx context.Context, rows []int) (int, error) {
			// synctest does not fake this clock.
			for began := clock.Boot(); clock.Boot()-began < time.Millisecond; {
			}
			return do(ctx, rows)
		}
		began := time.Now()
		if changed, err := s.Run(t.Context()); changed != 4 || err != nil {
			t.Errorf("got %d, %v; want 4", changed, err)
		}
		if rested := time.Since(began); rested != 10*time.Second {
			t.Errorf("two batches that took a millisecond were followed by a rest of %v in all, want 10s", rested)
		}
	})
}

// deadline is a context whose deadline passes when it is cancelled.
type deadline struct{ context.Context }

func (d deadline) Err() error {
	if d.Context.Err() == nil {
		return nil
	}
	return context.DeadlineExceeded
}

func TestSweep_ContinuesWherePreviousRunEnded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := &numbers{rows: make([]int, rapid.IntRange(1, 60).Draw(t, "rows"))}
		for i := range n.rows {
			n.rows[i] = i + 1
		}
		s := n.sweep(rapid.IntRange(1, 10).Draw(t, "size"))
		var tried []int
		var over context.CancelFunc
		left := 0                                                 // batches until the deadline passes
		s.Do = func(_ context.Context, rows []int) (int, error) { // changes no row
			if left == 0 {
				over()
				return 0, context.DeadlineExceeded
			}
			left--
			tried = append(tried, rows...)
			return 0, nil
		}
		for len(tried) < 2*len(n.rows) {
			before := len(tried)
			for range 2 { // one of the two may only reach the end
				var ctx context.Context
				ctx, over = context.WithCancel(context.Background())
				left = rapid.IntRange(1, 3).Draw(t, "batches")
				if changed, err := s.Run(deadline{Context: ctx}); changed != 0 || err != nil {
					t.Fatalf("a run that its deadline ended: got %d, %v; want 0 and no error", changed, err)
				}
				over()
			}
			if len(tried) == before {
				t.Fatalf("two runs tried nothing after %v, want the next rows", tried)
			}
		}
		for i, row := range tried {
			if row != n.rows[i%len(n.rows)] {
				t.Fatalf("%v were tried, want all rows in turn", tried)
			}
		}
	})
}
