package boot

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/publishing/sender"
)

// jobTime ends one run of a background job. What it did not come to is done by the next.
const jobTime = 30 * time.Minute

func (a *App) startJobs(ctx context.Context) error {
	pool, err := a.db.DirectPool(context.WithoutCancel(ctx), pg.Jobs, jobs.Conns)
	if err != nil {
		return err
	}
	if a.jobs, err = jobs.Start(ctx, pool, a.pruning(), a.log); err != nil {
		return err
	}
	for name := range a.jobs.Stats() {
		if err := a.observeJob(name, func() jobs.Stats { return a.jobs.Stats()[name] }); err != nil {
			return err
		}
	}
	return nil
}

// pruning are the jobs that delete what was kept for long enough, one for each kind of row.
func (a *App) pruning() (out []jobs.Job) {
	add := func(name string, prune func(ctx context.Context) (int, error)) {
		run := func(ctx context.Context) error {
			n, err := prune(ctx)
			a.pruned.Add(int64(n))
			if n > 0 {
				a.log.InfoContext(ctx, "old rows were deleted", "kind", name, "rows", n)
			}
			return err
		}
		out = append(out, jobs.Job{Name: "prune-" + name, Every: a.cfg.PruneEvery, Timeout: jobTime, Run: run})
	}
	pruner := sender.NewPruner(a.cfg.Sender.Retention, a.db)
	for _, kind := range pruner.Kinds() {
		add(string(kind), func(ctx context.Context) (int, error) { return pruner.Prune(ctx, kind) })
	}
	if keep := a.cfg.Sessions.Sessions; keep > 0 {
		add("sessions", func(ctx context.Context) (int, error) { return a.Accounts.PruneSessions(ctx, keep) })
	}
	return out
}

// observeJob registers what an operator sees of a background job.
func (a *App) observeJob(name string, stats func() jobs.Stats) error {
	label := prometheus.Labels{"job": name}
	counters := []struct {
		name, help string
		read       func(jobs.Stats) float64
	}{
		{"done", "Runs of a background job in this process that ended well.",
			func(s jobs.Stats) float64 { return float64(s.Done) }},
		{"failed", "Runs of a background job in this process that ended with an error; they are repeated.",
			func(s jobs.Stats) float64 { return float64(s.Failed) }},
		{"seconds", "Time that the runs of a background job in this process took.",
			func(s jobs.Stats) float64 { return s.Took.Seconds() }},
	}
	for _, c := range counters {
		opts := prometheus.CounterOpts{Name: "crier_jobs_" + c.name + "_total", Help: c.help, ConstLabels: label}
		err := a.registry.Register(prometheus.NewCounterFunc(opts, func() float64 { return c.read(stats()) }))
		if err != nil {
			return err
		}
	}
	opts := prometheus.GaugeOpts{Name: "crier_jobs_running", Help: "1 while this process runs the background job.", ConstLabels: label}
	return a.registry.Register(prometheus.NewGaugeFunc(opts, func() float64 {
		if stats().Running {
			return 1
		}
		return 0
	}))
}
