package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// The kinds of faults.
const (
	killed    = "kill"      // SIGKILL, then a new start
	stopped   = "stop"      // SIGSTOP for longer than the lease
	haltKill  = "haltKill"  // stops itself at a point, then SIGKILL
	haltGo    = "haltGo"    // stops itself at a point for longer than the lease, then goes on
	haltLong  = "haltLong"  // the same for longer than its claims
	haltTwice = "haltTwice" // stops itself before the mark until another node has its post out, and that one stops before it writes so
	pgFast    = "pgFast"    // Postgres is stopped by SIGINT
	pgNow     = "pgNow"     // by SIGQUIT
	pgKill    = "pgKill"    // by SIGKILL
)

// strike is one fault.
type strike struct {
	Kind   string
	Node   int
	Point  string
	Hold   time.Duration // how long it stays stopped or down
	Offset time.Duration // of the clock of the process that is started after it
	At     time.Duration // from the first fault on
}

// booking is one post and what becomes of it.
type booking struct {
	N       int
	Channel int
	Text    string
	Due     time.Duration // from the beginning of the faults
	Book    time.Duration // likewise; zero = before the faults begin
	Do      string        // what is done to it later; "" = nothing
	At      time.Duration // when
	NewText string
	NewDue  time.Duration
}

// plan is the whole schedule of a run, made of its seed.
type plan struct {
	Strikes  []strike
	Bookings []booking
}

func newPlan(s settings, channels int) plan {
	r := rand.New(rand.NewPCG(uint64(s.Seed), 1))
	var p plan
	for i := range s.Faults {
		strike := newStrike(r, s.Nodes, time.Duration(i)*s.Pace)
		if x, err := findMutant(s.Mutant); err == nil && x.strike != "" && i%3 == 0 {
			strike.Kind = x.strike
		}
		p.Strikes = append(p.Strikes, strike)
	}
	span := max(5*time.Second, time.Duration(s.Faults)*s.Pace)
	taken := map[[2]int64]bool{}
	for n := 1; n <= s.Posts; n++ {
		b := newBooking(r, n, channels, span, s.Ahead)
		for taken[[2]int64{int64(b.Channel), b.Due.Milliseconds()}] { // equal times leave the order open
			b.Due += time.Millisecond
		}
		taken[[2]int64{int64(b.Channel), b.Due.Milliseconds()}] = true
		p.Bookings = append(p.Bookings, b)
	}
	return p
}

func newStrike(r *rand.Rand, nodes int, at time.Duration) strike {
	between := func(from, to int) time.Duration { return time.Duration(from+r.IntN(to-from)) * time.Millisecond }
	s := strike{Node: r.IntN(nodes), At: at + between(0, 700), Offset: between(-20000, 20000)}
	s.Point = points()[r.IntN(len(points()))]
	switch k := r.IntN(100); {
	case k < 22:
		s.Kind = killed
	case k < 34:
		s.Kind, s.Hold = stopped, lease+between(300, 1500)
	case k < 62:
		s.Kind, s.Hold = haltKill, between(0, 300)
	case k < 76:
		s.Kind, s.Hold = haltGo, lease+between(300, 1500)
	case k < 82:
		s.Kind, s.Hold = haltLong, deadline+lease+between(1000, 4000)
	case k < 87 && nodes > 1:
		s.Kind = haltTwice
	case k < 90:
		s.Kind = pgFast
	case k < 95:
		s.Kind = pgNow
	default:
		s.Kind = pgKill
	}
	return s
}

func newBooking(r *rand.Rand, n, channels int, span, ahead time.Duration) booking {
	ms := func(d time.Duration) time.Duration { return d.Truncate(time.Millisecond) }
	b := booking{N: n, Channel: r.IntN(channels), Text: fmt.Sprintf("post %d as it was booked, %x", n, r.Uint32()), Due: ms(time.Duration(r.Int64N(int64(span))))}
	if r.IntN(5) == 0 { // a fifth is booked while faults run
		b.Book = max(time.Millisecond, b.Due-time.Duration(2000+r.IntN(8000))*time.Millisecond)
	}
	if r.IntN(4) > 0 {
		return b
	}
	b.Do = []string{doEdit, doEdit, doDraft, doSchedule, doDelete}[r.IntN(5)]
	b.NewText, b.NewDue = fmt.Sprintf("post %d as it was edited, %x", n, r.Uint32()), b.Due
	if r.IntN(2) == 0 {
		b.NewDue = ms(b.Due + time.Duration(r.IntN(10000))*time.Millisecond)
	}
	if r.IntN(2) == 0 {
		b.At = b.Due + time.Duration(r.IntN(200)-100)*time.Millisecond
	} else {
		b.At = b.Due - time.Duration(r.Int64N(int64(20*time.Second)))
	}
	b.At = max(b.At, b.Book+time.Millisecond)
	return b
}
