package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verdict is the last line of a run.
type verdict struct {
	Suite           string `json:"suite"`
	Faults          int    `json:"faults"`
	Posts           int    `json:"posts"`
	Lost            int    `json:"lost"`
	Twice           int    `json:"twice"`
	OutOfOrder      int    `json:"outOfOrder"`
	FalsePublished  int    `json:"falsePublished"`
	FalseFailed     int    `json:"falseFailed"`
	UnknownAC       int    `json:"unknownAC"`
	UnknownE        int    `json:"unknownE"`
	InFlight        int    `json:"commitsInFlightAtFaults"`
	Seed            int64  `json:"seed"`
	WrongContent    int    `json:"wrongContent"`    // another text, account or time than the ledger's
	DueMoved        int    `json:"dueMoved"`        // times that the engine wrote, which is the user's alone
	SentAfterStop   int    `json:"sentAfterStop"`   // a call for a post that was taken out of the queue
	SentWhilePaused int    `json:"sentWhilePaused"` // calls that a pause should have kept back
	Bursts          int    `json:"bursts"`          // posts held for long that went out without the gap
	LeftBehind      int    `json:"leftBehind"`      // posts that are still there after they were deleted
	Errors500       int    `json:"errors500"`       // answers with status 500

	UnknownForgotten int `json:"unknownForgotten"` // posts that are live and were reported as failed for certain, or edited or scheduled without republish
	LatePublished    int `json:"latePublished"`    // posts that went out later than MAX_LATE
	HeldUp           int `json:"heldUp"`           // posts that a fault held up which was not aimed at them
	Panicked         int `json:"panicked"`         // processes that ended in a panic
	Drilled          int `json:"drilled"`          // posts of the drills, beside the posts

	StopsCommitting int     `json:"stopsCommitting"` // stops between the mark and the call, or between the answer and its write
	DueDuringFaults float64 `json:"dueDuringFaults"` // share of the posts
	Nodes           int     `json:"nodes"`
	Lease           string  `json:"lease"`
	Deadline        string  `json:"requestDeadline"`

	Met map[string]int `json:"met"` // faults and changes by their kind
	Hit map[string]int `json:"hit"` // drills that met what they are aimed at, by their kind

	findings []string // what is wrong, one line each
	partial  bool     // the run had only some kinds of faults
}

// The least that a run of a full size must have met to say anything.
const (
	fullSize    = 200 // faults
	leastStops  = 20
	leastDuring = 0.8
	leastDrills = 5 // of each kind
)

// enough tells whether a run of that many faults has met what it must.
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

// clean tells whether nothing is wrong.
func (v *verdict) clean() bool {
	return v.Lost+v.Twice+v.OutOfOrder+v.FalsePublished+v.FalseFailed+v.UnknownAC+v.WrongContent+v.DueMoved+v.SentAfterStop+v.SentWhilePaused+v.Bursts+v.LeftBehind+v.Errors500+
		v.UnknownForgotten+v.LatePublished+v.HeldUp+v.Panicked == 0 && v.UnknownE <= v.InFlight
}

func (v *verdict) find(count *int, format string, args ...any) {
	*count++
	v.findings = append(v.findings, fmt.Sprintf(format, args...))
}

// entry is a line of the platform's journal, as far as the judge needs it.
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
	place         int // in the journal
	post          *story
}

// story is what the ledger says of one post.
type story struct {
	n              int
	fault          string // kind of the drill that it was booked for
	account, grade string
	ids            []string // that answered its key
	texts          []string // the last acknowledged, and any asked for whose answer never came
	due            time.Time
	created        bool
	touched        bool      // taken out of the queue, or moved, at some time
	stopped        time.Time // of the answer that took it out of the queue; zero while it is in
	mayBeStopped   bool      // a request whose answer never came
	state, code    string    // as read at the end
	stored         time.Time // its time in the database at the end
	doubt          bool      // the database says then that it may be on the platform
	first          time.Time // the earliest time that it was ever asked for
	lateDraft      bool      // a try to make it a draft was not answered, and may have been carried out after all that followed
	going          bool      // somebody asked for its end
	left           bool      // with its channel
	removed        bool      // and had it confirmed
	tries          []string  // keys of the requests of which one try was not answered for certain
	accepted       []line    // requests to edit it, or to schedule it again, that were carried out
	denied         []line    // answers that say that it failed, and nothing of an unknown outcome
	stuck          string    // what it did not come to an end after
	open           map[string]line
}

