package main

import (
	"context"
	"time"

	"crier/tests/faultnet"
)

// hangFor is longer than the deadline of a call.
const hangFor = 8 * time.Second

// hang makes servers of a platform accept connections and never respond, while enough posts for
// them are due to use up all that a process may have in flight.
func (t *traffic) hang(ctx context.Context, s fault) error {
	machines := t.hangProxies[:machinesOf(s.Kind)]
	return t.runWithProbes(ctx, s.Kind, 700*time.Millisecond, hangFor, func(start time.Time) (all []booking) {
		for _, c := range t.drillChannels[s.Kind] {
			all = append(all, t.plan(s.Kind, c, start.Add(100*time.Millisecond), "to a machine that hangs"))
		}
		return all
	}, func(start time.Time, aimed []booking) error {
		for _, g := range machines {
			g.Set(faultnet.Abandon)
		}
		pause(ctx, time.Until(start.Add(hangFor/4)))
		n, err := t.countWhere(ctx, aimed, "state in ('PUBLISHING', 'UNKNOWN')")
		if n > 0 {
			err = t.hit(s.Kind)
		}
		pause(ctx, time.Until(start.Add(hangFor)))
		for _, g := range machines {
			g.Set(faultnet.Pass)
		}
		return err
	})
}
