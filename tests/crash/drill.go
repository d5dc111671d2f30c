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

// drill injects a fault that has a target. Except for a silence, it returns after the fault has
// ended, so that no other fault overlaps it.
func (t *traffic) drill(ctx context.Context, s fault) error {
	if s.Kind == silence {
		t.background.Go(func() error { return t.silence(ctx, s) })
		return nil
	}
	t.network.Lock() // wait until network faults have ended
	defer t.network.Unlock()
	switch s.Kind {
	case hang1, hang4:
		return t.hang(ctx, s)
	case refusedRow:
		return t.refuseRow(ctx, s)
	case noGrant:
		return t.revokeGrant(ctx, s)
	case lateOutage:
		return t.outlastMaxLate(ctx)
	case panics:
		return t.panicInConnector(ctx, s)
	default:
		return t.blackHole(ctx, s)
	}
}

// hit records that a drill took effect on its target.
func (t *traffic) hit(kind string) error { return t.ledger.write(line{Do: doHit, Code: kind}) }

// newNumbers returns n unused post numbers.
func (t *traffic) newNumbers(n int) (out []int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for range n {
		t.last++
		out = append(out, t.last)
	}
	return out
}

// plan returns a new booking on a channel for a drill. The booking is not sent yet.
func (t *traffic) plan(kind string, channel int, due time.Time, words string) booking {
	n := t.newNumbers(1)[0]
	b := booking{N: n, Channel: channel, Fault: kind, Text: fmt.Sprintf("post %d %s", n, words),
		Due: due.Sub(t.start).Truncate(time.Millisecond)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.extra = append(t.extra, b)
	return b
}

// bookAll sends bookings concurrently.
func (t *traffic) bookAll(ctx context.Context, all []booking) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(clients)
	for _, b := range all {
		g.Go(func() error { return t.create(ctx, b) })
	}
	return g.Wait()
}

// bookingTime returns how long before their due time the booking of this number of posts must
// begin.
func bookingTime(posts int) time.Duration {
	return time.Second + time.Duration(posts)*50*time.Millisecond
}

// drillChannel returns the channel that a drill targets.
func (t *traffic) drillChannel(s fault) int {
	return t.drillChannels[s.Kind][s.Nth%len(t.drillChannels[s.Kind])]
}

// exec runs statements directly on the database, in order.
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

// countWhere returns the number of the posts that satisfy an SQL condition.
func (t *traffic) countWhere(ctx context.Context, all []booking, condition string) (n int, err error) {
	ids := []string{}
	for _, b := range all {
		ids = append(ids, t.id(b.N))
	}
	err = t.value(ctx, &n, "select count(*) from post where id = any($1::text[]::uuid[]) and ("+condition+")", ids)
	return n, err
}

// until waits until a condition holds for all the posts, and restarts processes that end in the
// meantime. It returns false if it reached end first.
func (t *traffic) until(ctx context.Context, end time.Time, all []booking, condition string) (bool, error) {
	for {
		n, err := t.countWhere(ctx, all, condition)
		if err != nil || n == len(all) {
			return err == nil, err
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err := t.restartEnded(ctx); err != nil {
			return false, err
		}
		pause(ctx, 50*time.Millisecond)
	}
}

const (
	hasEnded  = "state in ('PUBLISHED', 'ERROR')"
	published = "state = 'PUBLISHED'"
)

// awaitRecovery waits until probe posts are published in time again after earlier faults. It
// returns false if that takes longer than recoveryLimit.
func (t *traffic) awaitRecovery(ctx context.Context) (bool, error) {
	for end := time.Now().Add(recoveryLimit); ctx.Err() == nil && time.Now().Before(end); {
		var all []booking
		due := time.Now().Add(time.Second)
		for _, c := range t.drillChannels[probe] {
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
	recoveryLimit = 45 * time.Second
	// A probe post later than this was held up. Only the deadline of a call is longer.
	heldUpAfter = 3 * time.Second
	stallLimit  = 500 * time.Millisecond // a longer stall of the machine explains a late post
	probeEvery  = 800 * time.Millisecond
)

// runWithProbes runs a fault while probe posts of other organizations fall due, and records the
// numbers of the probe posts for the judge. The first probe post is due after lead.
//
// aim plans the posts that the fault targets; probe posts among them are watched too. fault is
// called when these posts fall due, and returns when the fault has ended.
func (t *traffic) runWithProbes(
	ctx context.Context, kind string, lead, span time.Duration,
	aim func(start time.Time) []booking, fault func(start time.Time, aimed []booking) error,
) error {
	recovered, err := t.awaitRecovery(ctx)
	if err != nil {
		return err
	}
	probes := len(t.drillChannels[probe]) * int(span/probeEvery)
	start := time.Now().Add(bookingTime(probes + 2*len(t.drillChannels[kind])))
	aimed := aim(start)
	all, watched := slices.Clone(aimed), []int{}
	for _, b := range aimed {
		if b.Fault == probe {
			watched = append(watched, b.N)
		}
	}
	for i := range int(span / probeEvery) {
		for _, c := range t.drillChannels[probe] {
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
	note := line{Do: doProbes, Code: kind, Posts: watched, Millis: (late + stalled()).Milliseconds()}
	if !recovered {
		note.Note, note.Posts = "single posts did not go out in time before it", nil
	}
	return errors.Join(err, t.ledger.write(note))
}

// stalls begins to measure how much longer sleeps of this process take than requested. The returned
// function stops the measurement and returns the maximum.
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
