package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// shortTurns is the factor by which benches of short calls have more rounds, with shorter turns.
const shortTurns = 5

// side is one of the alternatives that alternate compares.
type side struct {
	name string
	call func(i int) error
	// used returns what the processes that do the work have used so far.
	used func() (cost, error)
}

// measured is what one side did in all its turns.
type measured struct {
	took []time.Duration // duration of every call, sorted
	span time.Duration   // total duration of the turns
	used cost
	// rates has the calls per second in each round.
	rates []float64
}

// alternate gives the sides turns of equal length, each with a number of concurrent users. Each
// round goes through the sides forward and backward, so that other work on the machine affects them
// equally. Together the turns last for span. A first turn of each side, which opens connections and
// fills caches, is not counted.
func alternate(users int, span time.Duration, rounds int, sides ...side) ([]measured, error) {
	rounds = max(1, rounds)
	turn := span / time.Duration(2*rounds*len(sides))
	out := make([]measured, len(sides))
	for _, s := range sides {
		if err := new(measured).turn(users, min(turn, time.Second), s); err != nil {
			return nil, err
		}
	}
	for range rounds {
		before := slices.Clone(out)
		for i := range 2 * len(sides) {
			k := min(i, 2*len(sides)-1-i)
			if err := out[k].turn(users, turn, sides[k]); err != nil {
				return nil, err
			}
		}
		for k := range out {
			calls := len(out[k].took) - len(before[k].took)
			out[k].rates = append(out[k].rates, float64(calls)/(out[k].span-before[k].span).Seconds())
		}
	}
	for k := range out {
		slices.Sort(out[k].took)
	}
	return out, nil
}

// turn lets a side make calls for a time span and adds the results.
func (a *measured) turn(users int, span time.Duration, s side) error {
	before, err := s.used()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	began := now()
	_, err = drive(users, untilOver(span), func(i int) error {
		start := now()
		err := s.call(i)
		d := now().Sub(start)
		mu.Lock()
		defer mu.Unlock()
		a.took = append(a.took, d)
		return err
	})
	a.span += now().Sub(began)
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	after, err := s.used()
	if err != nil {
		return err
	}
	used := after.since(before)
	a.used.crier += used.crier
	a.used.postgres += used.postgres
	a.used.statements += used.statements
	return nil
}

// rate returns the calls per second.
func (a measured) rate() float64 { return float64(len(a.took)) / a.span.Seconds() }

// cpuMs returns the processor time per call.
func (a measured) cpuMs() float64 { return ms(a.used.cpu()) / float64(len(a.took)) }

// statements returns the number of statements per call.
func (a measured) statements() float64 { return float64(a.used.statements) / float64(len(a.took)) }

// meanMs returns the mean duration of a call.
func (a measured) meanMs() float64 {
	var sum time.Duration
	for _, d := range a.took {
		sum += d
	}
	return sum.Seconds() * 1000 / float64(len(a.took))
}

// less returns a without what the idle service uses in the same time.
func (a measured) less(idle cost, idleSpan time.Duration) measured {
	a.used = a.used.less(idle, a.span, idleSpan)
	return a
}

// beside adds the rates of a side and of its floor to a line, with the median, the lowest and the
// highest ratio of all rounds.
func (a measured) beside(floor measured, line m) {
	ratios := make([]float64, len(a.rates))
	for i := range ratios {
		ratios[i] = a.rates[i] / floor.rates[i]
	}
	line["ours"], line["floor"], line["ratio"] = a.rate(), floor.rate(), a.rate()/floor.rate()
	slices.Sort(ratios)
	line["ratioMedian"], line["rounds"] = ratios[len(ratios)/2], len(ratios)
	line["ratioLeast"], line["ratioMost"] = ratios[0], ratios[len(ratios)-1]
	line["p50Ms"], line["p99Ms"] = ms(quantile(a.took, .5)), ms(quantile(a.took, .99))
	line["floorP50Ms"], line["floorP99Ms"] = ms(quantile(floor.took, .5)), ms(quantile(floor.took, .99))
}
