package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verdict is the result of a run. main prints it as the last line.
type verdict struct {
	Suite          string `json:"suite"`
	Faults         int    `json:"faults"`
	Posts          int    `json:"posts"`
	Lost           int    `json:"lost"`
	Twice          int    `json:"twice"`
	OutOfOrder     int    `json:"outOfOrder"`
	FalsePublished int    `json:"falsePublished"`
	FalseFailed    int    `json:"falseFailed"`
	UnknownAC      int    `json:"unknownAC"`
	UnknownE       int    `json:"unknownE"`
	InFlight       int    `json:"commitsInFlightAtFaults"`
	Seed           int64  `json:"seed"`
	// WrongContent counts publications whose text or account is not in the ledger.
	WrongContent int `json:"wrongContent"`
	// DueMoved counts posts whose due time the service changed; only users may change it.
	DueMoved int `json:"dueMoved"`
	// SentAfterStop counts publications of posts that had been taken out of the queue.
	SentAfterStop int `json:"sentAfterStop"`
	// SentWhilePaused counts publications that a pause should have held back.
	SentWhilePaused int `json:"sentWhilePaused"`
	// Bursts counts posts that were held back for a long time and then released without a gap.
	Bursts int `json:"bursts"`
	// LeftBehind counts deleted posts that still exist.
	LeftBehind int `json:"leftBehind"`
	// Errors500 counts responses with status 500.
	Errors500 int `json:"errors500"`

	// UnknownForgotten counts posts that were on the platform, but were reported as failed, or were
	// edited or scheduled without republish.
	UnknownForgotten int `json:"unknownForgotten"`
	// LatePublished counts posts that were published after MAX_LATENESS.
	LatePublished int `json:"latePublished"`
	// HeldUp counts posts that were delayed by a fault with another target.
	HeldUp int `json:"heldUp"`
	// Panicked counts processes that ended in a panic.
	Panicked int `json:"panicked"`
	// Drilled counts the posts of drills. Posts does not include them.
	Drilled int `json:"drilled"`

	// StopsCommitting counts stops between the committing mark and the call, or between the
	// response and the write of the outcome.
	StopsCommitting int `json:"stopsCommitting"`
	// DueDuringFaults is the share of posts that fell due while faults were injected, from 0 to 1.
	DueDuringFaults float64 `json:"dueDuringFaults"`
	Nodes           int     `json:"nodes"`
	Lease           string  `json:"lease"`
	Deadline        string  `json:"requestDeadline"`

	// Met counts faults and changes by kind.
	Met map[string]int `json:"met"`
	// Hit counts, by kind, the drills that took effect.
	Hit map[string]int `json:"hit"`

	// findings has one line for each violation.
	findings []string
	// partial means that the run was restricted to some kinds of faults.
	partial bool
}

// The minimum that a run of full size must have reached to count as evidence.
const (
	fullSize    = 200 // faults
	leastStops  = 20
	leastDuring = 0.8
	leastDrills = 5 // of each kind
)

// enough reports whether the run reached the minimum for its size.
func (v *verdict) enough() bool {
	if v.Faults < fullSize || v.partial {
		return true
	}
	for _, kind := range drills() {
		if v.Hit[kind] < leastDrills {
			return false
		}
	}
	return v.Hit[blackHole] > 0 && v.StopsCommitting >= leastStops && v.DueDuringFaults >= leastDuring
}

// clean reports whether the run had no violations.
func (v *verdict) clean() bool {
	return v.Lost+v.Twice+v.OutOfOrder+v.FalsePublished+v.FalseFailed+v.UnknownAC+v.WrongContent+v.DueMoved+
		v.SentAfterStop+v.SentWhilePaused+v.Bursts+v.LeftBehind+v.Errors500+
		v.UnknownForgotten+v.LatePublished+v.HeldUp+v.Panicked == 0 && v.UnknownE <= v.InFlight
}

func (v *verdict) find(count *int, format string, args ...any) {
	*count++
	v.findings = append(v.findings, fmt.Sprintf(format, args...))
}

