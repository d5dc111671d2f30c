package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"crier/platform/clock"
)

// Rules says what a Batcher does. Its functions are called by one goroutine at a time.
type Rules[T any] struct {
	// Most is how many items one call carries out, fewer after one that failed by no item's fault: see Size.
	Most int
	// Bound is how many items may wait for their first call. It is also how many refused items may wait for their next.
	Bound int
	// Gather is how long the first item after a rest waits for others to share its call.
	Gather time.Duration
	// Timeout is the deadline of each call.
	Timeout time.Duration
	// Over is closed when nothing may be repeated any more; nil = never.
	Over <-chan struct{}

	// Do carries out all items or, with an error, none or nobody knows. It returns items that it left out because
	// something else has them locked.
	Do func(ctx context.Context, items []T) (locked []T, err error)
	// Refused and Locked return true for errors that may be due to a single item, and that say for sure that nothing was
	// done. Locked ones end by themselves.
	Refused, Locked func(err error) bool
	// Alone receives an item that is refused, locked or slow, and returns after how long it is tried again; 0 = never,
	// Alone has answered it. err is ErrLocked for an item that Do has returned. An item is slow when its call ran out of
	// time slowTries times in a row without any other item; without Away none is.
	Alone func(item T, err error) time.Duration
	// Away receives every other error and how many items wait because of it, and returns after how long they are tried
	// again. Without Away they are not: after such an error nobody knows what the call has done.
	Away func(items, try int, err error) time.Duration
	// Lost receives each item that is not tried again although Alone or Away wanted it, or because there is no Away.
	Lost func(item T, err error)

	// Pick chooses the items that may share a call; nil = all.
	Pick func(items []T) (now, rest []T)
	// Begin is called before each piece of work on items that came in together, and End after the last, if they are not
	// nil.
	Begin, End func()
}

// ErrLocked is why an item is tried again that Do has left out.
var ErrLocked = errors.New("something else has it locked")

// lockedSplits is how many calls may fail by a lock before it is taken for one that all items need.
const lockedSplits = 32

// slowTries is how many calls of a single item must run out of time before the others go on without it.
const slowTries = 2

// slowRest times Timeout is how long no slow item is tried after one that is still slow: however many there are, nine
// tenths of the time are left to the others.
const slowRest = 9

// mostLocked times Bound is how many items may be tried again before no new ones are taken.
const mostLocked = 16

// Batcher carries out items of many goroutines, many in one call. An item never waits for another one that is refused
// or locked: see Isolate. It waits for a slow one until that is known, and a tenth of the time after that. It has a goroutine only while it has items.
type Batcher[T any] struct {
	rules   Rules[T]
	in      chan T
	closing chan struct{}
	runs    sync.WaitGroup

	mu      sync.Mutex
	running bool

	// These are of the running goroutine.
	pace    Pace
	size    Size
	again   []again[T]
	slowAt  time.Time // no slow item is tried before this
	trySlow bool      // all items of this call are known to be slow
	late    bool      // the last call had a single item and ran out of time
}

// again is an item that is tried again.
type again[T any] struct {
	item         T
	at           time.Time
	locked, slow bool
}

// New makes a Batcher.
func New[T any](rules Rules[T]) *Batcher[T] {
	return &Batcher[T]{
		rules: rules, in: make(chan T, rules.Bound), closing: make(chan struct{}),
		pace: Pace{Gather: rules.Gather}, size: Size{Most: rules.Most},
	}
}

// Add hands an item over. It blocks while Bound items wait.
func (b *Batcher[T]) Add(item T) {
	b.in <- item
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.running {
		b.running = true
		b.runs.Go(b.run)
	}
}

// Len is how many items wait for their first call.
func (b *Batcher[T]) Len() int { return len(b.in) }

// Close returns when all items are carried out or lost. Refused ones are tried once more, at once. Nothing may be added
// any more.
func (b *Batcher[T]) Close() {
	close(b.closing)
	b.runs.Wait()
}

func (b *Batcher[T]) run() {
	for items := b.next(); items != nil; items = b.next() {
		for len(items) > 0 {
			if b.rules.Begin != nil {
				b.rules.Begin()
			}
			now, rest := items, []T(nil)
			if b.rules.Pick != nil {
				now, rest = b.rules.Pick(items)
			}
			items = slices.Concat(b.carryOut(now), rest)
		}
		b.pace.Done()
		if b.rules.End != nil {
			b.rules.End()
		}
	}
}

// next returns items that are tried again now, or as many as have come in meanwhile; nil when there are none, and the
// goroutine must end.
func (b *Batcher[T]) next() []T {
	for !b.idle() {
		in, closing := b.in, b.closing
		if len(b.again) >= mostLocked*b.rules.Bound {
			in = nil
		}
		if closed(closing) {
			closing = nil
		}
		var first []T
		select {
		case item := <-in:
			first = []T{item}
		case <-b.nextAgain():
		case <-closing:
		case <-b.rules.Over:
		}
		size := b.size.Next()
		if len(first)+len(b.in) < size {
			b.pace.Wait(b.rules.Over)
		}
		if b.trySlow = false; first == nil {
			first = b.dueAgain(size)
		} else {
			for len(first) < size && len(b.in) > 0 {
				first = append(first, <-b.in)
			}
		}
		if len(first) > 0 {
			return first
		}
	}
	return nil
}

