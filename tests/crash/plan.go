package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// The kinds of faults.
const (
	killed   = "kill"     // SIGKILL, then a restart
	stopped  = "stop"     // SIGSTOP for longer than the lease
	haltKill = "haltKill" // the process stops at a failpoint, then SIGKILL
	haltGo   = "haltGo"   // the process stops at a failpoint beyond the lease, then continues
	// The process stops at a failpoint for longer than its claims last, until other nodes have sent
	// its posts.
	haltLong = "haltLong"
	// One node stops before it marks a post as committing. Another node sends the post and stops
	// before it writes the outcome.
	haltTwice = "haltTwice"
	pgFast    = "pgFast"    // Postgres is stopped by SIGINT
	pgNow     = "pgNow"     // Postgres is stopped by SIGQUIT
	pgKill    = "pgKill"    // Postgres is killed by SIGKILL
	redisLost = "redisLost" // Redis stops and loses its data; an empty one starts after a while
	redisHang = "redisHang" // Redis accepts requests but does not respond for a while
	cut       = "cut"       // a node's cluster address does not respond for a while
)

// The kinds of drills: faults that target one tenant, one row or one part while no other fault
// lasts.
const (
	// The response to a send is lost, then the platform fails for longer than RECONCILE_WINDOW and
	// RETRY_WINDOW together.
	silence    = "silence"
	panics     = "panic"      // the connector panics on one post
	hang1      = "hang1"      // one server of a platform accepts connections and never responds
	hang4      = "hang4"      // four servers do so
	refusedRow = "refusedRow" // Postgres refuses a post's update, or a queue row contradicts posts
	noGrant    = "noGrant"    // the scheduler may not write a table for ten seconds
	lateOutage = "lateOutage" // all nodes are down until many posts are past MAX_LATENESS
	blackHole  = "blackHole"  // connections to Postgres stay open but carry no data
	probe      = "probe"      // no fault: posts of organizations that no drill targets
)

// kinds returns all kinds of faults, including drills.
func kinds() []string {
	return append([]string{
		killed, stopped, haltKill, haltGo, haltLong, haltTwice, pgFast, pgNow, pgKill, redisLost, redisHang, cut,
		blackHole,
	}, drills()...)
}

// panicsUnsent is recorded with posts on which the connector panics before its call.
const panicsUnsent = "panicUnsent"

// drills returns the kinds of drills except the black hole, in the order of their turns. A short
// run reaches only the first ones.
func drills() []string {
	return []string{lateOutage, panics, refusedRow, silence, noGrant, hang1, hang4}
}

const (
	drillEvery = 4  // every fourth fault is a drill
	holeEvery  = 25 // every 25th drill is a black hole
)

// fault is one fault of the schedule.
type fault struct {
	Kind  string
	Node  int
	Point string
	// Hold is how long the target stays stopped or down.
	Hold time.Duration
	// Offset is the clock offset of the process that starts after the fault.
	Offset time.Duration
	// At is measured from the first fault.
	At time.Duration
	// Nth counts faults of the same kind, from 0.
	Nth int
}

// booking is one post with the change that is made to it.
type booking struct {
	N       int
	Channel int
	Text    string
	// Due is measured from the start of the faults.
	Due time.Duration
	// Book is the time of the create request, measured like Due. Zero means before the faults.
	Book time.Duration
	// Fault is the kind of the drill that the post belongs to, or "" for none.
	Fault string
	// Do is the change that is made at At, or "" for none.
	Do      string
	At      time.Duration
	NewText string
	NewDue  time.Duration
	// Hold is the length of a pause.
	Hold time.Duration
	// All means that a pause applies to the whole organization.
	All bool
}

// disconnect is the planned disconnect of a channel.
type disconnect struct {
	Channel int
	At      time.Duration
}

// plan is the whole schedule of a run. It depends only on the settings.
type plan struct {
	Faults      []fault
	Bookings    []booking
	Disconnects []disconnect
}

