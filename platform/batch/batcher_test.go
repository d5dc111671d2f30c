package batch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"crier/platform/batch"
)

var errLock = errors.New("a row is locked")

// calls records what a Batcher of numbers does. Negative numbers are refused and locked numbers are
// left out.
type calls struct {
	mu     sync.Mutex
	at     []time.Time
	sizes  []int
	done   []int
	lost   []int
	locked []int
	err    error // returned by every call
	most   int   // a call of more items times out; 0 = no limit
	late   []int // sizes of the calls that timed out: see slowRules
}

func (c *calls) rules() batch.Rules[int] {
	return batch.Rules[int]{
		MaxItems: 8, MaxWaiting: 16, Timeout: time.Second, Do: c.do,
		Refused:    func(err error) bool { return errors.Is(err, errBad) },
		Locked:     func(err error) bool { return errors.Is(err, errLock) },
		ItemFailed: func(int, error) time.Duration { return time.Minute },
		GiveUp: func(item int, _ error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lost = append(c.lost, item)
		},
	}
}

func (c *calls) do(ctx context.Context, items []int) (locked []int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := ctx.Deadline(); !ok {
		return nil, errors.New("a call without a deadline")
	}
	c.at, c.sizes = append(c.at, time.Now()), append(c.sizes, len(items))
	if c.err != nil {
		return nil, c.err
	}
	if c.most > 0 && len(items) > c.most {
		return nil, context.DeadlineExceeded
	}
	if slices.ContainsFunc(items, func(i int) bool { return i < 0 }) {
		return nil, errBad
	}
	for _, i := range items {
		if slices.Contains(c.locked, i) {
			locked = append(locked, i)
		} else {
			c.done = append(c.done, i)
		}
	}
	return locked, nil
}

// set changes the locked items and the error of later calls.
func (c *calls) set(locked []int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.locked, c.err = locked, err
}

// expect waits until all goroutines are blocked and compares the done and lost items.
func (c *calls) expect(t *testing.T, when string, done, lost []int) {
	t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(slices.Sorted(slices.Values(c.done)), done) || !slices.Equal(c.lost, lost) {
		t.Fatalf("%s: done are %v, want %v; lost are %v, want %v", when, c.done, done, c.lost, lost)
	}
}

func TestBatcher_SharesCallsOnlyWhileBusy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		b := batch.New(c.rules())
		start := time.Now()
		for i := range 12 {
			b.Add(i)
			time.Sleep(batch.Gap / 5)
		}
		time.Sleep(time.Second)
		b.Add(12)
		synctest.Wait()
		if !c.at[0].Equal(start) || !c.at[len(c.at)-1].Equal(time.Now()) {
			t.Errorf("calls were at %v, want the first after an idle time at once", c.at)
		}
		for i := range c.at[1:] {
			if gap := c.at[i+1].Sub(c.at[i]); gap < batch.Gap {
				t.Errorf("call %d came %s after the previous one, want at least %s", i+1, gap, batch.Gap)
			}
		}
		if len(c.at) != 5 {
			t.Errorf("%d calls for items of three gaps and one after an idle time, want 5", len(c.at))
		}
		b.Close()
	})
}

func TestBatcher_GathersAfterIdleTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		rules := c.rules()
		rules.Gather = batch.Gap / 4
		b := batch.New(rules)
		var want []time.Time
		for range 2 {
			time.Sleep(time.Second)
			want = append(want, time.Now().Add(rules.Gather))
			for i := range 4 {
				b.Add(i)
				time.Sleep(rules.Gather / 8)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if !slices.EqualFunc(c.at, want, time.Time.Equal) || !slices.Equal(c.sizes, []int{4, 4}) {
			t.Errorf("calls of %v items at %v, want one of 4 items at each of %v", c.sizes, c.at, want)
		}
		b.Close()
	})
}

func TestBatcher_KeepsBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		rules := c.rules()
		block := make(chan struct{})
		rules.Do = func(ctx context.Context, items []int) ([]int, error) {
			<-block
			return c.do(ctx, items)
		}
		b := batch.New(rules)
		b.Add(0)
		synctest.Wait() // Do has the item
		var adding sync.WaitGroup
		for i := range 30 {
			adding.Go(func() { b.Add(i + 1) })
		}
		synctest.Wait()
		if b.Len() != 16 {
			t.Errorf("%d items wait, want the bound of 16", b.Len())
		}
		start := time.Now()
		close(block)
		adding.Wait()
		b.Close()
		if len(c.done) != 31 || slices.Max(c.sizes) != 8 {
			t.Errorf("%d items are done, up to %d in one call; want 31, up to 8", len(c.done), slices.Max(c.sizes))
		}
		if took := time.Since(start); took >= 3*batch.Gap {
			t.Errorf("full calls took %s, want no wait for more items", took)
		}
	})
}

