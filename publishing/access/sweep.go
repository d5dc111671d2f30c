package access

import (
	"context"
	"errors"
	"sync"
	"time"

	"crier/platform/pg"
	accessstore "crier/publishing/access/store"
	"crier/publishing/connector"
)

const (
	// sweepEach is the maximum number of channels to refresh per platform in one sweep.
	sweepEach = 100
	// sweepAtOnce is the maximum number of concurrent refreshes per platform.
	sweepAtOnce = 4
	// sweepFailures is the number of consecutive failures after which a platform's remaining
	// channels are left for a later sweep. Only transient and unknown failures count, because other
	// failures are not the platform's fault.
	sweepFailures = 8
	// sweepRest is how long to wait before retrying a channel whose refresh failed.
	sweepRest = 10 * time.Minute
)

// Sweep refreshes the channels whose credentials expire soon and returns the number of channels
// that received a new credential. Several processes may sweep at the same time. After a crash, the
// next sweep continues where this one stopped.
//
// An unresponsive platform delays only its own channels. If a platform rejects one channel, for
// example because of the organization's application, the platform's other channels are not delayed.
// A channel whose refresh fails is retried after ten minutes.
func (k *Refresher) Sweep(ctx context.Context) (int, error) {
	due, err := accessstore.RefreshDue(ctx, k.db, sweepEach, sweepRest)
	if err != nil {
		return 0, err
	}
	platforms := map[string]*platformSweep{}
	for _, d := range due {
		if platforms[d.Connector] == nil {
			platforms[d.Connector] = &platformSweep{queue: make(chan accessstore.DueRefresh, len(due))}
		}
		platforms[d.Connector].queue <- d
	}
	var wg sync.WaitGroup
	for _, p := range platforms {
		close(p.queue)
		for range sweepAtOnce {
			wg.Go(func() { p.run(ctx, k) })
		}
	}
	wg.Wait()
	done, failed := 0, error(nil)
	for _, p := range platforms {
		done, failed = done+p.done, errors.Join(failed, p.failed)
	}
	return done, failed
}

// platformSweep is one platform's part of a sweep.
type platformSweep struct {
	queue chan accessstore.DueRefresh

	mu     sync.Mutex // protects the fields below
	done   int
	inARow int // consecutive failures
	failed error
}

// run refreshes channels until the queue is empty, ctx ends, the platform has failed too often, or
// the database returns an error. Any remaining channels are due again after sweepRest.
func (p *platformSweep) run(ctx context.Context, k *Refresher) {
	for d := range p.queue {
		p.mu.Lock()
		stop := ctx.Err() != nil || p.inARow >= sweepFailures || p.failed != nil
		p.mu.Unlock()
		if stop {
			return
		}
		ok, refused, err := k.refreshDue(ctx, d)
		p.mu.Lock()
		switch {
		case ok:
			p.done, p.inARow = p.done+1, 0
		case !refused:
			p.inARow++
		}
		p.failed = errors.Join(p.failed, err)
		p.mu.Unlock()
	}
}

// refreshDue refreshes one channel. refused is true if the channel or its application, rather than
// the platform, caused the refresh to fail. err is set only for a database error. Any other error
// is logged, and the channel is flagged if it must be reconnected.
func (k *Refresher) refreshDue(ctx context.Context, d accessstore.DueRefresh) (ok, refused bool, err error) {
	a, err := accessstore.ChannelAccess(ctx, k.db, d.Org, d.Channel)
	if pg.IsNoRows(err) {
		return false, true, nil
	}
	if err != nil {
		return false, false, err
	}
	c, err := k.Open(a)
	if err == nil {
		err = k.refreshGuarded(ctx, c)
		k.Flag(ctx, c, err)
	}
	if err == nil {
		return true, false, nil
	}
	k.deps.Log.Warn("cannot refresh a channel's credentials before they expire",
		"org", d.Org, "channel", d.Channel, "connector", d.Connector, "error", err)
	kind := connector.KindOf(err, false)
	return false, kind != connector.KindTransient && kind != connector.KindUnknown, nil
}

// refreshGuarded calls Refresh and converts a panic to an error. An unrecovered panic would end the
// process, because the sweep runs in its own goroutines.
func (k *Refresher) refreshGuarded(ctx context.Context, c *Channel) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = connector.Recovered(v)
		}
	}()
	_, err = k.Refresh(ctx, c)
	return err
}