func newPlan(s settings, channels int) plan {
	r := rand.New(rand.NewPCG(uint64(s.Seed), 1))
	var p plan
	nth := map[string]int{}
	for i := range s.Faults {
		next := newFault(r, s.Nodes, time.Duration(i)*s.Pace)
		kind := s.drill(i)
		x, err := findMutant(s.Mutant)
		aimed := err == nil && x.fault != "" && i%3 == 0
		if aimed {
			kind = x.fault
		}
		// A kind needs random parameters that fit it, so draw again until the kind is the right
		// one.
		for range 10_000 {
			if kind == "" || kind == next.Kind || isDrill(kind) {
				break
			}
			next = newFault(r, s.Nodes, time.Duration(i)*s.Pace)
		}
		if isDrill(kind) {
			next.Kind = kind
		}
		if aimed && x.point != "" {
			next.Point = x.point
		}
		next.Nth = nth[next.Kind]
		nth[next.Kind]++
		p.Faults = append(p.Faults, next)
	}
	span := max(5*time.Second, time.Duration(s.Faults)*s.Pace)
	for _, f := range p.Faults {
		span += max(0, lasts(f.Kind)-s.Pace)
	}
	taken := map[[2]int64]bool{}
	for n := 1; n <= s.Posts; n++ {
		b := newBooking(r, n, channels, span, s.Ahead)
		// Equal due times would leave the order undefined.
		for taken[[2]int64{int64(b.Channel), b.Due.Milliseconds()}] {
			b.Due += time.Millisecond
		}
		taken[[2]int64{int64(b.Channel), b.Due.Milliseconds()}] = true
		p.Bookings = append(p.Bookings, b)
	}
	p.Disconnects = planDisconnects(r, p.Bookings, span)
	return p
}

// isDrill reports whether a kind of fault is a drill.
func isDrill(kind string) bool { return kind == blackHole || slices.Contains(drills(), kind) }

// drill returns the drill to inject as fault i, or "" for another kind of fault. Runs with a mutant
// have no drills, because each mutant names the fault that reveals it.
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

// lasts returns roughly how long a fault of this kind lasts, or 0 if it is shorter than any pace.
func lasts(kind string) time.Duration {
	return map[string]time.Duration{hang1: 16 * time.Second, hang4: 16 * time.Second, refusedRow: 14 * time.Second,
		noGrant: 15 * time.Second, lateOutage: 5 * time.Second, panics: 5 * time.Second, blackHole: time.Minute,
		haltLong: 13 * time.Second,
	}[kind]
}

func newFault(r *rand.Rand, nodes int, at time.Duration) fault {
	between := func(from, to int) time.Duration { return time.Duration(from+r.IntN(to-from)) * time.Millisecond }
	s := fault{Node: r.IntN(nodes), At: at + between(0, 700), Offset: between(-20000, 20000)}
	s.Point = failpoints()[r.IntN(len(failpoints()))]
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
	b := booking{N: n, Channel: r.IntN(channels), Text: fmt.Sprintf("post %d as it was booked, %x", n, r.Uint32()),
		Due: ms(time.Duration(r.Int64N(int64(span))))}
	if disconnects(b.Channel) {
		return b
	}
	if r.IntN(5) == 0 { // one in five is booked while faults are injected
		b.Book = max(time.Millisecond, b.Due-time.Duration(2000+r.IntN(8000))*time.Millisecond)
	}
	// A quarter of all posts are changed, counting the posts of disconnected channels.
	if r.IntN(7) > 1 {
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
	if r.IntN(5) > 1 { // three in five changes are near the due time
		b.At = b.Due + time.Duration(r.IntN(200)-100)*time.Millisecond
	} else {
		b.At = b.Due - time.Duration(r.Int64N(int64(20*time.Second)))
	}
	b.At = max(b.At, b.Book+time.Millisecond)
	long := lateAfter + time.Duration(10+r.IntN(30))*time.Second
	if b.Do == doPause && !b.All && r.IntN(5) == 0 && b.At+long < span {
		b.Hold = long
	}
	return b
}

// lateAfter is the delay after which the service releases paused posts one by one.
const lateAfter = 2 * time.Minute

// perOrganization is the number of channels per organization. The last of them is disconnected late
// in the run.
const perOrganization = 7

func disconnects(channel int) bool { return channel%perOrganization == perOrganization-1 }

// planDisconnects plans one disconnect late in the run for each of these channels, half of them
// within 100 ms of the due time of a post.
func planDisconnects(r *rand.Rand, all []booking, span time.Duration) (out []disconnect) {
	last := map[int]int{}
	for _, b := range all {
		if !disconnects(b.Channel) || b.Due < span*6/10 || b.Due > span*95/100 {
			continue
		}
		i, known := last[b.Channel]
		if !known {
			i = len(out)
			last[b.Channel], out = i, append(out, disconnect{Channel: b.Channel})
		} else if r.IntN(3) > 0 {
			continue
		}
		out[i].At = b.Due + time.Duration(r.IntN(200)-100)*time.Millisecond
		if i%2 == 1 {
			out[i].At = b.Due + time.Duration(r.IntN(5000))*time.Millisecond
		}
	}
	return out
}
