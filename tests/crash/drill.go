package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
)

// drill makes a fault of the kinds that are aimed at something. All but a silence last alone: no other fault begins
// before they are over.
func (t *traffic) drill(ctx context.Context, s strike) error {
	if s.Kind == silence {
		t.background.Go(func() error { return t.silence(ctx, s) })
		return nil
	}
	t.network.Lock() // a silent network would be one more fault
	defer t.network.Unlock()
	switch s.Kind {
	case hang1, hang4:
		return t.hang(ctx, s)
	case refusedRow:
		return t.refuseRow(ctx, s)
	case noGrant:
		return t.takeGrant(ctx, s)
	case lateOutage:
		return t.outlast(ctx)
	case panics:
		return t.panic(ctx, s)
	default:
		return t.blackHole(ctx, s)
	}
}

// hit notes that a fault has met what it is aimed at.
func (t *traffic) hit(kind string) error { return t.ledger.write(line{Do: doHit, Code: kind}) }

// numbers returns so many numbers of posts that nobody has yet.
func (t *traffic) numbers(n int) (out []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range n {
		t.last++
		out = append(out, t.last)
	}
	return out
}

// plan makes a booking on a channel for a drill; it is not sent yet.
func (t *traffic) plan(kind string, channel int, due time.Time, words string) booking {
	n := t.numbers(1)[0]
	b := booking{N: n, Channel: channel, Fault: kind, Text: fmt.Sprintf("post %d %s", n, words), Due: due.Sub(t.start).Truncate(time.Millisecond)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.extra = append(t.extra, b)
	return b
}

// bookAll sends bookings, many at once.
func (t *traffic) bookAll(ctx context.Context, all []booking) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(clients)
	for _, b := range all {
		g.Go(func() error { return t.create(ctx, b) })
	}
	return g.Wait()
}

// bookingTime is how long before the first of so many posts is due they must begin to be booked.
func bookingTime(posts int) time.Duration {
	return time.Second + time.Duration(posts)*50*time.Millisecond
}

// on returns the channel of the drill that a fault is aimed at.
func (t *traffic) on(s strike) int { return t.stage[s.Kind][s.Nth%len(t.stage[s.Kind])] }

// exec runs statements past the service, one after the other.
func (t *traffic) exec(ctx context.Context, statements ...string) error {
	return t.query(ctx, func(c *pgx.Conn) error {
		for _, sql := range statements {
			if _, err := c.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
}

// countWhere returns how many of the posts a condition holds for, as the database says.
func (t *traffic) countWhere(ctx context.Context, all []booking, condition string) (n int, err error) {
	ids := []string{}
	for _, b := range all {
		ids = append(ids, t.id(b.N))
	}
	err = t.value(ctx, &n, "select count(*) from post where id = any($1::text[]::uuid[]) and ("+condition+")", ids)
	return n, err
}

// until waits until a condition holds for all of the posts, and starts processes that end meanwhile; false means that
// the time was over first.
func (t *traffic) until(ctx context.Context, end time.Time, all []booking, condition string) (bool, error) {
	for {
		n, err := t.countWhere(ctx, all, condition)
		if err != nil || n == len(all) {
			return err == nil, err
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err := t.revive(ctx); err != nil {
			return false, err
		}
		pause(ctx, 50*time.Millisecond)
	}
}

const (
	hasEnded  = "state in ('PUBLISHED', 'ERROR')"
	published = "state = 'PUBLISHED'"
)

// calm waits until single posts go out at once again after the faults before; false means that they never did.
func (t *traffic) calm(ctx context.Context) (bool, error) {
	for end := time.Now().Add(calmLimit); ctx.Err() == nil && time.Now().Before(end); {
		var all []booking
		due := time.Now().Add(time.Second)
		for _, c := range t.stage[probe] {
			all = append(all, t.plan(probe, c, due, "before a drill"))
		}
		if err := t.bookAll(ctx, all); err != nil {
			return false, err
		}
		if ok, err := t.until(ctx, time.Now().Add(heldUpAfter), all, published); ok || err != nil {
			return ok, err
		}
	}
	return false, ctx.Err()
}

const (
	calmLimit   = 45 * time.Second
	heldUpAfter = 3 * time.Second        // a single post that is later than this was held up: the deadline of a call is longer, and nothing else is
	stallLimit  = 500 * time.Millisecond // a machine that stands still for so long may be late by itself
	probeEvery  = 800 * time.Millisecond
)

// watched lets a fault happen while single posts of other organizations fall due, and notes which they are: the judge
// tells which were held up. The fault begins at the given time, when the posts in its bookings fall due, and returns
// when it is over; those of them that are probes are watched too. The first single post is due after lead.
func (t *traffic) watched(ctx context.Context, kind string, lead, span time.Duration, aim func(start time.Time) []booking, fault func(start time.Time, aimed []booking) error) error {
	calm, err := t.calm(ctx)
	if err != nil {
		return err
	}
	probes := len(t.stage[probe]) * int(span/probeEvery)
	start := time.Now().Add(bookingTime(probes + 2*len(t.stage[kind])))
	aimed := aim(start)
	all, watched := slices.Clone(aimed), []int{}
	for _, b := range aimed {
		if b.Fault == probe {
			watched = append(watched, b.N)
		}
	}
	for i := range int(span / probeEvery) {
		for _, c := range t.stage[probe] {
			b := t.plan(probe, c, start.Add(lead+time.Duration(i)*probeEvery), "while "+kind)
			all, watched = append(all, b), append(watched, b.N)
		}
	}
	if err := t.bookAll(ctx, all); err != nil {
		return err
	}
	late := max(0, -time.Until(start))
	stalled := stalls(ctx)
	pause(ctx, time.Until(start))
	err = fault(start, aimed)
	pause(ctx, time.Until(start.Add(lead+span+heldUpAfter)))
	note := line{Do: doWatched, Code: kind, Posts: watched, Millis: (late + stalled()).Milliseconds()}
	if !calm {
		note.Note, note.Posts = "single posts did not go out in time before it", nil
	}
	return errors.Join(err, t.ledger.write(note))
}

// stalls measures how much longer than asked this process sleeps, until the returned function is called: what it
// returns is the worst.
func stalls(ctx context.Context) func() time.Duration {
	const step = 50 * time.Millisecond
	ctx, stop := context.WithCancel(ctx)
	var worst time.Duration
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			pause(ctx, step)
			worst = max(worst, time.Since(began)-step)
		}
	})
	return func() time.Duration {
		stop()
		done.Wait()
		return worst
	}
}