// entry is a line of the platform's journal, reduced to the fields that the judge needs.
type entry struct {
	Op      string
	At      time.Time
	Account *struct{ ID, Name string }
	Post    *struct{ ID, Account, Text string }
}

// sent is one publication on the platform.
type sent struct {
	at            time.Time
	account, text string
	// journalIndex gives the order of publication.
	journalIndex int
	post         *history
}

// history is what the ledger records about one post.
type history struct {
	n              int
	fault          string // kind of the drill that the post belongs to
	account, grade string
	// ids are the ids that create requests with the post's key returned.
	ids []string
	// texts are the last acknowledged text and the texts of edits without a certain response.
	texts   []string
	due     time.Time
	created bool
	// touched means that the post was moved or taken out of the queue at some time.
	touched bool
	// unqueuedAt is the time when the post was acknowledged as out of the queue, or zero while it
	// is in the queue.
	unqueuedAt time.Time
	// maybeUnqueued means that a request without a certain response may have taken the post out of
	// the queue.
	maybeUnqueued bool
	// state and code are from the last read.
	state, code string
	// stored and maybeSent are the due time and the "may have been sent" mark in the database at
	// the end.
	stored    time.Time
	maybeSent bool
	// first is the earliest due time that was ever requested.
	first time.Time
	// lateDraft means that one attempt of the draft request got no response, so it may have been
	// carried out after later requests.
	lateDraft bool
	// deleteRequested means that the deletion of the post was requested.
	deleteRequested bool
	// disconnected means that the post's channel was disconnected.
	disconnected bool
	// removed means that the deletion of the post was confirmed.
	removed bool
	// uncertainKeys are the keys of requests with at least one attempt without a certain response.
	uncertainKeys []string
	// accepted are the edit and schedule requests that were carried out.
	accepted []line
	// reportedFailed are the reads that reported a failure other than an unknown outcome.
	reportedFailed []line
	// stuckAfter is the drill after which the post did not end in time, or "" if there was none.
	stuckAfter string
	open       map[string]line
}

// settleFor is how long after a delete the call for a post may still begin if the post was marked
// before the delete: the length of a process stop plus the process's deadline.
const settleFor = 40 * time.Second

// judge compares the ledger with the platforms' journals.
func judge(lines []line, journal []entry) verdict {
	v := verdict{Suite: "crash", Met: map[string]int{}, Hit: map[string]int{}}
	posts, order := readLedger(&v, lines)
	all := readInterruptions(lines)
	all.applyDisconnects(posts)
	v.Met["pauseJudged"] = len(all.spans)
	out := map[int][]sent{}
	names := map[string]string{}
	for i, e := range journal {
		switch {
		case e.Op == "account" && e.Account != nil:
			names[e.Account.ID] = e.Account.Name
		case e.Op == "post" && e.Post != nil:
			n, ok := postNumber(e.Post.Text)
			if !ok || posts[n] == nil {
				v.find(&v.WrongContent, "the platform has a post that was not booked: %q", e.Post.Text)
				continue
			}
			out[n] = append(out[n], sent{at: e.At, account: names[e.Post.Account], text: e.Post.Text, journalIndex: i,
				post: posts[n]})
		}
	}
	for _, n := range order {
		posts[n].check(&v, out[n])
	}
	for _, p := range posts {
		if p.fault == "" {
			v.Posts++
		} else {
			v.Drilled++
		}
	}
	checkProbes(&v, lines, posts, out)
	checkOrder(&v, posts, out)
	all.check(&v, out)
	return v
}

// postNumber returns the number of the post that a text belongs to. Texts begin with "post <number>
// ".
func postNumber(text string) (int, bool) {
	f := strings.Fields(text)
	if len(f) < 2 || f[0] != "post" {
		return 0, false
	}
	n, err := strconv.Atoi(f[1])
	return n, err == nil
}

