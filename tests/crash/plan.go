package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// The kinds of faults.
const (
	killed    = "kill"      // SIGKILL, then a new start
	stopped   = "stop"      // SIGSTOP for longer than the lease
	haltKill  = "haltKill"  // stops itself at a point, then SIGKILL
	haltGo    = "haltGo"    // stops itself at a point for longer than the lease, then goes on
	haltLong  = "haltLong"  // the same for longer than its claims, until others have sent again what it had
	haltTwice = "haltTwice" // stops itself before the mark until another node has its post out, and that one stops before it writes so
	pgFast    = "pgFast"    // Postgres is stopped by SIGINT
	pgNow     = "pgNow"     // by SIGQUIT
	pgKill    = "pgKill"    // by SIGKILL
	redisLost = "redisLost" // Redis ends with all that it held, and an empty one comes after a while
	redisHang = "redisHang" // Redis is silent for a while
	cut       = "cut"       // a node's place in the cluster is silent to the others for a while
)

// The kinds of drills: faults that are aimed at one tenant, one row or one part while nothing else is wrong.
const (
	silence    = "silence"    // the answer of a post is lost, then its platform fails for longer than UNKNOWN_FOR and BACKOFF_FOR together
	panics     = "panic"      // the connector panics over one post
	hang1      = "hang1"      // one machine of a platform accepts and never answers
	hang4      = "hang4"      // four do
	refusedRow = "refusedRow" // Postgres refuses what is written of one post, or a queue row and its posts disagree
	noGrant    = "noGrant"    // the scheduler may not write a table for ten seconds
	lateOutage = "lateOutage" // everything is down until many posts are past MAX_LATE
	blackHole  = "blackHole"  // connections to Postgres are open and pass nothing on
	probe      = "probe"      // no fault: posts of organizations that no drill is aimed at
)

// kinds are all faults.
func kinds() []string {
	return append([]string{killed, stopped, haltKill, haltGo, haltLong, haltTwice, pgFast, pgNow, pgKill, redisLost, redisHang, cut, blackHole}, drills()...)
}

// panicsUnsent is what a post is booked for over which the connector panics before its call.
const panicsUnsent = "panicUnsent"

// drills are all of them but the black hole, in the order in which they take turns: a short run has the short ones.
func drills() []string {
	return []string{lateOutage, panics, refusedRow, silence, noGrant, hang1, hang4}
}

const (
	drillEvery = 4  // one of so many faults is a drill
	holeEvery  = 25 // one of so many drills is a black hole
)

// strike is one fault.
type strike struct {
	Kind   string
	Node   int
	Point  string
	Hold   time.Duration // how long it stays stopped or down
	Offset time.Duration // of the clock of the process that is started after it
	At     time.Duration // from the first fault on
	Nth    int           // of its kind, from 0
}

// booking is one post and what becomes of it.
type booking struct {
	N       int
	Channel int
	Text    string
	Due     time.Duration // from the beginning of the faults
	Book    time.Duration // likewise; zero = before the faults begin
	Fault   string        // kind of the drill that it was booked for
	Do      string        // what is done to it later; "" = nothing
	At      time.Duration // when
	NewText string
	NewDue  time.Duration
	Hold    time.Duration // how long a pause lasts
	All     bool          // the pause is of the whole organization
}

// leave is the disconnect of a channel.
type leave struct {
	Channel int
	At      time.Duration
}

// plan is the whole schedule of a run, made of its seed.
type plan struct {
	Strikes  []strike
	Bookings []booking
	Leaves   []leave
}

func newPlan(s settings, channels int) plan {
	r := rand.New(rand.NewPCG(uint64(s.Seed), 1))
	var p plan
	nth := map[string]int{}
	for i := range s.Faults {
		strike := newStrike(r, s.Nodes, time.Duration(i)*s.Pace)
		kind := s.drill(i)
		x, err := findMutant(s.Mutant)
		aimed := err == nil && x.strike != "" && i%3 == 0
		if aimed {
			kind = x.strike
		}
		for range 10_000 { // what the others need beside their kind comes of chance
			if kind == "" || kind == strike.Kind || isDrill(kind) {
				break
			}
			strike = newStrike(r, s.Nodes, time.Duration(i)*s.Pace)
		}
		if isDrill(kind) {
			strike.Kind = kind
		}
		if aimed && x.point != "" {
			strike.Point = x.point
		}
		strike.Nth = nth[strike.Kind]
		nth[strike.Kind]++
		p.Strikes = append(p.Strikes, strike)
	}
	span := max(5*time.Second, time.Duration(s.Faults)*s.Pace)
	for _, strike := range p.Strikes {
		span += max(0, lasts(strike.Kind)-s.Pace)
	}
	taken := map[[2]int64]bool{}
	for n := 1; n <= s.Posts; n++ {
		b := newBooking(r, n, channels, span, s.Ahead)
		for taken[[2]int64{int64(b.Channel), b.Due.Milliseconds()}] { // equal times leave the order open
			b.Due += time.Millisecond
		}
		taken[[2]int64{int64(b.Channel), b.Due.Milliseconds()}] = true
		p.Bookings = append(p.Bookings, b)
	}
	p.Leaves = leaves(r, p.Bookings, span)
	return p
}

// isDrill reports whether a fault is one.
func isDrill(kind string) bool { return kind == blackHole || slices.Contains(drills(), kind) }

