package worker

import (
	"context"
	"slices"
	"time"

	"crier/platform/batch"
	"crier/publishing/scheduler/dispatch"
	"crier/tenancy"
)

// claimWidth is the maximum number of organizations in one claim.
const claimWidth = 512

// claimGather is how long the first claim after a pause waits for other organizations whose posts
// are due at the same time.
const claimGather = 5 * time.Millisecond

func (w *Worker) claimLoop(ctx, sending context.Context) {
	pace := batch.Throttle{Gather: claimGather}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.deps.Offers.Ready():
		case <-w.ready:
		}
		for ctx.Err() == nil {
			if w.claimable() < claimWidth {
				pace.Wait(ctx.Done())
			}
			if !w.claim(ctx, sending) {
				break
			}
			pace.Done()
		}
		w.claiming.End()
	}
}

// claimable returns the number of organizations that a claim could serve now.
func (w *Worker) claimable() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return min(w.deps.Offers.Len(), max(0, w.free))
}

// claim claims posts for the organizations whose turn it is. It returns false if no organization is
// waiting or no permit is free.
func (w *Worker) claim(ctx, sending context.Context) bool {
	w.claiming.Begin()
	w.mu.Lock()
	free := max(0, w.free)
	grants := w.deps.Offers.Take(free, claimWidth)
	wants := make([]dispatch.Want, len(grants))
	for i, g := range grants {
		wants[i] = w.scans.want(g.Org, g.Permits)
	}
	w.free -= permitsOf(wants)
	w.mu.Unlock()
	for i, x := range w.spans.split(wants) {
		w.claiming.Begin()
		if i > 0 && ctx.Err() != nil {
			// The process is stopping.
			w.settle(x, dispatch.ClaimResult{}, w.deps.Clock.Now(), ctx.Err())
			continue
		}
		free -= w.claimSpan(ctx, sending, x, free)
	}
	return len(grants) > 0
}

func permitsOf(wants []dispatch.Want) (n int) {
	for _, want := range wants {
		n += want.Permits
	}
	return n
}

// claimSpan claims the posts in a span and starts sending them. It returns the number of posts
// claimed, even if part of the claim failed.
func (w *Worker) claimSpan(ctx, sending context.Context, x span, free int) int {
	asked := w.deps.Clock.Now()
	round, err := w.claimOnce(ctx, x, free)
	w.limits.spend(round.Claimed)
	for _, c := range round.Claimed {
		w.destinations.take(c.Destination)
	}
	if err != nil && ctx.Err() == nil {
		w.deps.Log.Warn("some posts could not be claimed",
			"organizations", len(x.wants), "claimed", len(round.Claimed), "error", err)
	}
	// Granted must be called before Done. Settle now, before the first post can end.
	w.settle(x, round, asked, err)
	w.sendClaimed(sending, round)
	return len(round.Claimed)
}

// settle releases the permits that a claim did not use, and responds to the offers in the claim.
func (w *Worker) settle(x span, round dispatch.ClaimResult, asked time.Time, err error) {
	w.release(permitsOf(x.wants) - len(round.Claimed))
	w.answerOffers(x, round, asked, err != nil)
}

// claimTime is the time limit for a claim. Stop does not interrupt a claim in progress. Otherwise,
// posts that had already been claimed would wait until their claims expire.
const claimTime = 5 * time.Second

func (w *Worker) claimOnce(ctx context.Context, x span, free int) (dispatch.ClaimResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTime)
	defer cancel()
	limits := dispatch.ClaimLimits{Platforms: w.limits.left(), Busy: w.destinations.busy(), Free: free}
	round, lost, err := w.deps.Claimer.Claim(ctx, w.deps.Lease(), x.wants, x.window, limits)
	w.spans.done(x, len(lost) == 0 || ctx.Err() == nil)
	if len(lost) > 0 {
		w.mu.Lock()
		for _, number := range lost {
			w.lostClaims = append(w.lostClaims, lostClaim{number: number, at: w.deps.Clock.Now()})
		}
		w.lostClaims = w.lostClaims[max(0, len(w.lostClaims)-maxLostClaims):]
		w.mu.Unlock()
		w.SweepNow()
	}
	return round, err
}

// lostClaimAge is how long a claim whose response was lost can still commit. It is longer than the
// server's statement timeout.
const lostClaimAge = 20 * time.Second

// maxLostClaims is the maximum number of lost claims to keep track of. If there are more, the
// oldest are forgotten, and their posts are reaped when the claims expire.
const maxLostClaims = 1000

// giveBack requeues the posts from claims whose responses were lost.
func (w *Worker) giveBack(ctx context.Context, lease dispatch.Lease) error {
	w.mu.Lock()
	lost := slices.Clone(w.lostClaims)
	w.mu.Unlock()
	if len(lost) == 0 {
		return nil
	}
	numbers := make([]int64, len(lost))
	for i, x := range lost {
		numbers[i] = x.number
	}
	now := w.deps.Clock.Now()
	if err := w.deps.Claimer.GiveBack(ctx, lease, numbers); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lostClaims = slices.DeleteFunc(w.lostClaims, func(x lostClaim) bool {
		return slices.Contains(numbers, x.number) && now.Sub(x.at) > lostClaimAge
	})
	return nil
}

// How long an organization must wait after a failed claim before it makes another offer. aloneWait
// applies if the claim was for a single organization with a reduced window. It leaves at least half
// of the claim loop's time for the other organizations.
const (
	refusedWait = time.Second
	aloneWait   = 5 * time.Second
)

// answerOffers responds to the offers in a claim. If the claim failed, it refuses the offers of
// organizations that received no post. These organizations make new offers soon.
func (w *Worker) answerOffers(x span, round dispatch.ClaimResult, asked time.Time, failed bool) {
	wait := refusedWait
	if x.window < dispatch.ClaimWindow {
		wait = aloneWait
	}
	claimed := map[tenancy.OrgID]int{}
	for _, c := range round.Claimed {
		claimed[c.Org]++
	}
	if !round.Now.IsZero() {
		w.deps.Actors.SetNow(round.Now, asked)
	}
	for _, want := range x.wants {
		n := claimed[want.Org]
		if failed && n == 0 {
			w.deps.Actors.Refused(want.Org, wait)
			w.scans.restart(want.Org)
			continue
		}
		next, done := w.scans.advance(want, round, n)
		if !done {
			w.deps.Offers.Offer(want.Org, want.Permits)
			continue
		}
		w.deps.Actors.Granted(want.Org, n, next, round.Now)
		for _, name := range round.AtLimit[want.Org] {
			if isDestination(name) {
				w.destinations.enqueue(name, want.Org)
			} else {
				w.limits.enqueue(want.Org, name)
			}
		}
	}
	w.destinations.claimed(x.wants)
}
