package main

import (
	"context"
	"time"

	"crier/tests/faultnet"
)

// hangFor is longer than the deadline of a call.
const hangFor = 8 * time.Second

// hang lets machines of a platform accept connections and never answer, while so many posts are due there that they
// would take all that a process may have in flight.
func (t *traffic) hang(ctx context.Context, s strike) error {
	machines := t.hanging[:machinesOf(s.Kind)]
	return t.watched(ctx, s.Kind, 700*time.Millisecond, hangFor, func(start time.Time) (all []booking) {
		for _, c := range t.stage[s.Kind] {
			all = append(all, t.plan(s.Kind, c, start.Add(100*time.Millisecond), "to a machine that hangs"))
		}
		return all
	}, func(start time.Time, aimed []booking) error {
		for _, g := range machines {
			g.Set(faultnet.Abandon)
		}
		pause(ctx, time.Until(start.Add(hangFor/4)))
		n, err := t.countWhere(ctx, aimed, "state in ('PUBLISHING', 'UNKNOWN')")
		if err == nil && n > 0 {
			err = t.hit(s.Kind)
		}
		pause(ctx, time.Until(start.Add(hangFor)))
		for _, g := range machines {
			g.Set(faultnet.Pass)
		}
		return err
	})
}