// drill is the kind of the fault with this number, "" for one of the others. A mutant is brought to light by the
// others alone.
func (s settings) drill(i int) string {
	turn := i / drillEvery
	switch {
	case len(s.Only) > 0:
		return s.Only[i%len(s.Only)]
	case s.Mutant != "" || i%drillEvery != drillEvery-1:
		return ""
	case turn%holeEvery == holeEvery-1:
		return blackHole
	default:
		return drills()[(turn-turn/holeEvery)%len(drills())]
	}
}

// lasts is how long a fault lasts, about; 0 for those that are shorter than any pace.
func lasts(kind string) time.Duration {
	return map[string]time.Duration{hang1: 16 * time.Second, hang4: 16 * time.Second, refusedRow: 14 * time.Second, noGrant: 15 * time.Second,
		lateOutage: 5 * time.Second, panics: 5 * time.Second, blackHole: time.Minute, haltLong: 13 * time.Second}[kind]
}

func newStrike(r *rand.Rand, nodes int, at time.Duration) strike {
	between := func(from, to int) time.Duration { return time.Duration(from+r.IntN(to-from)) * time.Millisecond }
	s := strike{Node: r.IntN(nodes), At: at + between(0, 700), Offset: between(-20000, 20000)}
	s.Point = points()[r.IntN(len(points()))]
	switch k := r.IntN(100); {
	case k < 20:
		s.Kind = killed
	case k < 31:
		s.Kind, s.Hold = stopped, lease+between(300, 1500)
	case k < 57:
		s.Kind, s.Hold = haltKill, between(0, 300)
	case k < 70:
		s.Kind, s.Hold = haltGo, lease+between(300, 1500)
	case k < 75:
		s.Kind, s.Hold = haltLong, deadline+lease+between(3000, 6000)
	case k < 80 && nodes > 1:
		s.Kind = haltTwice
	case k < 83:
		s.Kind = pgFast
	case k < 87:
		s.Kind = pgNow
	case k < 91:
		s.Kind = pgKill
	case k < 94:
		s.Kind, s.Hold = redisLost, between(500, 6000)
	case k < 96 || nodes == 1:
		s.Kind, s.Hold = redisHang, between(500, 6000)
	default:
		s.Kind, s.Hold = cut, between(1000, 9000)
	}
	return s
}

func newBooking(r *rand.Rand, n, channels int, span, ahead time.Duration) booking {
	ms := func(d time.Duration) time.Duration { return d.Truncate(time.Millisecond) }
	b := booking{N: n, Channel: r.IntN(channels), Text: fmt.Sprintf("post %d as it was booked, %x", n, r.Uint32()), Due: ms(time.Duration(r.Int64N(int64(span))))}
	if leaving(b.Channel) {
		return b
	}
	if r.IntN(5) == 0 { // a fifth is booked while faults run
		b.Book = max(time.Millisecond, b.Due-time.Duration(2000+r.IntN(8000))*time.Millisecond)
	}
	if r.IntN(7) > 1 { // with what goes with its channel, a quarter of all is changed
		return b
	}
	b.Do = []string{doEdit, doEdit, doDraft, doSchedule, doDelete, doGroup}[r.IntN(6)]
	if r.IntN(16) == 0 {
		b.Do, b.All, b.Hold = doPause, r.IntN(4) == 0, time.Duration(4000+r.IntN(12000))*time.Millisecond
	}
	b.NewText, b.NewDue = fmt.Sprintf("post %d as it was edited, %x", n, r.Uint32()), b.Due
	if r.IntN(2) == 0 {
		b.NewDue = ms(b.Due + time.Duration(r.IntN(10000))*time.Millisecond)
	}
	if r.IntN(5) > 1 { // and with them, half of all changes are near the due time
		b.At = b.Due + time.Duration(r.IntN(200)-100)*time.Millisecond
	} else {
		b.At = b.Due - time.Duration(r.Int64N(int64(20*time.Second)))
	}
	b.At = max(b.At, b.Book+time.Millisecond)
	if long := lateAfter + time.Duration(10+r.IntN(30))*time.Second; b.Do == doPause && !b.All && r.IntN(5) == 0 && b.At+long < span {
		b.Hold = long
	}
	return b
}

// lateAfter is how late a post must be, kept back by the service, for a gap to the next.
const lateAfter = 2 * time.Minute

// perOrganization is how many channels each has; the last of them is disconnected in the end.
const perOrganization = 7

func leaving(channel int) bool { return channel%perOrganization == perOrganization-1 }

// leaves lets every such channel go late in the run, half of them within 100 ms of the due time of a post.
func leaves(r *rand.Rand, all []booking, span time.Duration) (out []leave) {
	last := map[int]int{}
	for _, b := range all {
		if !leaving(b.Channel) || b.Due < span*6/10 || b.Due > span*95/100 {
			continue
		}
		i, known := last[b.Channel]
		if !known {
			i = len(out)
			last[b.Channel], out = i, append(out, leave{Channel: b.Channel})
		} else if r.IntN(3) > 0 {
			continue
		}
		if out[i].At = b.Due + time.Duration(r.IntN(200)-100)*time.Millisecond; i%2 == 1 {
			out[i].At = b.Due + time.Duration(r.IntN(5000))*time.Millisecond
		}
	}
	return out
}