// settleFor is how long after a delete a call may begin that was marked before: a stop of the process plus its deadline.
const settleFor = 40 * time.Second

// judge compares what the ledger says with what the platform has.
func judge(lines []line, journal []entry) verdict {
	v := verdict{Suite: "crash", Met: map[string]int{}, Hit: map[string]int{}}
	posts, order := read(&v, lines)
	all := whole(lines)
	all.part(posts)
	v.Met["pauseJudged"] = len(all.spans)
	out := map[int][]sent{}
	names := map[string]string{}
	for i, e := range journal {
		switch {
		case e.Op == "account" && e.Account != nil:
			names[e.Account.ID] = e.Account.Name
		case e.Op == "post" && e.Post != nil:
			n, ok := number(e.Post.Text)
			if !ok || posts[n] == nil {
				v.find(&v.WrongContent, "the platform has a post that nobody booked: %q", e.Post.Text)
				continue
			}
			out[n] = append(out[n], sent{e.At, names[e.Post.Account], e.Post.Text, i, posts[n]})
		}
	}
	for _, n := range order {
		posts[n].judge(&v, out[n])
	}
	for _, p := range posts {
		if p.fault == "" {
			v.Posts++
		} else {
			v.Drilled++
		}
	}
	watched(&v, lines, posts, out)
	inOrder(&v, posts, out)
	all.judge(&v, out)
	return v
}

// number is the post that a text belongs to: texts begin with "post <number> ".
func number(text string) (int, bool) {
	f := strings.Fields(text)
	if len(f) < 2 || f[0] != "post" {
		return 0, false
	}
	n, err := strconv.Atoi(f[1])
	return n, err == nil
}

func read(v *verdict, lines []line) (map[int]*story, []int) {
	posts, order := map[int]*story{}, []int{}
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
			p = &story{n: l.Post, open: map[string]line{}}
			posts[l.Post], order = p, append(order, l.Post)
		}
		p.add(l)
	}
	for _, p := range posts {
		p.close()
	}
	return posts, order
}

// add takes the next line of a post. A request stays open until an answer says for certain what became of it.
func (p *story) add(l line) {
	switch {
	case l.Do == doRead || l.Do == doPoll:
		if l.State == "ERROR" && l.Code != codeUnknown {
			p.denied = append(p.denied, l)
		}
		if l.Do == doRead {
			p.state, p.code = l.State, l.Code
		}
		return
	case l.Do == doStuck:
		p.stuck = l.Note
		return
	case l.Do == doStale:
		p.created, p.fault, p.account, p.texts, p.due, p.first = true, l.Fault, l.Account, []string{l.Text}, l.Due, l.Due
		return
	case l.Do == doStored:
		p.stored, p.doubt = l.Due, l.Doubt
		return
	}
	if l.Ask {
		if !l.Due.IsZero() && (p.first.IsZero() || l.Due.Before(p.first)) {
			p.first = l.Due
		}
		p.going = p.going || l.Do == doDelete || l.Do == doGroup
		p.open[l.Key] = l
		return
	}
	asked := p.open[l.Key]
	if l.Status < 200 || l.Status == 429 || l.Status >= 500 {
		p.tries = append(p.tries, l.Key)
		return // nothing is certain
	}
	delete(p.open, l.Key)
	if l.Status > 299 {
		p.refused(l)
		return
	}
	if asked.Due.Before(l.At) && (l.Do == doCreate || l.Do == doEdit) {
		p.touched = true // it was written after its time, which became the time of the write
	}
	if l.Do == doEdit || l.Do == doSchedule {
		p.accepted = append(p.accepted, asked)
	}
	switch l.Do {
	case doCreate:
		p.created, p.fault, p.account, p.grade, p.texts, p.due = true, asked.Fault, asked.Account, asked.Grade, []string{asked.Text}, asked.Due
		if !slices.Contains(p.ids, l.ID) {
			p.ids = append(p.ids, l.ID)
		}
	case doEdit:
		p.touched = p.touched || !p.due.Equal(asked.Due)
		p.texts, p.due = []string{asked.Text}, asked.Due
	case doDraft:
		p.touched, p.stopped, p.lateDraft = true, l.At, slices.Contains(p.tries, l.Key)
	case doDelete, doGroup:
		p.touched, p.removed, p.stopped = true, true, l.At.Add(settleFor) // what is on its way ends
		if p.first.After(l.At) {
			p.stopped = l.At // nothing is
		}
	case doSchedule:
		p.stopped = time.Time{}
	}
}

