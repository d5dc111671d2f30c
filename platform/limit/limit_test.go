package limit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestPerKey_NextOfAKeyWaitsUntilOneLeaves(t *testing.T) {
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
			t.Error("a third user of the key has one of two places")
		}
		enter("b")()
		first()
		(<-third)()
		second()
		if len(l.keys) != 0 {
			t.Errorf("%d keys are remembered that nobody uses", len(l.keys))
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
		t.Errorf("a wait whose context is over ends with %v", err)
	}
	leave()
	if len(l.keys) != 0 {
		t.Errorf("%d keys are remembered that nobody uses", len(l.keys))
	}
}

func TestPerKey_RefusesWhenAsManyWaitAsMay(t *testing.T) {
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
			t.Errorf("a third one that would wait gets %v, want ErrFull", err)
		}
		other, err := l.Enter(t.Context(), "b")
		if err != nil {
			t.Fatalf("another key: %v", err)
		}
		other()
		leave()
		for range cap(entered) {
			(<-entered)()
		}
		if len(l.keys) != 0 {
			t.Errorf("%d keys are remembered that nobody uses", len(l.keys))
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
		t.Errorf("eleven of ten places are taken: %v", err)
	}
	four, err := l.Take(t.Context(), "a", 4)
	if err != nil {
		t.Fatal(err)
	}
	all, err := l.Take(t.Context(), "b", 100)
	if err != nil {
		t.Fatalf("who wants more than there are gets none: %v", err)
	}
	six()
	four()
	all()
	if len(l.keys) != 0 {
		t.Errorf("%d keys are remembered that nobody uses", len(l.keys))
	}
}

func TestPerKey_HoldsForManyAtOnce(t *testing.T) {
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
					t.Errorf("%d users of a key, want at most %d", got, most)
				}
				inside[key].Add(-1)
				leave()
			}
		})
	}
	all.Wait()
	if len(l.keys) != 0 {
		t.Errorf("%d keys are remembered that nobody uses", len(l.keys))
	}
}