func readLedger(v *verdict, lines []line) (map[int]*history, []int) {
	posts, order := map[int]*history{}, []int{}
	for _, l := range lines {
		if l.Status == 500 {
			v.find(&v.Errors500, "%s of post %d was answered with 500", l.Do, l.Post)
		}
		switch {
		case l.Do == doFault:
			v.Faults++
			v.Met[l.Code]++
		case l.Do == doHit:
			v.Hit[l.Code]++
		case l.Do == doExit && l.Code == exitPanic:
			v.find(&v.Panicked, "the process in %s ended in a panic at %s", l.Note, l.At)
		case l.Ask:
			v.Met[l.Do]++
		}
		if l.Post == 0 {
			continue
		}
		p := posts[l.Post]
		if p == nil {
			p = &history{n: l.Post, open: map[string]line{}}
			posts[l.Post], order = p, append(order, l.Post)
		}
		p.add(l)
	}
	for _, p := range posts {
		p.close()
	}
	return posts, order
}

// add applies the next line about the post. A request stays open until a response settles whether
// it was carried out.
func (p *history) add(l line) {
	switch {
	case l.Do == doRead || l.Do == doPoll:
		if l.State == "ERROR" && l.Code != codeUnknown {
			p.reportedFailed = append(p.reportedFailed, l)
		}
		if l.Do == doRead {
			p.state, p.code = l.State, l.Code
		}
		return
	case l.Do == doStuck:
		p.stuckAfter = l.Note
		return
	case l.Do == doStale:
		p.created, p.fault, p.account, p.texts, p.due, p.first = true, l.Fault, l.Account, []string{l.Text}, l.Due,
			l.Due
		return
	case l.Do == doStored:
		p.stored, p.maybeSent = l.Due, l.MaybeSent
		return
	}
	if l.Ask {
		if !l.Due.IsZero() && (p.first.IsZero() || l.Due.Before(p.first)) {
			p.first = l.Due
		}
		p.deleteRequested = p.deleteRequested || l.Do == doDelete || l.Do == doGroup
		p.open[l.Key] = l
		return
	}
	asked := p.open[l.Key]
	if l.Status < 200 || l.Status == 429 || l.Status >= 500 {
		p.uncertainKeys = append(p.uncertainKeys, l.Key)
		return // the outcome is open
	}
	delete(p.open, l.Key)
	if l.Status > 299 {
		p.refused(l)
		return
	}
	if asked.Due.Before(l.At) && (l.Do == doCreate || l.Do == doEdit) {
		p.touched = true // the service then uses the time of the write as the due time
	}
	if l.Do == doEdit || l.Do == doSchedule {
		p.accepted = append(p.accepted, asked)
	}
	p.carriedOut(l, asked)
}

// carriedOut applies a successful request. l is its response, and asked is the request.
func (p *history) carriedOut(l, asked line) {
	switch l.Do {
	case doCreate:
		p.created, p.fault, p.account, p.grade, p.texts, p.due = true, asked.Fault, asked.Account, asked.Grade,
			[]string{asked.Text}, asked.Due
		if !slices.Contains(p.ids, l.ID) {
			p.ids = append(p.ids, l.ID)
		}
	case doEdit:
		p.touched = p.touched || !p.due.Equal(asked.Due)
		p.texts, p.due = []string{asked.Text}, asked.Due
	case doDraft:
		p.touched, p.unqueuedAt, p.lateDraft = true, l.At, slices.Contains(p.uncertainKeys, l.Key)
	case doDelete, doGroup:
		// A send in progress may still complete.
		p.touched, p.removed, p.unqueuedAt = true, true, l.At.Add(settleFor)
		if p.first.After(l.At) {
			p.unqueuedAt = l.At // nothing was in progress
		}
	case doSchedule:
		p.unqueuedAt = time.Time{}
	}
}

// refused applies a refused request. It changed nothing, unless an earlier attempt whose response
// was lost was carried out, because these requests have no idempotency key.
func (p *history) refused(l line) {
	if l.Do != doCreate && l.Do != doEdit && slices.Contains(p.uncertainKeys, l.Key) {
		p.maybeUnqueued, p.touched, p.unqueuedAt = true, true, time.Time{}
	}
}

