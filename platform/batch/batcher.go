package batch

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"crier/platform/clock"
)

// Rules configures a Batcher. Its callbacks are called by only one goroutine at a time.
type Rules[T any] struct {
	// MaxItems is the maximum number of items in one call. If a call fails for a reason that is not
	// specific to an item, later calls process fewer items; see Size.
	MaxItems int
	// MaxWaiting is how many items may wait for their first call. It also limits, separately, how
	// many refused items may wait for a retry.
	MaxWaiting int
	// Gather is the minimum time a call waits for more items. A full call does not wait. The wait
	// lets several items share even the first call after an idle period.
	Gather time.Duration
	// Timeout is the time after which the context of a call to Do ends. The pause between slow
	// items is a multiple of Timeout; see slowPause.
	Timeout time.Duration
	// Stop is closed by the caller to end retries. Refused, locked and slow items that are waiting
	// are then retried once more, immediately. Stop may be nil.
	Stop <-chan struct{}

	// Do processes the items. It leaves out items that another transaction has locked, and returns
	// them. If it returns an error, either no item was processed or the outcome is unknown.
	Do func(ctx context.Context, items []T) (locked []T, err error)
	// Refused and Locked report whether a single item may have caused an error from Do. They may
	// return true only for errors that guarantee that nothing was done. A locked item is expected
	// to become free.
	Refused, Locked func(err error) bool
	// ItemFailed is called with each item that is refused, locked or slow. It returns how long to
	// wait before the item is retried. If it returns 0, it has dealt with the item, and the item is
	// not retried. If Do returned the item as locked, err is ErrLocked.
	//
	// An item is slow if calls with only that item have timed out slowTries times in a row. If
	// CallFailed is nil, no item counts as slow.
	ItemFailed func(item T, err error) time.Duration
	// CallFailed is called after every other error, with the number of items affected. It returns
	// how long to wait before these items are retried. If CallFailed is nil, they are not retried,
	// because the failed call may have processed them.
	CallFailed func(items, try int, err error) time.Duration
	// GiveUp is called with each item that the Batcher will not retry. The reason is Stop or Close,
	// a nil CallFailed, or that MaxWaiting items are already waiting for a retry.
	GiveUp func(item T, err error)

	// Pick splits items into those that may share the next call and the rest. If Pick is nil, all
	// items may share a call.
	Pick func(items []T) (now, rest []T)
	// Begin is called before each part of a batch is processed, and End after the last part. A
	// batch is processed in several parts if Pick or a failed call splits it. Begin and End may be
	// nil.
	Begin, End func()
}

// ErrLocked is the error passed to ItemFailed for an item that Do returned as locked.
var ErrLocked = errors.New("locked by something else")

// maxLockedCalls is how many calls may fail because of a lock before the Batcher assumes that all
// items need the same lock.
const maxLockedCalls = 32

// slowTries is how many times in a row a call with a single item must time out before the item
// counts as slow and other items go first.
const slowTries = 2

// slowPause is how long the Batcher waits after a slow item times out before it tries the next slow
// item, as a multiple of Timeout. Slow items therefore take at most a tenth of the Batcher's time,
// regardless of their number.
const slowPause = 9

// maxRetryFactor limits the number of items waiting for a retry, as a multiple of MaxWaiting. At
// the limit, the Batcher stops accepting new items.
const maxRetryFactor = 16

// Batcher processes items that many goroutines add, with several items per call. A refused or
// locked item does not delay other items; see Isolate. A slow item delays other items only until it
// is recognized as slow. From then on, slow items take at most a tenth of the Batcher's time.
//
// The Batcher runs a goroutine only while it has items. Items are kept only in memory, so a crash
// loses them.
type Batcher[T any] struct {
	rules   Rules[T]
	in      chan T
	closing chan struct{}
	runs    sync.WaitGroup

	mu      sync.Mutex
	running bool

	// The running goroutine owns the fields below.
	throttle Throttle
	size     Size
	retries  []retryItem[T]
	slowFrom time.Time // no slow item is tried before this time
	onlySlow bool      // the current call has only slow items
	timedOut bool      // the last call had a single item and reached the timeout
}

