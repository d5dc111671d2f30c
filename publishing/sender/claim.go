package sender

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"crier/platform/batch"
	"crier/platform/pg"
	"crier/publishing"
	publishingstore "crier/publishing/store"
)

func (s *Sender) rules(window int) publishingstore.ClaimRules {
	return publishingstore.ClaimRules{Hold: s.hold(), MaxLate: s.cfg.MaxLate, Window: window, Node: s.deps.Node}
}

// Warmup has Postgres plan the large statements on every connection before the first posts are due.
func (s *Sender) Warmup(ctx context.Context) error { return s.store.Plan(ctx) }

// claimSplits is how many claims one call of Claim may send while it looks for what Postgres refuses.
const claimSplits = 64

// Claim takes due posts of the wanted organizations, looking at a window of so many channels of each, and returns when
// each has more. Where Postgres refuses a claim because of what one channel's rows say, the others are claimed without
// it: first the organizations are halved, then the channels of the one that is left. That channel's hold is repaired,
// and if it is refused all the same, it is set aside for a while.
//
// With an error, lost has the numbers of the claims that may have been stored although their answer never came: they
// go to GiveBack. A claim that ran out of time is among them; the next one should look at fewer channels.
func (s *Sender) Claim(ctx context.Context, l publishing.Lease, wants []publishing.Want, window int, limits publishing.ClaimLimits) (round publishing.ClaimResult, lost []int64, err error) {
	limits.Platforms, limits.Busy = maps.Clone(limits.Platforms), maps.Clone(limits.Busy) // what one statement takes, the next must not take again
	if limits.Busy == nil {
		limits.Busy = map[string]int{}
	}
	c := &claiming{Sender: s, lease: l, limits: limits, round: publishing.NewClaimResult(), left: claimSplits}
	_, err = batch.Isolate(wants, func(some []publishing.Want) error {
		return c.claim(ctx, some, window)
	}, c.blame, func(w publishing.Want, cause error) {
		c.err = errors.Join(c.err, c.channels(ctx, w, window, cause))
	})
	return c.round, c.lost, errors.Join(err, c.err)
}

// claiming is one call of Claim.
type claiming struct {
	*Sender
	lease  publishing.Lease
	limits publishing.ClaimLimits
	round  publishing.ClaimResult
	lost   []int64
	left   int
	err    error
}

func (c *claiming) blame(err error) bool { return pg.IsRefused(err) && c.left > 0 }

// claim sends one statement and adds what it brought.
func (c *claiming) claim(ctx context.Context, wants []publishing.Want, window int) error {
	c.left--
	number := c.number.Add(1)
	got, err := c.store.Claim(ctx, c.lease, wants, c.limits, number, c.rules(window))
	if err != nil {
		if !pg.IsRefused(err) {
			c.lost = append(c.lost, number)
		}
		return err
	}
	c.limits.Free -= len(got.Claimed)
	for _, x := range got.Claimed {
		if _, limited := c.limits.Platforms[x.Connector]; limited {
			c.limits.Platforms[x.Connector]--
		}
		c.limits.Busy[x.Place]++
	}
	c.round.Add(got)
	return nil
}

// channels claims the channels of one organization that was refused, half of the window at a time.
func (c *claiming) channels(ctx context.Context, w publishing.Want, window int, cause error) error {
	if window > 1 {
		before := len(c.round.Claimed)
		for range 2 {
			delete(c.round.More, w.Org)
			half := w
			half.Permits -= len(c.round.Claimed) - before
			err := c.claim(ctx, []publishing.Want{half}, window/2)
			if c.blame(err) {
				err = c.channels(ctx, half, window/2, err)
			}
			if err != nil {
				return err
			}
			last, more := c.round.More[w.Org]
			if !more {
				return nil
			}
			w.After = last
		}
		return nil
	}
	if repaired, err := c.store.RepairHold(ctx, w.Org, w.After); err != nil || repaired {
		c.deps.Log.Error("the hold of a channel did not agree with its posts; it was repaired", "org", w.Org, "after", w.After, "cause", cause, "error", err)
		if err == nil {
			if err = c.claim(ctx, []publishing.Want{w}, window); err == nil {
				return nil
			}
			cause = err
		}
	}
	channel, err := c.store.SetAsideChannel(ctx, w.Org, w.After, asideFor, "The database refuses to claim this post: "+pg.Reason(cause), c.deps.Node)
	if err != nil {
		return err
	}
	c.aside.count.Add(1)
	c.deps.Log.Error("the database refuses to claim a post; its channel is set aside", "org", w.Org, "channel", channel, "error", cause)
	c.round.More[w.Org] = channel
	return nil
}

