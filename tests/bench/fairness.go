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
	crowdSize     = 600
	crowdPosts    = 100
	crowdChannels = 4
	whalePosts    = 10_000
	whaleChannels = 40
	lonely        = 41 // one every lonelyEvery, from the due time until ten seconds later
	lonelyEvery   = 250 * time.Millisecond
	full          = 100_000 // -posts at which these are the sizes
)

// fairness is how long one organization's single post waits while many others have very much to publish; its floor is the same posts without the others.
func fairness(ctx context.Context, r *rig) error {
	for _, latency := range []time.Duration{0, 200 * time.Millisecond} {
		alone := contest{latency: latency}
		floor, err := alone.run(ctx, r)
		if err != nil {
			return err
		}
		crowded := contest{latency: latency, crowd: max(2, crowdSize*r.opts.posts/full), whale: max(crowdPosts, whalePosts*r.opts.posts/full)}
		ours, err := crowded.run(ctx, r)
		if err != nil {
			return err
		}
		if err := r.emit(m{
			"bench": "fairness", "unit": "ms of the latest single post", "latencyMs": latency.Milliseconds(), "crowd": crowded.crowd, "crowdPosts": crowdPosts, "whalePosts": crowded.whale, "singles": len(ours.late),
			"ours": ms(quantile(ours.late, 1)), "floor": ms(quantile(floor.late, 1)), "ratio": ms(quantile(ours.late, 1)) / ms(quantile(floor.late, 1)), "p50Ms": ms(quantile(ours.late, .5)), "floorP50Ms": ms(quantile(floor.late, .5)),
			"slowestToFastest": ours.last.Seconds() / max(time.Millisecond, ours.first).Seconds(), "crowdFirstDoneMs": ms(ours.first), "crowdLastDoneMs": ms(ours.last), "whalePostsOut": ours.whale,
			"twice": ours.twice, "outOfOrder": ours.outOfOrder,
		}); err != nil {
			return err
		}
	}
	return nil
}

// contest is the single posts beside organizations of crowdPosts posts, and one of very many.
type contest struct {
	latency      time.Duration
	crowd, whale int // organizations of the crowd and posts of the whale; none without
}

// share is who got how much of it.
type share struct {
	late              []time.Duration // of the single posts
	first, last       time.Duration   // when the first and the last organization of the crowd was done
	whale             int             // posts of the whale that were out by then
	twice, outOfOrder int
}

// run ends with the single posts and the crowd; the whale may still be at it.
func (x contest) run(ctx context.Context, r *rig) (out share, err error) {
	posts := x.crowd*crowdPosts + x.whale
	err = r.with(ctx, func(b *base) (err error) {
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
		small := lonely + crowdChannels*x.crowd // channels
		if err := b.out(ctx, small, lonely+crowdPosts*x.crowd); err != nil {
			return err
		}
		s := b.platform.end()
		out.first, out.last = ends(s, crowd, due)
		out.late, out.whale, out.twice, out.outOfOrder = s.latest(few), len(s.late)-s.below(small), s.twice, s.outOfOrder
		return nil
	})
	return out, err
}

// fill books everything. The channels of the few come first, then those of the crowd.
func (x contest) fill(ctx context.Context, b *base, due time.Time) (few, crowd []tenant, err error) {
	if few, err = b.people(ctx, lonely, 1); err != nil {
		return nil, nil, err
	}
	if err := b.bookSingles(ctx, few, due); err != nil {
		return nil, nil, err
	}
	if x.crowd > 0 {
		if crowd, err = b.people(ctx, x.crowd, crowdChannels); err != nil {
			return nil, nil, err
		}
		whale, err := b.people(ctx, 1, whaleChannels)
		if err != nil {
			return nil, nil, err
		}
		// The whale was first: its posts stand before everybody's.
		if _, err := b.book(ctx, x.whale, spread(whale, due)); err != nil {
			return nil, nil, err
		}
		if _, err := b.book(ctx, x.crowd*crowdPosts, spread(crowd, due)); err != nil {
			return nil, nil, err
		}
	}
	return few, crowd, b.settle(ctx)
}

// bookSingles books a post for each of the few, one after the other.
func (b *base) bookSingles(ctx context.Context, few []tenant, first time.Time) error {
	_, err := b.book(ctx, len(few), func(i int) booking {
		return booking{tenant: &few[i], number: 1, due: first.Add(time.Duration(i) * lonelyEvery)}
	})
	return err
}

// latest is how late the worst post of each of the few was, sorted.
func (s *seen) latest(few []tenant) (late []time.Duration) {
	for _, t := range few {
		late = append(late, s.worst[strconv.Itoa(t.first)])
	}
	slices.Sort(late)
	return late
}

// out waits until the platform has so many posts of the channels below one.
func (b *base) out(ctx context.Context, channel, posts int) error {
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

// below is how many posts the channels below one have, none of them lost.
func (s *seen) below(channel int) (n int) {
	for name, last := range s.last {
		if c, err := strconv.Atoi(name); err == nil && c < channel {
			n += last
		}
	}
	return n
}

// ends is when the first and the last of the organizations had its last post out, from the due time on.
func ends(s *seen, all []tenant, due time.Time) (first, last time.Duration) {
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
