package boot

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"crier/platform/id"
	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/publishing/purge"
	"crier/publishing/webhook"
	"crier/tenancy"
	"crier/tenancy/instance"
	tenancymail "crier/tenancy/mail"
)

// jobTimeout is the time limit for one run of a background job. The next run continues where the
// last one stopped.
const jobTimeout = 30 * time.Minute

// background provides the jobs and the task handlers.
type background struct{ *App }

func (a background) startJobs(ctx context.Context) error {
	all := append(a.pruneJobs(), a.purgeJob(), a.syncJob(), a.refreshJob(), a.filesJob(), a.approvalsJob(),
		a.snapshotsJob())
	pool, err := a.db.DirectPool(context.WithoutCancel(ctx), pg.Jobs, jobs.Conns)
	if err != nil {
		return err
	}
	a.jobs, err = jobs.Start(ctx, pool, all, a.tasks(), a.log)
	if err != nil {
		pool.Close()
		return err
	}
	for name := range a.jobs.Stats() {
		if err := a.registerJob(name, func() jobs.Stats { return a.jobs.Stats()[name] }); err != nil {
			return err
		}
	}
	for name := range a.jobs.TaskStats() {
		if err := a.registerTask(name, func() jobs.TaskStats { return a.jobs.TaskStats()[name] }); err != nil {
			return err
		}
	}
	return nil
}

// pruneJobs returns the jobs that delete rows after their retention period, one job per kind of
// row.
func (a background) pruneJobs() []jobs.Job {
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
	pruner := purge.NewPruner(a.cfg.Retention, a.publishingDB())
	for _, kind := range pruner.Kinds() {
		add(string(kind), func(ctx context.Context) (int, error) { return pruner.Prune(ctx, kind) })
	}
	if keep := a.cfg.Sessions.Sessions; keep > 0 {
		add("sessions", func(ctx context.Context) (int, error) { return a.Accounts.PruneSessions(ctx, keep) })
	}
	add("expired-links", a.Accounts.PruneExpired)
	add("oauth-tokens", a.OAuth.Grants.Prune)
	add("oauth-clients", a.OAuth.Clients.Prune)
	return out
}

// purgeInterval is how often the service purges accounts and organizations whose deletion was
// requested at least DELETE_GRACE ago.
const purgeInterval = 10 * time.Minute

// purgeJob returns the job that purges accounts and organizations.
func (a background) purgeJob() jobs.Job {
	return jobs.Job{Name: "purge", Every: min(purgeInterval, a.cfg.PruneInterval), Timeout: jobTimeout,
		Run: func(ctx context.Context) error {
			n, err := a.Accounts.Purge(ctx)
			if n > 0 {
				a.log.InfoContext(ctx, "accounts and organizations were purged", "number", n)
			}
			return err
		},
	}
}

// syncInterval is how often the service checks that publishing is stopped for the right
// organizations.
const syncInterval = 10 * time.Minute

// syncJob returns the job that stops or resumes publishing for organizations whose stop or resume
// task was abandoned.
func (a background) syncJob() jobs.Job {
	return jobs.Job{Name: "sync-publishing", Every: syncInterval, Timeout: jobTimeout,
		Run: func(ctx context.Context) error {
			_, err := a.Accounts.SyncAllPublishing(ctx)
			return err
		},
	}
}

// filesInterval is how often the file store is searched for unused files.
const filesInterval = 24 * time.Hour

// filesJob returns the job that deletes unused files.
func (a background) filesJob() jobs.Job {
	return jobs.Job{Name: "collect-files", Every: filesInterval, Timeout: jobTimeout, Alone: true,
		Run: func(ctx context.Context) error {
			n, err := a.media.CollectFiles(ctx)
			if n > 0 {
				a.log.InfoContext(ctx, "unused files were deleted", "files", n)
			}
			return err
		},
	}
}

// snapshotsInterval is how often the service looks for channels whose daily snapshot is due.
const snapshotsInterval = 10 * time.Minute

