package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// The crowd that falls due at once, and the few who only want their one post out meanwhile.
const (
	crowdSize   = 600
	crowdPosts  = 100
	whalePosts  = 10_000
	lonely      = 40
	lonelyEvery = 250 * time.Millisecond
	fill        = 75 * time.Second // for the filling in of the crowd
)

// fairness is how long one organization's single post waits while many others have very much to publish; its floor is the same posts without the others.
func fairness(ctx context.Context, r *rig) error {
	for _, latency := range []time.Duration{0, 200 * time.Millisecond} {
		alone, _, err := r.single(ctx, latency, false)
		if err != nil {
			return err
		}
		late, share, err := r.single(ctx, latency, true)
		if err != nil {
			return err
		}
		line := m{
			"bench": "fairness", "unit": "ms of the latest single post", "latencyMs": latency.Milliseconds(), "crowd": crowdSize, "crowdPosts": crowdPosts, "whalePosts": whalePosts, "singles": len(late),
			"ours": ms(quantile(late, 1)), "floor": ms(quantile(alone, 1)), "ratio": ms(quantile(late, 1)) / ms(quantile(alone, 1)), "p50Ms": ms(quantile(late, .5)), "floorP50Ms": ms(quantile(alone, .5)),
			"slowestToFastest": share,
		}
		if err := r.emit(line); err != nil {
			return err
		}
	}
	return nil
}

// single runs the lonely posts, and tells how late each was; with the crowd also how much later the slowest of its organizations was done than the fastest.
func (r *rig) single(ctx context.Context, latency time.Duration, crowded bool) (late []time.Duration, slowest float64, err error) {
	err = r.with(ctx, func(b *base) (err error) {
		few, err := b.people(ctx, lonely, 1)
		if err != nil {
			return err
		}
		due := now().Add(ahead + fill).Truncate(time.Second)
		if _, err := b.book(ctx, lonely, func(i int) booking {
			return booking{tenant: &few[i], number: 1, due: due.Add(time.Duration(i) * lonelyEvery)}
		}); err != nil {
			return err
		}
		posts, crowd := lonely, []tenant(nil)
		if crowded {
			if crowd, err = b.crowd(ctx, due); err != nil {
				return err
			}
			posts += crowdSize*crowdPosts + whalePosts
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		b.platform.begin(latency)
		n, err := b.serve(ctx, b.opts.settings...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.stop()) }()
		if spare := due.Sub(now()); spare < 2*time.Second {
			return fmt.Errorf("the posts were due %v after the service was ready", spare)
		}
		if err := until(ctx, due.Add(lonely*lonelyEvery)); err != nil {
			return err
		}
		if _, err := (burst{posts: posts}).published(ctx, b); err != nil {
			return err
		}
		s := b.platform.end()
		for i := range few {
			at := s.ends[strconv.Itoa(few[i].first)]
			late = append(late, at.Sub(due.Add(time.Duration(i)*lonelyEvery)))
		}
		slices.Sort(late)
		slowest = spreadOf(s, crowd, due)
		return nil
	})
	return late, slowest, err
}

// crowd books what falls due at once: organizations of four channels, and a whale of forty.
func (b *base) crowd(ctx context.Context, due time.Time) ([]tenant, error) {
	crowd, err := b.people(ctx, crowdSize, 4)
	if err != nil {
		return nil, err
	}
	whale, err := b.people(ctx, 1, 40)
	if err != nil {
		return nil, err
	}
	if _, err := b.book(ctx, crowdSize*crowdPosts, spread(crowd, due)); err != nil {
		return nil, err
	}
	_, err = b.book(ctx, whalePosts, spread(whale, due))
	return crowd, err
}

// spreadOf is how much longer the organization that was done last took than the one that was done first.
func spreadOf(s *seen, all []tenant, due time.Time) float64 {
	if len(all) == 0 {
		return 1
	}
	var took []time.Duration
	for _, t := range all {
		end := time.Duration(0)
		for c := range t.channels {
			end = max(end, s.ends[strconv.Itoa(t.first+c)].Sub(due))
		}
		took = append(took, end)
	}
	return slices.Max(took).Seconds() / max(time.Millisecond, slices.Min(took)).Seconds()
}
