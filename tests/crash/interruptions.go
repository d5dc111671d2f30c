package main

import (
	"fmt"
	"slices"
	"time"
)

// span is a time span in which some accounts were certainly paused.
type span struct {
	accounts []string
	// from is the time of the response to the pause. to is the time of the request to resume, or
	// zero if there was none.
	from, to time.Time
	// inFlight is the number of calls in progress according to the response.
	inFlight int
}

// disconnected holds the time when the disconnect of an account was acknowledged, or zero if it was
// not.
type disconnected struct{ at time.Time }

// interruptions holds the pauses and disconnects in the ledger.
type interruptions struct {
	spans       []span
	disconnects map[string]disconnected // by account
}

// readInterruptions reads the pauses and disconnects. It leaves out a pause that follows a resume
// with an unanswered attempt, because that attempt may have ended the pause.
func readInterruptions(lines []line) interruptions {
	b := interruptions{disconnects: map[string]disconnected{}}
	asked, open, doubtful := map[string]line{}, map[string]int{}, map[string]bool{}
	for _, l := range lines {
		if l.Ask {
			asked[l.Key] = l
		}
		accounts := asked[l.Key].Accounts
		subject := fmt.Sprint(accounts)
		i, paused := open[subject]
		switch {
		case l.Do == doResume && l.Ask && paused:
			b.spans[i].to = l.At
			delete(open, subject)
		case l.Do == doResume && !certain(l.Status):
			doubtful[subject] = doubtful[subject] || !l.Ask
		case l.Do == doPause && !l.Ask && l.Status == 200 && !doubtful[subject]:
			open[subject] = len(b.spans)
			b.spans = append(b.spans, span{accounts: accounts, from: l.At, inFlight: l.InFlight})
		case l.Do == doDisconnect && l.Ask:
			b.disconnects[accounts[0]] = disconnected{}
		case l.Do == doDisconnect && certain(l.Status):
			// A 404 is also certain: an earlier attempt was carried out.
			b.disconnects[accounts[0]] = disconnected{at: l.At}
		}
	}
	return b
}

// applyDisconnects marks the posts of disconnected accounts as removed.
func (b interruptions) applyDisconnects(posts map[int]*history) {
	for _, p := range posts {
		f, left := b.disconnects[p.account]
		switch {
		case !left:
			continue
		case f.at.IsZero():
			p.maybeUnqueued = true
		case p.first.After(f.at):
			p.removed, p.unqueuedAt = true, f.at // the send cannot have begun yet
		case p.unqueuedAt.IsZero():
			p.removed, p.unqueuedAt = true, f.at.Add(settleFor)
		}
		p.deleteRequested, p.disconnected = true, true
	}
}

// check reports publications during a pause and bursts after it.
func (b interruptions) check(v *verdict, out map[int][]sent) {
	by := map[string][]sent{}
	for _, all := range out {
		for _, s := range all {
			by[s.account] = append(by[s.account], s)
		}
	}
	for account := range by {
		slices.SortFunc(by[account], func(a, b sent) int { return a.at.Compare(b.at) })
	}
	for _, s := range b.spans {
		s.checkNothingSent(v, by)
		for _, account := range s.accounts {
			s.checkGaps(v, by[account])
		}
	}
}

// checkNothingSent checks that posts which fell due during the pause are not published in it. Of
// the posts that were due earlier, at most as many as were in flight may be.
func (s span) checkNothingSent(v *verdict, by map[string][]sent) {
	ended := 0
	for _, account := range s.accounts {
		for _, x := range by[account] {
			switch {
			case !x.at.After(s.from) || !s.to.IsZero() && x.at.After(s.to):
			case x.post.first.After(s.from):
				v.find(&v.SentWhilePaused, "post %d, due at %s, went out at %s; %s was paused from %s to %s",
					x.post.n, x.post.first, x.at, account, s.from, s.to)
			case !x.post.deleteRequested:
				ended++
			}
		}
	}
	if ended > s.inFlight {
		v.find(&v.SentWhilePaused, "%d posts went out of %v from %s to %s, while it was paused; %d were in flight",
			ended, s.accounts, s.from, s.to, s.inFlight)
	}
}

// checkGaps checks that posts which were held back for a long time are published one by one.
func (s span) checkGaps(v *verdict, all []sent) {
	if s.to.IsZero() {
		return
	}
	var last *sent
	for _, x := range all {
		if x.post.touched || !x.at.After(s.to) ||
			!x.post.first.After(s.from) || !x.post.first.Before(s.to.Add(-lateAfter)) {
			continue
		}
		if last != nil && x.at.Sub(last.at) < lateGap {
			v.find(&v.Bursts, "post %d went out %s after post %d; both were held by a pause until %s", x.post.n,
				x.at.Sub(last.at), last.post.n, s.to)
		}
		last = &x
	}
}
