package boot

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/publishing/sender"
)

// jobTimeout limits one run of a background job. The next run continues with the rest.
const jobTimeout = 30 * time.Minute

func (a *App) startJobs(ctx context.Context) error {
	pool, err := a.db.DirectPool(context.WithoutCancel(ctx), pg.Jobs, jobs.Conns(nil))
	if err != nil {
		return err
	}
	a.jobs, err = jobs.Start(ctx, pool, a.pruneJobs(), nil, a.log)
	if err != nil {
		return err
	}
	for name := range a.jobs.Stats() {
		if err := a.registerJob(name, func() jobs.Stats { return a.jobs.Stats()[name] }); err != nil {
			return err
		}
	}
	return nil
}

// pruneJobs returns the jobs that delete rows whose retention is over, one for each kind of row.
func (a *App) pruneJobs() []jobs.Job {
	var out []jobs.Job
	add := func(name string, prune func(ctx context.Context) (int, error)) {
		run := func(ctx context.Context) error {
			n, err := prune(ctx)
			a.pruned.Add(int64(n))
			if n > 0 {
				a.log.InfoContext(ctx, "old rows were deleted", "kind", name, "rows", n)
			}
			return err
		}
		out = append(out, jobs.Job{Name: "prune-" + name, Every: a.cfg.PruneInterval, Timeout: jobTimeout, Run: run})
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

func (a *App) registerJob(name string, stats func() jobs.Stats) error {
	label := prometheus.Labels{"job": name}
	counters := []struct {
		name, help string
		read       func(jobs.Stats) float64
	}{
		{name: "done", help: "Runs of a background job in this process that succeeded.",
			read: func(s jobs.Stats) float64 { return float64(s.Done) }},
		{name: "failed", help: "Runs of a background job in this process that ended with an error; they are repeated.",
			read: func(s jobs.Stats) float64 { return float64(s.Failed) }},
		{name: "seconds", help: "Time that the runs of a background job in this process took.",
			read: func(s jobs.Stats) float64 { return s.Took.Seconds() }},
	}
	for _, c := range counters {
		opts := prometheus.CounterOpts{Name: "crier_jobs_" + c.name + "_total", Help: c.help, ConstLabels: label}
		err := a.registry.Register(prometheus.NewCounterFunc(opts, func() float64 { return c.read(stats()) }))
		if err != nil {
			return err
		}
	}
	opts := prometheus.GaugeOpts{
		Name: "crier_jobs_running", Help: "1 while this process runs the background job.", ConstLabels: label,
	}
	return a.registry.Register(prometheus.NewGaugeFunc(opts, func() float64 {
		if stats().Running {
			return 1
		}
		return 0
	}))
}
