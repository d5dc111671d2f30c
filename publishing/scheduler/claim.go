package scheduler

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
	"crier/publishing/scheduler/dispatch"
	schedulerstore "crier/publishing/scheduler/store"
)

func (s *Sender) claimRules(window int) schedulerstore.ClaimRules {
	return schedulerstore.ClaimRules{Hold: s.claimHold(), MaxLate: s.cfg.MaxLateness, Window: window, Node: s.db.Node}
}

// Warmup executes the scheduler's large statements with empty input on every idle connection, so
// that Postgres caches their plans. Callers can ignore the error, because the statements also work
// without cached plans.
func (s *Sender) Warmup(ctx context.Context) error { return schedulerstore.Plan(ctx, s.db) }

// claimSplits limits how many statements a single call to Claim may execute to find the rows that
// Postgres rejects.
const claimSplits = 64

// Claim claims due posts for the organizations in wants. For each organization, it visits at most
// window channels. The result also contains the time at which each organization's next post is due.
//
// If Postgres rejects the statement because of one channel's rows, Claim still claims the other
// posts. To find that channel, it repeatedly halves the list of organizations until one is left,
// and then does the same with the organization's channels. It then repairs the channel's hold. If
// Postgres still rejects the claim, Claim sets the channel aside for a while.
//
// If Claim returns an error, unanswered holds the numbers of the statements that may have claimed
// posts although no response arrived. Pass these numbers to GiveBack. A timed-out statement's
// number is included. After a timeout, the next claim should visit fewer channels.
func (s *Sender) Claim(
	ctx context.Context, l dispatch.Lease, wants []dispatch.Want, window int, limits dispatch.ClaimLimits,
) (result dispatch.ClaimResult, unanswered []int64, err error) {
	// Copy the limits, because each statement's claims reduce them for the next statement.
	limits.Platforms, limits.Busy = maps.Clone(limits.Platforms), maps.Clone(limits.Busy)
	if limits.Busy == nil {
		limits.Busy = map[string]int{}
	}
	c := &claimCall{Sender: s, lease: l, limits: limits, result: dispatch.NewClaimResult(), splitsLeft: claimSplits}
	_, err = batch.Isolate(wants, func(some []dispatch.Want) error {
		return c.claim(ctx, some, window)
	}, c.maySplit, func(w dispatch.Want, cause error) {
		c.err = errors.Join(c.err, c.claimChannels(ctx, w, window, cause))
	})
	return c.result, c.unanswered, errors.Join(err, c.err)
}

type claimCall struct {
	*Sender
	lease      dispatch.Lease
	limits     dispatch.ClaimLimits
	result     dispatch.ClaimResult
	unanswered []int64
	splitsLeft int
	err        error
}

func (c *claimCall) maySplit(err error) bool { return pg.IsRefused(err) && c.splitsLeft > 0 }

// claim executes one statement and adds its result to the call's result. If an error leaves it
// unclear whether posts were claimed, claim adds the statement's number to unanswered.
func (c *claimCall) claim(ctx context.Context, wants []dispatch.Want, window int) error {
	c.splitsLeft--
	number := c.claimNumber.Add(1)
	got, err := schedulerstore.Claim(ctx, c.db, c.lease, wants, c.limits, number, c.claimRules(window))
	if err != nil {
		if !pg.IsRefused(err) {
			c.unanswered = append(c.unanswered, number)
		}
		return err
	}
	c.limits.Free -= len(got.Claimed)
	for _, x := range got.Claimed {
		if _, limited := c.limits.Platforms[x.Connector]; limited {
			c.limits.Platforms[x.Connector]--
		}
		c.limits.Busy[x.Destination]++
	}
	c.result.Add(got)
	return nil
}

// claimChannels retries a rejected claim for an organization, with one half of the channel window
// at a time. Once only one channel is left, claimChannels repairs that channel's hold. If Postgres
// still rejects the claim, claimChannels sets the channel aside.
func (c *claimCall) claimChannels(ctx context.Context, w dispatch.Want, window int, cause error) error {
	if window > 1 {
		return c.claimHalves(ctx, w, window)
	}
	repaired, err := schedulerstore.RepairHold(ctx, c.db, w.Org, w.After)
	if err != nil || repaired {
		c.deps.Log.Error("the hold of a channel did not match its posts; it was repaired",
			"org", w.Org, "after", w.After, "cause", cause, "error", err)
	}
	if err != nil {
		repaired = false // the statement may have been rolled back after it returned its row
	}
	if repaired {
		cause = c.claim(ctx, []dispatch.Want{w}, window)
		if cause == nil {
			return nil
		}
	}
	reason := "The database refuses to claim this post: " + pg.Reason(cause)
	channel, err := schedulerstore.SetAsideChannel(ctx, c.db, w.Org, w.After, setAsideFor, reason, c.db.Node)
	if err != nil {
		return err
	}
	c.setAsides.count.Add(1)
	c.deps.Log.Error("the database refuses to claim a post; its channel is set aside",
		"org", w.Org, "channel", channel, "error", cause)
	c.result.More[w.Org] = channel
	return nil
}

