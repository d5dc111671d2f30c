package limit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestPerKey_NextWaitsUntilOneLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := New[string](2)
		enter := func(key string) (leave func()) {
			t.Helper()
			leave, err := l.Enter(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			return leave
		}
		first, second := enter("a"), enter("a")
		third := make(chan func(), 1)
		go func() { third <- enter("a") }()
		synctest.Wait()
		if len(third) != 0 {
			t.Error("got a third place for a key, want two at most")
		}
		enter("b")()
		first()
		(<-third)()
		second()
		if len(l.keys) != 0 {
			t.Errorf("got %d keys in memory that are not used, want 0", len(l.keys))
		}
	})
}

func TestPerKey_WaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l := New[string](1)
	leave, err := l.Enter(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Enter(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait whose context has ended: got %v, want context.Canceled", err)
	}
	leave()
	if len(l.keys) != 0 {
		t.Errorf("got %d keys in memory that are not used, want 0", len(l.keys))
	}
}

func TestPerKey_RefusesAtOnceWhenTooManyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewBounded[string](1, 2)
		leave, err := l.Enter(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		entered := make(chan func(), 2)
		for range cap(entered) {
			go func() {
				leave, err := l.Enter(t.Context(), "a")
				if err != nil {
					t.Error(err)
				}
				entered <- leave
			}()
		}
		synctest.Wait()
		if _, err := l.Enter(t.Context(), "a"); !errors.Is(err, ErrFull) {
			t.Errorf("a third caller that would wait: got %v, want ErrFull", err)
		}
		other, err := l.Enter(t.Context(), "b")
		if err != nil {
			t.Fatalf("another key: got %v, want a place", err)
		}
		other()
		leave()
		for range cap(entered) {
			(<-entered)()
		}
		if len(l.keys) != 0 {
			t.Errorf("got %d keys in memory that are not used, want 0", len(l.keys))
		}
	})
}

func TestPerKey_TakesManyPlaces(t *testing.T) {
	t.Parallel()
	l := New[string](10)
	six, err := l.Take(t.Context(), "a", 6)
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Take(over, "a", 5); !errors.Is(err, context.Canceled) {
		t.Errorf("taking eleven of ten places: got %v, want context.Canceled", err)
	}
	four, err := l.Take(t.Context(), "a", 4)
	if err != nil {
		t.Fatal(err)
	}
	all, err := l.Take(t.Context(), "b", 100)
	if err != nil {
		t.Fatalf("taking more places than there are: got %v, want all of them", err)
	}
	six()
	four()
	all()
	if len(l.keys) != 0 {
		t.Errorf("got %d keys in memory that are not used, want 0", len(l.keys))
	}
}

func TestPerKey_LimitHoldsUnderConcurrency(t *testing.T) {
	t.Parallel()
	const most = 3
	l := New[int](most)
	var inside [4]atomic.Int64
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			for n := range 200 {
				key := (i + n) % len(inside)
				leave, err := l.Enter(t.Context(), key)
				if err != nil {
					t.Error(err)
					return
				}
				if got := inside[key].Add(1); got > most {
					t.Errorf("got %d callers of a key at a time, want at most %d", got, most)
				}
				inside[key].Add(-1)
				leave()
			}
		})
	}
	all.Wait()
	if len(l.keys) != 0 {
		t.Errorf("got %d keys in memory that are not used, want 0", len(l.keys))
	}
}

func TestPerKey_TryEnterDoesNotWait(t *testing.T) {
	t.Parallel()
	l := New[string](1)
	leave, ok := l.TryEnter("a")
	if !ok {
		t.Fatal("got no place, want the only one")
	}
	if _, ok := l.TryEnter("a"); ok {
		t.Error("got a second place, want one at most")
	}
	if other, ok := l.TryEnter("b"); !ok {
		t.Error("got no place for another key")
	} else {
		other()
	}
	leave()
	if len(l.keys) != 0 {
		t.Errorf("got %d keys in memory that are not used, want 0", len(l.keys))
	}
}