// idle returns true when there are no items, and the next one needs a new goroutine.
func (b *Batcher[T]) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = len(b.in)+len(b.again) > 0
	return !b.running
}

// nextAgain receives when the first of the items is due that are tried again.
func (b *Batcher[T]) nextAgain() <-chan time.Time {
	if len(b.again) == 0 {
		return nil
	}
	now := clock.System{}.Now()
	wait := b.wait(b.again[0], now)
	for _, x := range b.again[1:] {
		wait = min(wait, b.wait(x, now))
	}
	return time.After(wait)
}

func (b *Batcher[T]) wait(x again[T], now time.Time) time.Duration {
	if closed(b.rules.Over) || (x.slow || !x.locked) && closed(b.closing) {
		return 0
	}
	if x.slow {
		return max(0, x.at.Sub(now), b.slowAt.Sub(now))
	}
	return max(0, x.at.Sub(now))
}

// dueAgain takes the items that are tried again now, at most so many. A slow one it takes alone, or all of them for the
// last call.
func (b *Batcher[T]) dueAgain(most int) (items []T) {
	now := clock.System{}.Now()
	var rest []again[T]
	for _, x := range b.again {
		fits := len(items) < most && !x.slow && !b.trySlow
		if x.slow {
			fits = b.trySlow && closed(b.rules.Over)
		}
		if b.wait(x, now) > 0 || len(items) > 0 && !fits {
			rest = append(rest, x)
			continue
		}
		items, b.trySlow = append(items, x.item), x.slow
	}
	b.again = rest
	return items
}

// carryOut returns when the items of one call are done, lost, or will be tried again by themselves. It returns the
// others: there are some when a call that is tried again is made smaller.
func (b *Batcher[T]) carryOut(items []T) (rest []T) {
	for try, slow := 1, 0; ; try++ {
		n, locks := min(len(items), b.size.Next()), 0
		left, err := Isolate(items[:n], b.call, func(err error) bool {
			if !b.rules.Locked(err) {
				return b.rules.Refused(err)
			}
			locks++
			return locks <= lockedSplits
		}, b.alone)
		items = items[n-len(left):] // Isolate works from the first to the last
		if err == nil {
			return items
		}
		if slow++; !b.late {
			slow = 0
		}
		if b.rules.Away != nil && !closed(b.rules.Over) && (slow == slowTries || slow == 1 && b.trySlow) {
			b.slowAt = clock.System{}.Now().Add(slowRest * b.rules.Timeout)
			b.later(items[0], err, true)
			return items[1:]
		}
		if !b.away(len(items), try, err) {
			for _, item := range items {
				b.rules.Lost(item, err)
			}
			return nil
		}
	}
}

func (b *Batcher[T]) call(items []T) error {
	ctx, cancel := context.WithTimeout(context.Background(), b.rules.Timeout)
	defer cancel()
	locked, err := b.rules.Do(ctx, items)
	b.late = err != nil && len(items) == 1 && ctx.Err() != nil
	if err == nil || !b.rules.Refused(err) && !b.rules.Locked(err) && !b.trySlow {
		b.size.Done(len(items), err == nil)
	}
	for _, item := range locked {
		b.alone(item, ErrLocked)
	}
	return err
}

func (b *Batcher[T]) alone(item T, err error) { b.later(item, err, false) }

// later has Alone say what becomes of an item. A slow one is kept as a locked one is.
func (b *Batcher[T]) later(item T, err error, slow bool) {
	pause := b.rules.Alone(item, err)
	locked := slow || errors.Is(err, ErrLocked) || b.rules.Locked(err)
	switch {
	case pause == 0:
	case closed(b.rules.Over), !locked && (closed(b.closing) || len(b.again) >= b.rules.Bound):
		b.rules.Lost(item, err)
	default:
		b.again = append(b.again, again[T]{item, clock.System{}.Now().Add(pause), locked, slow})
	}
}

// away waits until what is no item's fault may be over; false when nothing is tried again.
func (b *Batcher[T]) away(items, try int, err error) bool {
	if b.rules.Away == nil {
		return false
	}
	select {
	case <-time.After(b.rules.Away(items, try, err)):
		return true
	case <-b.rules.Over:
		return false
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Gap is the least time between two calls of a loop that has little to do in each: what comes in meanwhile shares the
// next call. With half as much, peer_burst of tests/bench took a third to a half more CPU a post.
const Gap = 40 * time.Millisecond

// Pace keeps the calls of one busy goroutine Gap apart. The first call after a rest waits for Gather.
type Pace struct {
	Gather time.Duration
	ended  time.Time
}

// Wait returns when Gap has passed since the last call ended, and Gather since it was called, or over is closed.
func (p *Pace) Wait(over <-chan struct{}) {
	select {
	case <-time.After(max(p.Gather, Gap-clock.System{}.Now().Sub(p.ended))):
	case <-over:
	}
}

// Done says that a call has ended.
func (p *Pace) Done() { p.ended = clock.System{}.Now() }