// claimHalves claims posts from each half of an organization's channel window. If the organization
// has no more channels after the first half, claimHalves skips the second.
func (c *claimCall) claimHalves(ctx context.Context, w dispatch.Want, window int) error {
	before := len(c.result.Claimed)
	for range 2 {
		delete(c.result.More, w.Org)
		half := w
		half.Permits -= len(c.result.Claimed) - before
		err := c.claim(ctx, []dispatch.Want{half}, window/2)
		if c.maySplit(err) {
			err = c.claimChannels(ctx, half, window/2, err)
		}
		if err != nil {
			return err
		}
		last, more := c.result.More[w.Org]
		if !more {
			return nil
		}
		w.After = last
	}
	return nil
}

// GiveBack puts posts back into the queue that were claimed by statements whose results never
// arrived, and wakes the posts' organizations. It can be called again after an error. A post that
// is not put back stays claimed until its claim expires.
func (s *Sender) GiveBack(ctx context.Context, l dispatch.Lease, unanswered []int64) error {
	orgs, err := schedulerstore.GiveBack(ctx, s.db, l, unanswered, s.db.Node)
	for _, org := range orgs {
		s.deps.Waker.Wake(ctx, org, time.Time{})
	}
	return err
}

const (
	// maxLoads limits the number of posts per statement, and loadTime limits the statement's
	// duration.
	maxLoads = 4096
	loadTime = 4 * time.Second
	// loadsTime limits the duration of a call to Load. The claims on the posts last longer than
	// loadsTime.
	loadsTime = 20 * time.Second
	// loadMisses is the number of consecutive statements that may fail before Load leaves the
	// remaining posts for the next call.
	loadMisses = 4
	// loadRetry is how long to wait before retrying a post that could not be loaded in time, even
	// when it was the only post in the statement.
	loadRetry = time.Minute
)

// Load reads everything needed to send the claimed posts. A post that is no longer claimed is in
// neither map. If another process has since claimed a post, the post's Work has that process's
// token. If a post cannot be read, unreadable holds its outcome; the other posts are not affected.
//
// If Load returns an error, the database is slow or cannot be reached, and the posts in neither map
// were not loaded. After this error, each statement loads fewer posts. The posts are read in random
// order, so that a slow post is not always read together with the same other posts.
func (s *Sender) Load(
	ctx context.Context, claimed []dispatch.Claimed,
) (works map[publishing.PostID]dispatch.Work, unreadable map[publishing.PostID]dispatch.Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, loadsTime)
	defer cancel()
	works = map[publishing.PostID]dispatch.Work{}
	unreadable = map[publishing.PostID]dispatch.Outcome{}
	left, alone := slices.Clone(claimed), []dispatch.Claimed(nil)
	rand.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	for misses := 0; len(left) > 0 && misses < loadMisses; misses++ {
		n := min(len(left), s.loadSize.Next())
		failed := s.load(ctx, left[:n], works, unreadable)
		s.loadSize.Done(n, failed == nil)
		if failed != nil {
			err = failed
			if n == 1 {
				alone = append(alone, left[0])
			}
		} else {
			misses = -1
		}
		left = left[n:]
	}
	if len(works) == 0 {
		return works, unreadable, err
	}
	for _, c := range alone { // other posts were loaded, so the post is the cause, not the database
		unreadable[c.Post] = dispatch.Outcome{
			Org: c.Org, Post: c.Post, Token: c.Token, Result: dispatch.ResultRetry, After: loadRetry,
		}
	}
	return works, unreadable, err
}

func (s *Sender) load(
	ctx context.Context, claimed []dispatch.Claimed,
	works map[publishing.PostID]dispatch.Work, unreadable map[publishing.PostID]dispatch.Outcome,
) error {
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	_, err := batch.Isolate(claimed, func(some []dispatch.Claimed) error {
		posts := make([]publishing.PostID, len(some))
		for i, c := range some {
			posts[i] = c.Post
		}
		got, err := schedulerstore.Load(ctx, s.db, posts)
		for _, w := range got {
			works[w.Post] = w
		}
		return err
	}, func(err error) bool { return !pg.IsEnvironment(err) }, func(c dispatch.Claimed, err error) {
		s.deps.Log.Error("a claimed post cannot be read", "org", c.Org, "post", c.Post, "error", err)
		unreadable[c.Post] = dispatch.Outcome{
			Org: c.Org, Post: c.Post, Token: c.Token, Result: dispatch.ResultError, Code: publishing.CodeRejected,
			Error: "The stored post cannot be read: " + pg.Reason(err),
		}
	})
	return err
}
