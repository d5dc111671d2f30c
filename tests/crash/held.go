package main

import (
	"fmt"
	"slices"
	"time"
)

// span is a time in which some accounts were paused, for certain.
type span struct {
	accounts []string
	from, to time.Time // the answer to the pause, the request to resume; zero = never
	inFlight int       // calls that had begun, as the answer says
}

// farewell is the disconnect of an account. The answer's time is zero when none came.
type farewell struct{ at time.Time }

// beyond is what the ledger says of more than one post.
type beyond struct {
	spans     []span
	farewells map[string]farewell // by account
}

// whole reads pauses and disconnects. A pause after a resume of which a try was lost is left out: that try may have opened it.
func whole(lines []line) beyond {
	b := beyond{farewells: map[string]farewell{}}
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
		case l.Do == doLeave && l.Ask:
			b.farewells[accounts[0]] = farewell{}
		case l.Do == doLeave && certain(l.Status):
			b.farewells[accounts[0]] = farewell{l.At} // also when an earlier try was the one that did it
		}
	}
	return b
}

// part tells the posts of a disconnected account that they were removed.
func (b beyond) part(posts map[int]*story) {
	for _, p := range posts {
		f, left := b.farewells[p.account]
		switch {
		case !left:
			continue
		case f.at.IsZero():
			p.mayBeStopped = true
		case p.first.After(f.at):
			p.removed, p.stopped = true, f.at // it cannot have begun
		case p.stopped.IsZero():
			p.removed, p.stopped = true, f.at.Add(settleFor)
		}
		p.going, p.left = true, true
	}
}

// judge tells of calls while a pause lasted, and of what burst out after it.
func (b beyond) judge(v *verdict, out map[int][]sent) {
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
		s.quiet(v, by)
		for _, account := range s.accounts {
			s.gaps(v, by[account])
		}
	}
}

// quiet: what fell due in the pause does not go out, and of what was due before only what was in flight.
func (s span) quiet(v *verdict, by map[string][]sent) {
	ended := 0
	for _, account := range s.accounts {
		for _, x := range by[account] {
			switch {
			case !x.at.After(s.from) || !s.to.IsZero() && x.at.After(s.to):
			case x.post.first.After(s.from):
				v.find(&v.SentWhilePaused, "post %d, due at %s, went out at %s; %s was paused from %s to %s", x.post.n, x.post.first, x.at, account, s.from, s.to)
			case !x.post.going:
				ended++
			}
		}
	}
	if ended > s.inFlight {
		v.find(&v.SentWhilePaused, "%d posts went out of %v from %s to %s, while it was paused; %d were in flight", ended, s.accounts, s.from, s.to, s.inFlight)
	}
}

// gaps: what was held for long goes out one by one.
func (s span) gaps(v *verdict, all []sent) {
	if s.to.IsZero() {
		return
	}
	var last *sent
	for _, x := range all {
		if x.post.touched || !x.post.first.After(s.from) || !x.post.first.Before(s.to.Add(-lateAfter)) || !x.at.After(s.to) {
			continue
		}
		if last != nil && x.at.Sub(last.at) < lateGap {
			v.find(&v.Bursts, "post %d went out %s after post %d; both were held by a pause until %s", x.post.n, x.at.Sub(last.at), last.post.n, s.to)
		}
		last = &x
	}
}
