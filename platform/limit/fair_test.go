package limit

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// queue is a Fair with one place, and the keys that have got it so far, in order.
type queue struct {
	*Fair[string]
	got    []string
	leaves chan func()
}

func newQueue(waiting int) *queue {
	return &queue{Fair: NewFair[string](1, waiting), leaves: make(chan func(), 100)}
}

// enter starts a caller for the key and returns when the caller has the place or waits. It must be
// called in a synctest bubble.
func (q *queue) enter(ctx context.Context, key string) (result chan error) {
	result = make(chan error, 1)
	go func() {
		leave, err := q.Enter(ctx, key)
		if leave != nil {
			q.got = append(q.got, key) // not a data race: the only place acts as a lock
			q.leaves <- leave
		}
		result <- err
	}()
	synctest.Wait()
	return result
}

// drain releases the place until no caller has it.
func (q *queue) drain() {
	for len(q.leaves) > 0 {
		(<-q.leaves)()
		synctest.Wait()
	}
}

func TestFair_KeysTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(10)
		for range 6 {
			q.enter(t.Context(), "many")
		}
		for _, key := range []string{"a", "b", "a"} {
			q.enter(t.Context(), key)
		}
		q.drain()
		if want := []string{"many", "many", "a", "b", "many", "a", "many", "many", "many"}; !slices.Equal(q.got, want) {
			t.Errorf("got %q, want %q", q.got, want)
		}
		if q.free != 1 || len(q.turns) != 0 || len(q.waiting) != 0 {
			t.Errorf("got %d free places, keys %q and callers %v at the end, want 1 and none", q.free, q.turns, q.waiting)
		}
	})
}

func TestFair_RefusesAtOnceWhenTooManyOfOneKeyWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(2)
		for range 3 { // one has the place
			q.enter(t.Context(), "many")
		}
		select {
		case err := <-q.enter(t.Context(), "many"):
			if !errors.Is(err, ErrFull) {
				t.Errorf("got %v, want ErrFull", err)
			}
		default:
			t.Error("got a third caller that waits, want ErrFull")
		}
		q.enter(t.Context(), "other")
		q.drain()
		if want := []string{"many", "many", "other", "many"}; !slices.Equal(q.got, want) {
			t.Errorf("got %q, want %q", q.got, want)
		}
	})
}

func TestFair_WaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(10)
		q.enter(t.Context(), "first")
		ctx, cancel := context.WithCancel(t.Context())
		gone, stays := q.enter(ctx, "a"), q.enter(t.Context(), "a")
		alone := q.enter(ctx, "b")
		cancel()
		synctest.Wait()
		for _, result := range []chan error{gone, alone} {
			if err := <-result; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v, want context.Canceled", err)
			}
		}
		q.drain()
		if err := <-stays; err != nil || !slices.Equal(q.got, []string{"first", "a"}) {
			t.Errorf("the caller that still waited: got %v and order %q, want no error and [first a]", err, q.got)
		}
		if q.free != 1 || len(q.turns) != 0 || len(q.waiting) != 0 {
			t.Errorf("got %d free places, keys %q and callers %v at the end, want 1 and none", q.free, q.turns, q.waiting)
		}
	})
}

// TestFair_KeyWaitsForAtMostOnePlaceOfAnother checks the rule in random orders: while a caller of a
// key waits for that key's next place, no other key gets two.
func TestFair_KeyWaitsForAtMostOnePlaceOfAnother(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := NewFair[string](rapid.IntRange(1, 3).Draw(rt, "places"), 1000)
		type user struct {
			key   string
			place chan struct{}
		}
		var wait []user
		// For each waiting key, since counts the places that each other key has got in the
		// meantime.
		used, since := 0, map[string]map[string]int{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if rapid.Bool().Draw(rt, "enter") {
				key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "key")
				place, err := f.join(key)
				if err != nil {
					rt.Fatal(err)
				}
				wait, used = append(wait, user{key: key, place: place}), used+1
			} else if used > len(f.waiting["a"])+len(f.waiting["b"])+len(f.waiting["c"]) {
				f.leave()
				used--
			}
			wait = slices.DeleteFunc(wait, func(u user) bool {
				select {
				case <-u.place:
				default:
					return false
				}
				delete(since, u.key)
				for key, others := range since {
					if others[u.key]++; others[u.key] > 1 {
						rt.Fatalf("%s got two places while %s waits, want at most one", u.key, key)
					}
				}
				return true
			})
			for _, u := range wait {
				if since[u.key] == nil {
					since[u.key] = map[string]int{}
				}
			}
		}
	})
}
