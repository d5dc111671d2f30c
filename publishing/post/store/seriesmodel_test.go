package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"crier/publishing"
	"crier/publishing/db"
	poststore "crier/publishing/post/store"
	"crier/publishing/scheduler/dispatch"
)

// plain is a model of a series: the numbers that have a row, with their states. Failures count in
// the order of their numbers, once the series moves past them.
type plain struct {
	rows    map[int]string // "booked", "published", "failed" or "skipped"
	next    int
	fails   int
	stopped bool
	times   int
}

func (p *plain) advance() {
	for !p.stopped && p.rows[p.next] != "booked" {
		switch p.rows[p.next] {
		case "published":
			p.fails = 0
		case "failed":
			p.fails++
		}
		if p.rows[p.next] == "failed" && p.fails >= publishing.FailuresToStop || p.next+1 >= p.times {
			p.stopped = true
			return
		}
		p.next++
		if p.rows[p.next] == "" {
			p.rows[p.next] = "booked"
		}
	}
}

func (p *plain) end(n int, ok bool) {
	p.rows[n] = map[bool]string{true: "published", false: "failed"}[ok]
	p.advance()
}

func (p *plain) skip(n int) {
	p.rows[n] = "skipped"
	p.advance()
}

// listed returns what a list of the series' whole time has. A + marks a projected occurrence.
func (p *plain) listed() (out []string) {
	for n := range p.times {
		switch {
		case p.rows[n] == "booked" || p.rows[n] == "published" || p.rows[n] == "failed":
			out = append(out, strconv.Itoa(n))
		case p.rows[n] == "" && n > p.next && !p.stopped:
			out = append(out, strconv.Itoa(n)+" +")
		}
	}
	return out
}

func (p *plain) booked() (out []int) {
	for n, s := range p.rows {
		if s == "booked" {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out
}

// Random steps end, skip and materialize occurrences. After each step, the list must agree with the
// model.
func TestSeries_AgreesWithAModel(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for range 12 {
		p := plain{rows: map[int]string{0: "booked"}, times: 3 + random.IntN(10)}
		first := r.Repeated(r.Channel(), publishing.Repeat{Days: 1 + random.IntN(30), Count: p.times}, "Europe/Berlin")
		from, days := r.Root(first).PublishDate.Add(-time.Hour), r.Root(first).Interval
		var story []string
		for range 14 {
			booked := p.booked()
			if len(booked) == 0 {
				break
			}
			n := booked[random.IntN(len(booked))]
			later := p.next + 1 + random.IntN(3)
			switch what := random.IntN(5); {
			case what < 2:
				ok := what == 0 || random.IntN(2) == 0
				story = append(story, fmt.Sprint("end ", n, ok))
				r.MakeDue(publishing.Occurrence(first, n))
				r.End(publishing.Occurrence(first, n), map[bool]dispatch.Result{true: dispatch.ResultPublished, false: dispatch.ResultError}[ok], "rejected")
				p.end(n, ok)
			case what == 2:
				story = append(story, fmt.Sprint("skip ", n))
				r.remove(publishing.Occurrence(first, n))
				p.skip(n)
			case p.stopped || p.rows[later] != "" || later >= p.times:
			case what == 3:
				story = append(story, fmt.Sprint("skip later ", later))
				r.remove(publishing.Occurrence(first, later))
				p.skip(later)
			default:
				story = append(story, fmt.Sprint("book ", later))
				r.OK(r.InOrg(func(tx *db.Tx) error {
					_, _, err := poststore.Materialize(t.Context(), tx, publishing.Occurrence(first, later).UUID(), false)
					return err
				}))
				p.rows[later] = "booked"
			}
			var got []string
			for _, x := range r.within(from, from.AddDate(0, 0, days*p.times+2)) {
				if publishing.Occurrence(first, x.Occurrence) != x.ID {
					continue // it belongs to another series
				}
				mark := map[bool]string{true: " +"}[x.Projected != nil]
				got = append(got, strconv.Itoa(x.Occurrence)+mark)
			}
			if want := p.listed(); !slices.Equal(got, want) {
				t.Fatalf("after %q: %q, not %q", story, got, want)
			}
		}
	}
}