// close marks requests that never got a certain response as possibly carried out.
func (p *history) close() {
	for _, l := range p.open {
		switch l.Do {
		case doEdit:
			p.texts, p.touched = append(p.texts, l.Text), true
		case doDraft, doDelete, doGroup, doSchedule:
			p.maybeUnqueued, p.touched = true, true
		}
	}
}

func (p *history) check(v *verdict, out []sent) {
	for _, s := range out {
		if p.created && (s.account != p.account || !slices.Contains(p.texts, s.text)) {
			v.find(&v.WrongContent, "post %d went out as %q on %s; the ledger has %q on %s", p.n, s.text, s.account,
				p.texts, p.account)
		}
		if !p.unqueuedAt.IsZero() && s.at.After(p.unqueuedAt) {
			v.find(&v.SentAfterStop, "post %d went out at %s, it was out of the queue from %s", p.n, s.at, p.unqueuedAt)
		}
	}
	if len(out) > 1 || len(p.ids) > 1 {
		v.find(&v.Twice, "post %d exists %d times as %v", p.n, len(out), p.ids)
	}
	if !p.touched && !p.stored.IsZero() && !p.stored.Equal(p.due) {
		v.find(&v.DueMoved, "post %d is due at %s, the database has %s", p.n, p.due, p.stored)
	}
	p.checkForgotten(v, out)
	if p.checkDrill(v, out) {
		return
	}
	p.checkEnd(v, len(out) > 0)
}

// checkEnd checks the final state that the service reports.
func (p *history) checkEnd(v *verdict, live bool) {
	out := !p.unqueuedAt.IsZero() || p.maybeUnqueued
	asks := p.grade != "E"
	switch {
	case !p.created && !out:
		v.find(&v.Lost, "post %d: its request was never answered", p.n)
	case p.removed && (!p.disconnected && p.state != "GONE" || p.state == "QUEUE" || p.state == "PUBLISHING" ||
		p.state == "UNKNOWN"):
		v.find(&v.LeftBehind, "post %d is %q, it was deleted", p.n, p.state)
	case p.state == "PUBLISHED" && !live:
		v.find(&v.FalsePublished, "post %d is PUBLISHED, the platform does not have it", p.n)
	case p.state == "PUBLISHED" || out && (!live && p.state != "ERROR" || p.state == "" || p.state == "GONE"):
	case p.lateDraft && p.state == "DRAFT" && !live:
	case p.state == "ERROR" && p.code == codeUnknown && asks:
		v.find(&v.UnknownAC, "post %d of grade %s is ERROR outcome_unknown, live: %v", p.n, p.grade, live)
	case p.state == "ERROR" && p.code == codeUnknown:
		v.UnknownE++
	case p.state == "ERROR":
		v.find(&v.FalseFailed, "post %d of grade %s is ERROR %s, live: %v", p.n, p.grade, p.code, live)
	case live && p.state == "DRAFT" && p.maybeSent && out && !asks:
		// The service gave up its outcome as unknown before it was taken out of the queue.
		v.UnknownE++
	case live:
		v.find(&v.FalseFailed, "post %d is %q in the service, and live on the platform", p.n, p.state)
	default:
		v.find(&v.Lost, "post %d of grade %s is %q and not on the platform", p.n, p.grade, p.state)
	}
}

// checkOrder checks, for each account, that posts which were never touched were published in the
// order of their due times.
func checkOrder(v *verdict, posts map[int]*history, out map[int][]sent) {
	type step struct {
		post *history
		sent sent
	}
	by := map[string][]step{}
	for n, all := range out {
		if p := posts[n]; !p.touched && p.fault != lateOutage {
			by[p.account] = append(by[p.account], step{post: p, sent: all[0]})
		}
	}
	for _, steps := range by {
		slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.sent.journalIndex, b.sent.journalIndex) })
		last := steps[0]
		for _, s := range steps[1:] {
			if s.post.due.Before(last.post.due) {
				v.find(&v.OutOfOrder, "post %d (due %s) went out after post %d (due %s) on %s", s.post.n, s.post.due,
					last.post.n, last.post.due, s.post.account)
			} else {
				last = s
			}
		}
	}
}
