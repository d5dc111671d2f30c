package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"time"
)

// idle measures memory, processor time and statements while no post is due, and compares them with
// an empty Fiber program.
func idle(ctx context.Context, r *rig) error {
	organizations, span := 10*r.opts.organizations, time.Duration(r.opts.seconds)*time.Second
	return r.withDB(ctx, func(b *testDB) (err error) {
		all, err := b.createTenants(ctx, organizations, 1)
		if err != nil {
			return err
		}
		if _, err := b.insertPosts(ctx, organizations, spread(all, now().Add(7*24*time.Hour))); err != nil {
			return err
		}
		if err := b.settle(ctx); err != nil {
			return err
		}
		n, err := b.serve(ctx, r.opts.settings...)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.stop()) }()
		empty := exec.CommandContext(ctx, r.path("empty"), "127.0.0.1:0")
		empty.Stderr = os.Stderr
		if err := empty.Start(); err != nil {
			return err
		}
		defer func() {
			_ = empty.Process.Kill() // it may have ended already
			_ = empty.Wait()         // it was killed
		}()
		if err := wait(ctx, 10*time.Second); err != nil {
			return err
		}
		before, floorBefore := cost{}, usageOf(empty.Process.Pid)
		before, err = b.cost(ctx, n)
		if err != nil {
			return err
		}
		if err := wait(ctx, span); err != nil {
			return err
		}
		after, err := b.cost(ctx, n)
		if err != nil {
			return err
		}
		used, ours, bare := after.since(before), usageOf(n.cmd.Process.Pid), usageOf(empty.Process.Pid)
		percent := func(d time.Duration) float64 { return 100 * d.Seconds() / span.Seconds() }
		return r.emit(m{
			"bench": "idle", "organizations": organizations, "posts": organizations, "unit": "MB", "ours": ours.rss,
			"floor": bare.rss, "ratio": ours.rss / bare.rss,
			"cpuPercent": percent(used.cpu()), "cpuPercentCrier": percent(used.crier),
			"cpuPercentPostgres": percent(used.postgres), "floorCpuPercent": percent(bare.cpu - floorBefore.cpu),
			"statementsPerSecond": float64(used.statements) / span.Seconds(), "spanSeconds": span.Seconds(),
		})
	})
}
