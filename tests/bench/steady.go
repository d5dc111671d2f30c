package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	steadyRate = 500 // posts per second
	bookers    = 16
)

// steady measures an even stream of posts that are booked ahead of time through the API and survive
// a restart of the service, which also stops every actor. Its floor is a loop of timers that makes
// the same calls to the same platform.
func steady(ctx context.Context, r *rig) error {
	count := steadyRate * r.opts.seconds
	return r.withDB(ctx, func(b *testDB) error {
		n, err := b.serve(ctx, append(r.opts.settings, unlimited)...)
		if err != nil {
			return err
		}
		all, err := b.createTenants(ctx, 1000, 1)
		if err != nil {
			return errors.Join(err, n.stop())
		}
		due := now().Add(r.opts.ahead + time.Duration(count/150)*time.Second).Truncate(time.Second)
		at := func(i int) time.Time {
			return due.Add(time.Duration(i) * time.Second / steadyRate).Truncate(time.Millisecond)
		}
		c := newClient(n, bookers)
		_, err = drive(bookers, func(i int) bool { return i >= count }, func(i int) error {
			t := all[i%len(all)]
			return c.book(ctx, t, 0, at(i), content(t.first, i/len(all)+1, at(i)))
		})
		ahead := due.Sub(now())
		err = errors.Join(err, n.stop())
		if err != nil {
			return err
		}
		ours, used, err := b.streaming(ctx, due, count)
		if err != nil {
			return err
		}
		floor, err := r.timers(ctx, count)
		if err != nil {
			return err
		}
		ratio := ms(quantile(ours.late, .99)) / ms(quantile(floor.late, .99))
		line := m{
			"bench": "steady", "unit": "ms lateness p99", "postsPerSecond": steadyRate, "seconds": r.opts.seconds,
			"posts": count, "bookedAheadSeconds": ahead.Seconds(), "restarts": 1,
			"ours": ms(quantile(ours.late, .99)), "floor": ms(quantile(floor.late, .99)), "ratio": ratio,
			"latenessP50Ms": ms(quantile(ours.late, .5)), "latenessMaxMs": ms(quantile(ours.late, 1)),
			"floorP50Ms": ms(quantile(floor.late, .5)), "seen": len(ours.late), "twice": ours.twice,
			"outOfOrder": ours.outOfOrder,
		}
		used.addTo(line, count)
		return r.emit(line)
	})
}

// streaming restarts the service and measures the stream to its end. The cost starts at the first
// due time.
func (b *testDB) streaming(ctx context.Context, due time.Time, count int) (s *measurement, used cost, err error) {
	b.platform.begin(0)
	n, err := b.serve(ctx, b.opts.settings...)
	if err != nil {
		return nil, used, err
	}
	defer func() { err = errors.Join(err, n.stop()) }()
	if err := until(ctx, due); err != nil {
		return nil, used, err
	}
	before, err := b.cost(ctx, n)
	if err != nil {
		return nil, used, err
	}
	profiled := b.profiled(ctx, n)
	_, err = (burst{posts: count}).published(ctx, b)
	if err == nil {
		used, err = b.cost(ctx, n)
	}
	s = b.platform.end()
	slices.Sort(s.late)
	return s, used.since(before), errors.Join(err, profiled())
}

// timers makes the calls with nothing but timers.
func (r *rig) timers(ctx context.Context, count int) (*measurement, error) {
	r.platform.begin(0)
	// Like the service, it opens a new connection for each irreversible call.
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	due := now().Add(2 * time.Second)
	var group sync.WaitGroup
	errs := make(chan error, count)
	for i := range count {
		at := due.Add(time.Duration(i) * time.Second / steadyRate)
		group.Add(1)
		time.AfterFunc(at.Sub(now()), func() {
			defer group.Done()
			errs <- r.send(ctx, &c, i, at)
		})
	}
	group.Wait()
	for range count {
		if err := <-errs; err != nil {
			return nil, err
		}
	}
	s := r.platform.end()
	slices.Sort(s.late)
	return s, nil
}

func (r *rig) send(ctx context.Context, c *http.Client, i int, at time.Time) error {
	text := content(i, 1, at)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.platform.address+"/api/posts",
		strings.NewReader(`{"text":"`+text+`","key":"`+text+`"}`))
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}