func TestBatcher_LockedAndRefusedItemsDelayNoOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{locked: []int{3, 4}}
		b := batch.New(c.rules())
		for _, i := range []int{1, 2, 3, -1, 4, 5} {
			b.Add(i)
		}
		time.Sleep(time.Second)
		c.expect(t, "beside locked and refused items", []int{1, 2, 5}, nil)
		c.set([]int{4}, nil)
		time.Sleep(time.Minute)
		c.expect(t, "when one is no longer locked", []int{1, 2, 3, 5}, nil)
		closing := make(chan struct{})
		go func() { b.Close(); close(closing) }()
		c.expect(t, "at the end, refused once more", []int{1, 2, 3, 5}, []int{-1})
		c.set(nil, nil)
		<-closing
		c.expect(t, "after the end", []int{1, 2, 3, 4, 5}, []int{-1})
	})
}

func TestBatcher_AllItemsWaitDuringOutage(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{"database is away": errAway, "everything is locked": errLock} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := &calls{err: cause}
				rules := c.rules()
				over := make(chan struct{})
				rules.Stop, rules.CallFailed = over, func(int, int, error) time.Duration { return time.Second }
				b := batch.New(rules)
				want := []int{}
				for i := range 100 {
					go b.Add(i)
					want = append(want, i)
				}
				time.Sleep(10 * time.Minute)
				c.expect(t, "while it lasts", nil, nil)
				c.set(nil, nil)
				time.Sleep(2 * time.Minute)
				c.expect(t, "when it is over", want, nil)
				c.set(nil, cause)
				b.Add(100)
				time.Sleep(time.Minute)
				close(over)
				b.Close()
				c.expect(t, "when nothing may be repeated", want, []int{100})
			})
		})
	}
}

func TestBatcher_ShrinksCallsAfterTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{most: 3}
		rules := c.rules()
		begun := 0
		rules.Begin = func() { begun++ }
		rules.CallFailed = func(int, int, error) time.Duration { return time.Second }
		b := batch.New(rules)
		want := []int{}
		add := func() {
			for range 16 {
				b.Add(len(want))
				want = append(want, len(want))
			}
			time.Sleep(time.Minute)
		}
		add()
		c.expect(t, "while large calls run out of time", want, nil)
		if worked := 16/c.most + 1; begun < worked {
			t.Errorf("%d pieces of work begin, want one for each of the %d calls that worked", begun, worked)
		}
		c.most, c.sizes = 0, nil
		for range 8 {
			add()
		}
		c.expect(t, "when they no longer do", want, nil)
		if got := slices.Max(c.sizes); got != rules.MaxItems {
			t.Errorf("the largest call has %d items, want %d", got, rules.MaxItems)
		}
		b.Close()
	})
}

func TestBatcher_ShrinksNextCallWithoutRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{most: 2}
		b := batch.New(c.rules())
		b.Add(16)
		// An idle Batcher starts at once, with the items that it has by then.
		synctest.Wait()
		for i := range 16 {
			b.Add(i)
		}
		time.Sleep(time.Minute)
		c.expect(t, "after calls of 8 and 4 items that ran out of time", []int{12, 13, 14, 15, 16}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
		b.Close()
	})
}

func TestBatcher_RefusedItemsShrinkNoCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		b := batch.New(c.rules())
		want := []int{}
		add := func() {
			b.Add(len(want))
			want = append(want, len(want))
		}
		for round := range 3 {
			add()
			synctest.Wait() // done at once; the next items share a call after the gap
			b.Add(-1 - round)
			for range 7 {
				add()
			}
			time.Sleep(time.Second)
		}
		c.expect(t, "beside refused ones", want, nil)
		if full := len(c.sizes) - len(slices.DeleteFunc(slices.Clone(c.sizes), func(n int) bool { return n == 8 })); full != 3 {
			t.Errorf("calls had %v items: %d had all 8, want 3", c.sizes, full)
		}
		b.Close()
	})
}

func TestBatcher_RetriesNothingThatMayBeDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{err: context.DeadlineExceeded}
		b := batch.New(c.rules())
		for i := range 3 {
			b.Add(i)
		}
		time.Sleep(time.Hour)
		c.expect(t, "without CallFailed", nil, []int{0, 1, 2})
		if calls := len(c.at); calls > 3 {
			t.Errorf("%d calls for 3 items, want at most 3", calls)
		}
	})
}

func TestBatcher_ManyLockedItemsLeaveRoomForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Bool
		done := make(chan int, 100)
		b := batch.New(batch.Rules[int]{
			MaxItems: 8, MaxWaiting: 16, Timeout: time.Second,
			Do: func(_ context.Context, items []int) (locked []int, err error) {
				for _, i := range items {
					if i < 50 && !free.Load() {
						locked = append(locked, i)
					} else {
						done <- i
					}
				}
				return locked, nil
			},
			Refused: func(error) bool { return false }, Locked: func(error) bool { return false },
			ItemFailed: func(int, error) time.Duration { return 2 * time.Second },
			GiveUp:     func(i int, err error) { t.Errorf("%d is given up: %v, want it retried", i, err) },
		})
		for i := range 50 {
			b.Add(i)
		}
		time.Sleep(time.Minute)
		b.Add(50)
		if got := <-done; got != 50 {
			t.Errorf("%d is done first, want the one that is not locked", got)
		}
		free.Store(true)
		b.Close()
		if n := len(done); n != 50 {
			t.Errorf("%d items are done when they are free, want 50", n)
		}
	})
}

// slowRules returns the rules of c, with a Do that times out if the call has one of the slow items.
func (c *calls) slowRules(slow func() []int) batch.Rules[int] {
	rules := c.rules()
	rules.CallFailed = func(int, int, error) time.Duration { return 100 * time.Millisecond }
	rules.ItemFailed = func(int, error) time.Duration { return 2 * time.Second }
	rules.Do = func(ctx context.Context, items []int) ([]int, error) {
		if slices.ContainsFunc(items, func(i int) bool { return slices.Contains(slow(), i) }) {
			c.mu.Lock()
			c.late = append(c.late, len(items))
			c.mu.Unlock()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return c.do(ctx, items)
	}
	return rules
}

func TestBatcher_SlowItemsLeaveMostTimeToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		var free atomic.Bool
		rules := c.slowRules(func() []int {
			if free.Load() {
				return nil
			}
			return []int{3, 4}
		})
		b := batch.New(rules)
		want := []int{}
		add := func() {
			for range rules.MaxWaiting {
				b.Add(len(want))
				want = append(want, len(want))
			}
		}
		others := func() []int {
			return slices.DeleteFunc(slices.Clone(want), func(n int) bool { return n == 3 || n == 4 })
		}
		add()
		time.Sleep(time.Minute)
		c.expect(t, "beside two slow items", others(), nil)
		c.sizes, c.late = nil, nil
		for range 60 {
			add()
			time.Sleep(10 * time.Second)
		}
		c.expect(t, "for ten minutes", others(), nil)
		if got := slices.Max(c.sizes); got != rules.MaxItems {
			t.Errorf("the largest call has %d items, want %d", got, rules.MaxItems)
		}
		if slices.Max(c.late) > 1 || len(c.late) > 60 || len(c.late) < 30 {
			t.Errorf("calls of %v items took all of their second in ten minutes, want 30 to 60, each of one item", c.late)
		}
		free.Store(true)
		time.Sleep(time.Minute)
		c.expect(t, "when they are no longer slow", want, nil)
		b.Close()
	})
}

func TestBatcher_KeepsSlowItemsUntilStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &calls{}
		over := make(chan struct{})
		rules := c.slowRules(func() []int { return []int{1, 2, 3} })
		rules.Stop = over
		b := batch.New(rules)
		for i := range 5 {
			b.Add(i)
		}
		time.Sleep(time.Hour)
		c.expect(t, "while nothing ends", []int{0, 4}, nil)
		closed := make(chan struct{})
		go func() { b.Close(); close(closed) }()
		time.Sleep(time.Hour)
		c.expect(t, "while it closes", []int{0, 4}, nil)
		c.mu.Lock()
		before := len(c.late)
		c.mu.Unlock()
		close(over)
		<-closed
		if slices.Sort(c.lost); !slices.Equal(c.lost, []int{1, 2, 3}) {
			t.Errorf("lost are %v, want the slow ones", c.lost)
		}
		if n := len(c.late) - before; n > 1 {
			t.Errorf("%d calls wait for slow items when nothing may be repeated, want one for all", n)
		}
	})
}
