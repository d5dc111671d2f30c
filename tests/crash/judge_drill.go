package main

import "slices"

const (
	codeUnknown = "outcome_unknown"
	exitPanic   = "2" // the status with which a Go program ends in a panic
)

// forgotten finds what the service said or did as if a live post were not: it reported a certain failure, or carried
// out an edit or another scheduling that was asked for after the platform had the post, without republish.
func (p *story) forgotten(v *verdict, out []sent) {
	if len(out) == 0 {
		return
	}
	first := slices.MinFunc(out, func(a, b sent) int { return a.at.Compare(b.at) }).at
	for _, l := range p.accepted {
		if l.At.After(first) {
			v.find(&v.UnknownForgotten, "post %d has been live since %s; %s, asked for at %s without republish, was carried out", p.n, first, l.Do, l.At)
			return
		}
	}
	for _, l := range p.denied {
		if l.At.After(first) {
			v.find(&v.UnknownForgotten, "post %d has been live since %s; at %s it was reported as ERROR %s", p.n, first, l.At, l.Code)
			return
		}
	}
}

// drilled judges the end of a post that a drill was aimed at, where another end is right than for the others; false
// leaves it to the usual rules.
func (p *story) drilled(v *verdict, out []sent) bool {
	live := len(out) > 0
	unknown := p.state == "ERROR" && p.code == codeUnknown
	if p.stuck != "" {
		v.find(&v.HeldUp, "post %d of grade %s did not end %s", p.n, p.grade, p.stuck)
		return p.fault == panics || p.fault == panicsUnsent // what it is in the end, the driver made it
	}
	switch p.fault {
	case silence:
		return unknown && live // its platform was away for longer than anybody asks
	case panicsUnsent:
		if live || p.state != "ERROR" || unknown {
			v.find(&v.FalseFailed, "post %d of grade %s is %s %s, live: %v; its connector panicked before the call", p.n, p.grade, p.state, p.code, live)
		}
		return true
	case noGrant:
		if unknown {
			v.find(&v.FalseFailed, "post %d of grade %s is ERROR %s, live: %v; its outcome was known and could not be stored for a while", p.n, p.grade, p.code, live)
		}
		return unknown
	case lateOutage:
		p.tooLate(v, out)
		return true
	}
	return false
}

// tooLate judges a post that was due longer ago than MAX_LATE: it is given up as missed and never goes out.
func (p *story) tooLate(v *verdict, out []sent) {
	switch {
	case len(out) > 0:
		v.find(&v.LatePublished, "post %d, due at %s, went out at %s", p.n, p.due, out[0].at)
	case p.state != "ERROR" || p.code != "missed":
		v.find(&v.Lost, "post %d, due at %s, is %q %s; it was to be missed", p.n, p.due, p.state, p.code)
	}
}

// watched finds the single posts that were late while a fault was aimed at something else. It says nothing when the
// machine itself stood still.
func watched(v *verdict, lines []line, posts map[int]*story, out map[int][]sent) {
	for _, l := range lines {
		if l.Do != doWatched {
			continue
		}
		if l.Note != "" || l.Millis > stallLimit.Milliseconds() {
			v.Met["unwatched"]++
			continue
		}
		v.Met["watched"] += len(l.Posts)
		for _, n := range l.Posts {
			p := posts[n]
			if p == nil {
				continue // its create was never asked for
			}
			late := heldUpAfter + 1
			if len(out[n]) > 0 {
				late = out[n][0].at.Sub(p.due)
			}
			if late > heldUpAfter {
				v.Met["heldUp "+l.Code]++
			}
			if len(out[n]) == 0 {
				v.find(&v.HeldUp, "post %d, due at %s, was held up by %s and never went out", n, p.due, l.Code)
			} else if late > heldUpAfter {
				v.find(&v.HeldUp, "post %d, due at %s, was held up by %s for %s", n, p.due, l.Code, late)
			}
		}
	}
}
