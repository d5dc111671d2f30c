package main

import "slices"

const (
	codeUnknown = "outcome_unknown"
	exitPanic   = "2" // exit status of a Go program that panics
)

// checkForgotten reports a post that the service treated as unpublished although it was on the
// platform. Either the service reported a certain failure, or it carried out an edit or schedule
// request without republish that was sent after the platform had the post.
func (p *history) checkForgotten(v *verdict, out []sent) {
	if len(out) == 0 {
		return
	}
	first := slices.MinFunc(out, func(a, b sent) int { return a.at.Compare(b.at) }).at
	for _, l := range p.accepted {
		if l.At.After(first) {
			v.find(&v.UnknownForgotten,
				"post %d has been live since %s; %s, asked for at %s without republish, was carried out",
				p.n, first, l.Do, l.At)
			return
		}
	}
	for _, l := range p.reportedFailed {
		if l.At.After(first) {
			v.find(&v.UnknownForgotten, "post %d has been live since %s; at %s it was reported as ERROR %s", p.n,
				first, l.At, l.Code)
			return
		}
	}
}

// checkDrill checks the end of a post that a drill targeted. It returns false if the usual rules
// apply.
func (p *history) checkDrill(v *verdict, out []sent) bool {
	live := len(out) > 0
	unknown := p.state == "ERROR" && p.code == codeUnknown
	if p.stuckAfter != "" {
		v.find(&v.HeldUp, "post %d of grade %s did not end %s", p.n, p.grade, p.stuckAfter)
		return p.fault == panics || p.fault == panicsUnsent // the driver set its final state
	}
	switch p.fault {
	case silence:
		return unknown && live // the platform was down for longer than the service reconciles
	case panicsUnsent:
		if live || p.state != "ERROR" || unknown {
			v.find(&v.FalseFailed, "post %d of grade %s is %s %s, live: %v; its connector panicked before the call",
				p.n, p.grade, p.state, p.code, live)
		}
		return true
	case noGrant:
		if unknown {
			v.find(&v.FalseFailed,
				"post %d of grade %s is ERROR %s, live: %v; its outcome was known and could not be stored for a while",
				p.n, p.grade, p.code, live)
		}
		return unknown
	case lateOutage:
		p.checkTooLate(v, out)
		return true
	}
	return false
}

// checkTooLate checks a post that was due longer ago than MAX_LATENESS: it must end as missed and
// must never be published.
func (p *history) checkTooLate(v *verdict, out []sent) {
	switch {
	case len(out) > 0:
		v.find(&v.LatePublished, "post %d, due at %s, went out at %s", p.n, p.due, out[0].at)
	case p.state != "ERROR" || p.code != "missed":
		v.find(&v.Lost, "post %d, due at %s, is %q %s; want it missed", p.n, p.due, p.state, p.code)
	}
}

// checkProbes reports probe posts that were late during a drill. It does not judge drills during
// which the machine itself stalled.
func checkProbes(v *verdict, lines []line, posts map[int]*history, out map[int][]sent) {
	for _, l := range lines {
		if l.Do != doProbes {
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
				continue // the ledger has no create request for it
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