// GiveBack returns to the queue what claims took whose answer never came, and wakes whose posts they are.
func (s *Sender) GiveBack(ctx context.Context, l publishing.Lease, lost []int64) error {
	orgs, err := s.store.GiveBack(ctx, l, lost, s.deps.Node)
	for _, org := range orgs {
		s.deps.Waker.Wake(ctx, org, time.Time{})
	}
	return err
}

const (
	loadsAtOnce = 4096             // posts in one statement
	loadTime    = 4 * time.Second  // of one statement
	loadsTime   = 20 * time.Second // of one call of Load: the posts that it has loaded are claimed for longer
	loadMisses  = 4                // statements in a row that fail before the rest is left for the next call
	loadAgain   = time.Minute      // until a post is tried again that alone could not be loaded in time
)

// Load reads what sending needs, by post. What was deleted or taken over meanwhile is left out; a post that cannot be
// read has an outcome instead, and does not keep the others from being sent. An error means that the database is away
// or slow: nothing is known of the posts that are in neither map. After such an error, statements are smaller; posts
// come in any order, so that none is always read with the same others.
func (s *Sender) Load(ctx context.Context, claimed []publishing.Claimed) (works map[publishing.PostID]publishing.Work, unreadable map[publishing.PostID]publishing.Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadsTime)
	defer cancel()
	works, unreadable = map[publishing.PostID]publishing.Work{}, map[publishing.PostID]publishing.Outcome{}
	left, alone := slices.Clone(claimed), []publishing.Claimed(nil)
	rand.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	for misses := 0; len(left) > 0 && misses < loadMisses; misses++ {
		n := min(len(left), s.loading.Next())
		failed := s.load(ctx, left[:n], works, unreadable)
		s.loading.Done(n, failed == nil)
		switch {
		case failed == nil:
			misses = -1
		case n == 1:
			alone = append(alone, left[0])
			fallthrough
		default:
			err = failed
		}
		left = left[n:]
	}
	for _, c := range alone {
		if len(works) > 0 { // it is the post, not the database
			unreadable[c.Post] = publishing.Outcome{Org: c.Org, Post: c.Post, Token: c.Token, Result: publishing.ResultRetry, After: loadAgain}
		}
	}
	return works, unreadable, err
}

func (s *Sender) load(ctx context.Context, claimed []publishing.Claimed, works map[publishing.PostID]publishing.Work, unreadable map[publishing.PostID]publishing.Outcome) error {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	_, err := batch.Isolate(claimed, func(some []publishing.Claimed) error {
		posts := make([]publishing.PostID, len(some))
		for i, c := range some {
			posts[i] = c.Post
		}
		got, err := s.store.Load(ctx, posts)
		for _, w := range got {
			works[w.Post] = w
		}
		return err
	}, func(err error) bool { return !pg.IsEnvironment(err) }, func(c publishing.Claimed, err error) {
		s.deps.Log.Error("a claimed post cannot be read", "org", c.Org, "post", c.Post, "error", err)
		unreadable[c.Post] = publishing.Outcome{Org: c.Org, Post: c.Post, Token: c.Token, Result: publishing.ResultError, Code: publishing.CodeRejected,
			Error: "The stored post cannot be read: " + pg.Reason(err)}
	})
	return err
}
