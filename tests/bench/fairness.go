package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Many organizations have posts due at the same time, and a few have a single post each.
const (
	crowdSize     = 600
	crowdPosts    = 100
	crowdChannels = 4
	whalePosts    = 10_000
	whaleChannels = 40
	lonely        = 41 // one is due every lonelyEvery, in the ten seconds after the due time
	lonelyEvery   = 250 * time.Millisecond
	fullSize      = 100_000 // the value of -posts that gives these sizes
)

// fairness measures how long single posts wait while many other organizations have much to publish.
// Its floor is the same posts without the other organizations.
func fairness(ctx context.Context, r *rig) error {
	for _, latency := range []time.Duration{0, 200 * time.Millisecond} {
		alone := contest{latency: latency}
		floor, err := alone.run(ctx, r)
		if err != nil {
			return err
		}
		crowded := contest{
			latency: latency, crowd: max(2, crowdSize*r.opts.posts/fullSize),
			whale: max(crowdPosts, whalePosts*r.opts.posts/fullSize),
		}
		ours, err := crowded.run(ctx, r)
		if err != nil {
			return err
		}
		if err := r.emit(m{
			"bench": "fairness", "unit": "ms of the latest single post", "latencyMs": latency.Milliseconds(),
			"crowd": crowded.crowd, "crowdPosts": crowdPosts, "whalePosts": crowded.whale, "singles": len(ours.late),
			"ours": ms(quantile(ours.late, 1)), "floor": ms(quantile(floor.late, 1)),
			"ratio": ms(quantile(ours.late, 1)) / ms(quantile(floor.late, 1)),
			"p50Ms": ms(quantile(ours.late, .5)), "floorP50Ms": ms(quantile(floor.late, .5)),
			"slowestToFastest": ours.last.Seconds() / max(time.Millisecond, ours.first).Seconds(),
			"crowdFirstDoneMs": ms(ours.first), "crowdLastDoneMs": ms(ours.last), "whalePostsOut": ours.whale,
			"twice": ours.twice, "outOfOrder": ours.outOfOrder,
		}); err != nil {
			return err
		}
	}
	return nil
}

// contest has the single posts, many organizations with crowdPosts posts each, and one organization
// with very many posts.
type contest struct {
	latency time.Duration
	// crowd is the number of the many organizations, and whale the number of posts of the largest
	// one. Both may be 0.
	crowd, whale int
}

// contestResult is the measurement of a contest.
type contestResult struct {
	late []time.Duration // of the single posts
	// first and last are the times until the first and until the last organization of the crowd had
	// published all its posts.
	first, last time.Duration
	// whale is the number of posts that the largest organization had published by then.
	whale             int
	twice, outOfOrder int
}

// run returns when the single posts and the crowd's posts are published. The largest organization
// may still have posts.
func (x contest) run(ctx context.Context, r *rig) (out contestResult, err error) {
	posts := x.crowd*crowdPosts + x.whale
	err = r.withDB(ctx, func(b *testDB) (err error) {
		due := now().Add(ahead + time.Duration(posts/fillRate)*time.Second).Truncate(time.Second)
		few, crowd, err := x.fill(ctx, b, due)
		if err != nil {
			return err
		}
		b.platform.begin(x.latency)
		n, err := b.serve(ctx, b.opts.settings...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.stop()) }()
		if err := untilDue(ctx, due); err != nil {
			return err
		}
		small := lonely + crowdChannels*x.crowd // number of channels
		if err := b.awaitPosts(ctx, small, lonely+crowdPosts*x.crowd); err != nil {
			return err
		}
		s := b.platform.end()
		out.first, out.last = ends(s, crowd, due)
		out.late, out.whale, out.twice, out.outOfOrder = s.latest(few), len(s.late)-s.below(small), s.twice,
			s.outOfOrder
		return nil
	})
	return out, err
}

// fill inserts all posts. The channels of the few come first, then the channels of the crowd.
func (x contest) fill(ctx context.Context, b *testDB, due time.Time) (few, crowd []tenant, err error) {
	few, err = b.createTenants(ctx, lonely, 1)
	if err != nil {
		return nil, nil, err
	}
	if err := b.bookSingles(ctx, few, due); err != nil {
		return nil, nil, err
	}
	if x.crowd > 0 {
		crowd, err = b.createTenants(ctx, x.crowd, crowdChannels)
		if err != nil {
			return nil, nil, err
		}
		whale, err := b.createTenants(ctx, 1, whaleChannels)
		if err != nil {
			return nil, nil, err
		}
		// The posts of the largest organization come before all others.
		if _, err := b.insertPosts(ctx, x.whale, spread(whale, due)); err != nil {
			return nil, nil, err
		}
		if _, err := b.insertPosts(ctx, x.crowd*crowdPosts, spread(crowd, due)); err != nil {
			return nil, nil, err
		}
	}
	return few, crowd, b.settle(ctx)
}

// bookSingles inserts one post for each of the few, lonelyEvery apart.
func (b *testDB) bookSingles(ctx context.Context, few []tenant, first time.Time) error {
	_, err := b.insertPosts(ctx, len(few), func(i int) booking {
		return booking{tenant: &few[i], number: 1, due: first.Add(time.Duration(i) * lonelyEvery)}
	})
	return err
}

// latest returns the worst lateness of each of the few, sorted.
func (s *measurement) latest(few []tenant) (late []time.Duration) {
	for _, t := range few {
		late = append(late, s.worst[strconv.Itoa(t.first)])
	}
	slices.Sort(late)
	return late
}

// awaitPosts waits until the platform has this number of posts of the channels numbered below
// channel.
func (b *testDB) awaitPosts(ctx context.Context, channel, posts int) error {
	patience, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for {
		n := b.platform.below(channel)
		if n >= posts {
			return nil
		}
		if err := wait(patience, 50*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d posts reached the platform: %w", n, posts, err)
		}
	}
}

func (p *platform) below(channel int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.below(channel)
}

// below returns the number of posts of the channels numbered below channel, if none was lost.
func (s *measurement) below(channel int) (n int) {
	for name, last := range s.last {
		c, err := strconv.Atoi(name)
		if err != nil || c >= channel {
			continue
		}
		n += last
	}
	return n
}

// ends returns the times, measured from the due time, when the first and the last of the
// organizations had published all their posts.
func ends(s *measurement, all []tenant, due time.Time) (first, last time.Duration) {
	for i, t := range all {
		end := time.Duration(0)
		for c := range t.channels {
			end = max(end, s.ends[strconv.Itoa(t.first+c)].Sub(due))
		}
		if i == 0 || end < first {
			first = end
		}
		last = max(last, end)
	}
	return first, last
}