// refused leaves all as it was, unless an earlier try whose answer was lost may have worked: these requests carry no key.
func (p *story) refused(l line) {
	if l.Do != doCreate && l.Do != doEdit && slices.Contains(p.tries, l.Key) {
		p.mayBeStopped, p.touched, p.stopped = true, true, time.Time{}
	}
}

// close takes what never got an answer as possible, both ways.
func (p *story) close() {
	for _, l := range p.open {
		switch l.Do {
		case doEdit:
			p.texts, p.touched = append(p.texts, l.Text), true
		case doDraft, doDelete, doGroup, doSchedule:
			p.mayBeStopped, p.touched = true, true
		}
	}
}

func (p *story) judge(v *verdict, out []sent) {
	for _, s := range out {
		if p.created && (s.account != p.account || !slices.Contains(p.texts, s.text)) {
			v.find(&v.WrongContent, "post %d went out as %q on %s; the ledger says %q on %s", p.n, s.text, s.account, p.texts, p.account)
		}
		if !p.stopped.IsZero() && s.at.After(p.stopped) {
			v.find(&v.SentAfterStop, "post %d went out at %s, it was out of the queue from %s", p.n, s.at, p.stopped)
		}
	}
	if len(out) > 1 || len(p.ids) > 1 {
		v.find(&v.Twice, "post %d exists %d times as %v", p.n, len(out), p.ids)
	}
	if !p.touched && !p.stored.IsZero() && !p.stored.Equal(p.due) {
		v.find(&v.DueMoved, "post %d is due at %s, the database has %s", p.n, p.due, p.stored)
	}
	p.forgotten(v, out)
	if p.drilled(v, out) {
		return
	}
	p.end(v, len(out) > 0)
}

// end judges how the service says that the post ended.
func (p *story) end(v *verdict, live bool) {
	out := !p.stopped.IsZero() || p.mayBeStopped
	asks := p.grade != "E"
	switch {
	case !p.created && !out:
		v.find(&v.Lost, "post %d: its request was never answered", p.n)
	case p.removed && (!p.left && p.state != "GONE" || p.state == "QUEUE" || p.state == "PUBLISHING" || p.state == "UNKNOWN"):
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
	case live && p.state == "DRAFT" && p.doubt && out && !asks:
		v.UnknownE++ // taken out of the queue after its outcome was given up as unknown, which it still is
	case live:
		v.find(&v.FalseFailed, "post %d is %q in the service, and live on the platform", p.n, p.state)
	default:
		v.find(&v.Lost, "post %d of grade %s is %q and not on the platform", p.n, p.grade, p.state)
	}
}

// inOrder checks each account: what was never touched goes out by its due time.
func inOrder(v *verdict, posts map[int]*story, out map[int][]sent) {
	type step struct {
		post *story
		sent sent
	}
	by := map[string][]step{}
	for n, all := range out {
		if p := posts[n]; !p.touched && p.fault != lateOutage {
			by[p.account] = append(by[p.account], step{p, all[0]})
		}
	}
	for _, steps := range by {
		slices.SortFunc(steps, func(a, b step) int { return cmp.Compare(a.sent.place, b.sent.place) })
		last := steps[0]
		for _, s := range steps[1:] {
			if s.post.due.Before(last.post.due) {
				v.find(&v.OutOfOrder, "post %d (due %s) went out after post %d (due %s) on %s", s.post.n, s.post.due, last.post.n, last.post.due, s.post.account)
			} else {
				last = s
			}
		}
	}
}