// retryItem is an item that waits for a retry. The field at is the time when the retry is due.
// After Stop or Close, it can be due earlier; see wait. A slow item also counts as locked.
type retryItem[T any] struct {
	item         T
	at           time.Time
	locked, slow bool
}

// New returns a Batcher. It starts no goroutine; the first Add does.
func New[T any](rules Rules[T]) *Batcher[T] {
	return &Batcher[T]{
		rules: rules, in: make(chan T, rules.MaxWaiting), closing: make(chan struct{}),
		throttle: Throttle{Gather: rules.Gather}, size: Size{Max: rules.MaxItems},
	}
}

// Add queues an item. It blocks while MaxWaiting items are waiting. It must not be called after
// Close.
func (b *Batcher[T]) Add(item T) {
	b.in <- item
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.running {
		b.running = true
		b.runs.Go(b.run)
	}
}

// Len returns the number of items waiting for their first call.
func (b *Batcher[T]) Len() int { return len(b.in) }

// Close waits until every item is done or has been passed to GiveUp. Refused and slow items that
// are waiting for a retry are retried once more, immediately.
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
		b.throttle.Done()
		if b.rules.End != nil {
			b.rules.End()
		}
	}
}

// next returns the items for the next call: either items that are due for a retry or new ones. It
// waits until there are such items. If no items are left, next returns nil and the goroutine must
// end.
func (b *Batcher[T]) next() []T {
	for !b.idle() {
		in, closing := b.in, b.closing
		if len(b.retries) >= maxRetryFactor*b.rules.MaxWaiting {
			in = nil
		}
		if isClosed(closing) {
			closing = nil
		}
		var first []T
		select {
		case item := <-in:
			first = []T{item}
		case <-b.nextRetry():
		case <-closing:
		case <-b.rules.Stop:
		}
		size := b.size.Next()
		if len(first)+len(b.in) < size {
			b.throttle.Wait(b.rules.Stop)
		}
		b.onlySlow = false
		if first == nil {
			first = b.takeDue(size)
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

// idle reports whether no items are left. If so, the next Add starts a new goroutine.
func (b *Batcher[T]) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = len(b.in)+len(b.retries) > 0
	return !b.running
}

// nextRetry returns a channel that receives a value when the earliest retry is due.
func (b *Batcher[T]) nextRetry() <-chan time.Time {
	if len(b.retries) == 0 {
		return nil
	}
	now := clock.System{}.Now()
	wait := b.wait(b.retries[0], now)
	for _, x := range b.retries[1:] {
		wait = min(wait, b.wait(x, now))
	}
	return time.After(wait)
}

// wait returns the time until x is due. After Stop, every item is due. After Close, every item that
// is slow or not locked is due.
func (b *Batcher[T]) wait(x retryItem[T], now time.Time) time.Duration {
	if isClosed(b.rules.Stop) || (x.slow || !x.locked) && isClosed(b.closing) {
		return 0
	}
	if x.slow {
		return max(0, x.at.Sub(now), b.slowFrom.Sub(now))
	}
	return max(0, x.at.Sub(now))
}

// takeDue removes and returns up to most items that are due for a retry. A slow item is returned
// alone. After Stop, all slow items are returned together, even if there are more than most.
func (b *Batcher[T]) takeDue(most int) (items []T) {
	now := clock.System{}.Now()
	var rest []retryItem[T]
	for _, x := range b.retries {
		fits := len(items) < most && !x.slow && !b.onlySlow
		if x.slow {
			fits = b.onlySlow && isClosed(b.rules.Stop)
		}
		if b.wait(x, now) > 0 || len(items) > 0 && !fits {
			rest = append(rest, x)
			continue
		}
		items, b.onlySlow = append(items, x.item), x.slow
	}
	b.retries = rest
	return items
}

// carryOut makes one call with as many of the items as fit and returns the rest. Each item in the
// call is then done, has been passed to GiveUp, or waits for its own retry.
func (b *Batcher[T]) carryOut(items []T) (rest []T) {
	for try, slow := 1, 0; ; try++ {
		n, locks := min(len(items), b.size.Next()), 0
		left, err := Isolate(items[:n], b.call, func(err error) bool {
			if !b.rules.Locked(err) {
				return b.rules.Refused(err)
			}
			locks++
			return locks <= maxLockedCalls
		}, b.itemRefused)
		items = items[n-len(left):] // Isolate works in order
		if err == nil {
			return items
		}
		slow++
		if !b.timedOut {
			slow = 0
		}
		if b.rules.CallFailed != nil && !isClosed(b.rules.Stop) && (slow == slowTries || slow == 1 && b.onlySlow) {
			b.slowFrom = clock.System{}.Now().Add(slowPause * b.rules.Timeout)
			b.itemFailed(items[0], err, true)
			return items[1:]
		}
		if !b.waitForRetry(len(items), try, err) {
			for _, item := range items {
				b.rules.GiveUp(item, err)
			}
			return nil
		}
	}
}

func (b *Batcher[T]) call(items []T) error {
	ctx, cancel := context.WithTimeout(context.Background(), b.rules.Timeout)
	defer cancel()
	locked, err := b.rules.Do(ctx, items)
	b.timedOut = err != nil && len(items) == 1 && ctx.Err() != nil
	if err == nil || !b.rules.Refused(err) && !b.rules.Locked(err) && !b.onlySlow {
		b.size.Done(len(items), err == nil)
	}
	for _, item := range locked {
		b.itemRefused(item, ErrLocked)
	}
	return err
}

func (b *Batcher[T]) itemRefused(item T, err error) { b.itemFailed(item, err, false) }

// itemFailed passes an item to ItemFailed and schedules the retry that ItemFailed requests. Slow
// items are treated as locked.
func (b *Batcher[T]) itemFailed(item T, err error, slow bool) {
	pause := b.rules.ItemFailed(item, err)
	locked := slow || errors.Is(err, ErrLocked) || b.rules.Locked(err)
	switch {
	case pause == 0:
	case isClosed(b.rules.Stop), !locked && (isClosed(b.closing) || len(b.retries) >= b.rules.MaxWaiting):
		b.rules.GiveUp(item, err)
	default:
		b.retries = append(b.retries, retryItem[T]{
			item: item, at: clock.System{}.Now().Add(pause), locked: locked, slow: slow,
		})
	}
}

// waitForRetry waits as long as CallFailed requests. It returns false if the items will not be
// retried.
func (b *Batcher[T]) waitForRetry(items, try int, err error) bool {
	if b.rules.CallFailed == nil {
		return false
	}
	select {
	case <-time.After(b.rules.CallFailed(items, try, err)):
		return true
	case <-b.rules.Stop:
		return false
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Gap is the minimum time between two calls in a loop in which each call does little work. Items
// that arrive in the meantime share the next call. With half this Gap, peer_burst in tests/bench
// used 33% to 50% more CPU time per post.
const Gap = 40 * time.Millisecond

// Throttle keeps the calls of a busy goroutine at least Gap apart. It is not safe for concurrent
// use.
type Throttle struct {
	// Gather is the minimum wait before a call. The wait lets several items share even the first
	// call after an idle period.
	Gather time.Duration
	ended  time.Time // the end of the last call
}

// Wait blocks until Gap has passed since the last call ended and Gather has passed since Wait was
// called, or until over is closed.
func (t *Throttle) Wait(over <-chan struct{}) {
	select {
	case <-time.After(max(t.Gather, Gap-clock.System{}.Now().Sub(t.ended))):
	case <-over:
	}
}

// Done records the end of a call. The next Wait measures Gap from that time.
func (t *Throttle) Done() { t.ended = clock.System{}.Now() }