// snapshotsJob returns the job that reads each channel's statistics once a day.
func (a background) snapshotsJob() jobs.Job {
	return jobs.Job{Name: "analytics-snapshots", Every: snapshotsInterval, Timeout: jobTimeout, Alone: true,
		Run: func(ctx context.Context) error {
			n, err := a.analytics.TakeSnapshots(ctx)
			if n > 0 {
				a.log.InfoContext(ctx, "channel statistics were read", "channels", n)
			}
			return err
		},
	}
}

const (
	// mailWorkers is greater than the number of emails that can be sent to one domain at a time;
	// see tenancy/mail.
	mailWorkers = 6
	taskTimeout = time.Minute
	// taskAttempts allows retries for four days.
	taskAttempts = 18
	// mailAttempts allows retries for about a day. An email that arrives even later would do more
	// harm than good.
	mailAttempts = 99
	// mailMaxWait is shorter than the lifetime of a password reset link, because the person who
	// requested the link is waiting for it.
	mailMaxWait = 15 * time.Minute
)

// tasks returns the task handlers.
func (a background) tasks() []jobs.Handler {
	return []jobs.Handler{{
		Kind: instance.PublishingTask, Workers: 1, Timeout: taskTimeout, Attempts: taskAttempts,
		Run: func(ctx context.Context, t jobs.Task, _ jobs.Attempt) error {
			return a.Accounts.SyncPublishing(ctx, id.FromUUID[tenancy.OrgTag](t.ID))
		},
	}, {
		Kind: tenancymail.MailTask, Workers: mailWorkers, Timeout: taskTimeout, Attempts: mailAttempts,
		MaxWait: mailMaxWait,
		Run: func(ctx context.Context, t jobs.Task, at jobs.Attempt) error {
			return a.Accounts.SendMail(ctx, id.FromUUID[tenancy.MailTag](t.ID), !at.Later)
		},
		GaveUp: func(ctx context.Context, t jobs.Task) {
			a.Accounts.MailGivenUp(ctx, id.FromUUID[tenancy.MailTag](t.ID))
		},
	}, a.webhookHandler(webhook.TaskHealthy), a.webhookHandler(webhook.TaskAside), a.reviewMailHandler(), a.reviewEndedHandler()}
}

func (a background) registerJob(name string, stats func() jobs.Stats) error {
	label := prometheus.Labels{"job": name}
	counters := []struct {
		name, help string
		read       func(jobs.Stats) float64
	}{
		{name: "done", help: "Runs of a background job that succeeded in this process.",
			read: func(s jobs.Stats) float64 { return float64(s.Done) }},
		{name: "failed", help: "Runs of a background job that failed in this process; they are repeated.",
			read: func(s jobs.Stats) float64 { return float64(s.Failed) }},
		{name: "seconds", help: "Total duration of the runs of a background job in this process.",
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

func (a background) registerTask(name string, stats func() jobs.TaskStats) error {
	label := prometheus.Labels{"task": name}
	counters := []struct {
		name, help string
		read       func(jobs.TaskStats) float64
	}{
		{name: "done", help: "One-off tasks that succeeded in this process.",
			read: func(s jobs.TaskStats) float64 { return float64(s.Done) }},
		{name: "failed", help: "Runs of one-off tasks that failed in this process.",
			read: func(s jobs.TaskStats) float64 { return float64(s.Failed) }},
		{name: "gave_up", help: "One-off tasks that failed permanently in this process.",
			read: func(s jobs.TaskStats) float64 { return float64(s.GaveUp) }},
	}
	for _, c := range counters {
		opts := prometheus.CounterOpts{Name: "crier_tasks_" + c.name + "_total", Help: c.help, ConstLabels: label}
		err := a.registry.Register(prometheus.NewCounterFunc(opts, func() float64 { return c.read(stats()) }))
		if err != nil {
			return err
		}
	}
	opts := prometheus.GaugeOpts{
		Name: "crier_tasks_running", Help: "One-off tasks running in this process.", ConstLabels: label,
	}
	return a.registry.Register(prometheus.NewGaugeFunc(opts, func() float64 { return float64(stats().Running) }))
}
