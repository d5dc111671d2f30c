package boot

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/platform/jobs"
	"crier/platform/pg"
	publishingservice "crier/publishing/service"
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
		out = append(out, jobs.Job{Name: "prune-" + name, Every: a.cfg.PruneEvery, Timeout: jobTime, Run: func(ctx context.Context) error {
			n, err := prune(ctx)
			a.pruned.Add(int64(n))
			if n > 0 {
				a.log.InfoContext(ctx, "old rows were deleted", "kind", name, "rows", n)
			}
			return err
		}})
	}
	pruner := publishingservice.NewPruner(a.cfg.Publishing.Retention, a.db)
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
	running := func() float64 {
		if stats().Running {
			return 1
		}
		return 0
	}
	for _, c := range []prometheus.Collector{
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "crier_jobs_done_total", ConstLabels: label,
			Help: "Runs of a background job in this process that ended well."}, func() float64 { return float64(stats().Done) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "crier_jobs_failed_total", ConstLabels: label,
			Help: "Runs of a background job in this process that ended with an error; they are repeated."}, func() float64 { return float64(stats().Failed) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "crier_jobs_seconds_total", ConstLabels: label,
			Help: "Time that the runs of a background job in this process took."}, func() float64 { return stats().Took.Seconds() }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "crier_jobs_running", ConstLabels: label,
			Help: "1 while this process runs the background job."}, running),
	} {
		if err := a.registry.Register(c); err != nil {
			return err
		}
	}
	return nil
}
