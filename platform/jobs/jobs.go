// Package jobs runs two kinds of background work. A job runs at an interval, in one process at a
// time. A task runs once, after the transaction that added it has committed. Both use River's
// queues in the service's database.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"crier/platform/clock"
	"crier/platform/fault"
)

const (
	schema      = "jobs"
	maxAttempts = 3
	// pollInterval is how often a queue is polled. Polling matters only if a notification is lost.
	pollInterval = 30 * time.Second
	// fetchCooldown is the minimum time between two reads of a task queue.
	fetchCooldown = 20 * time.Millisecond
	// rescueMargin is added to a run's timeout. If a run has not ended by then, its process is
	// assumed to have died, and the run is repeated.
	rescueMargin = time.Minute

	// keepDone is how long River keeps the rows of successful runs. keepFailed applies to failed
	// runs that are not retried. A row contains the kind, the ids, the times, the processes that
	// ran it, and the error texts.
	keepDone   = time.Hour
	keepFailed = 24 * time.Hour
)

// Conns is the number of connections a Runner's pool needs. One connection listens, and the queues
// share the rest. Because each call is short, a few connections are enough. For each connection,
// the server runs a process that must read the catalog and plan the statements itself. Jobs and
// handlers do not use this pool.
const Conns = 6

// Job is periodic work. At most one run of a job is active across all processes. A run whose
// process died is repeated 60 to 90 s after its Timeout.
type Job struct {
	// Name identifies the job in the database, in logs and in metrics. It matches [a-z][a-z0-9-]+
	// and must not change.
	Name string
	// Every is the interval between the starts of two runs. A run also starts whenever a process
	// becomes River's leader, for example when the first process starts.
	Every time.Duration
	// Timeout limits the context of each run.
	Timeout time.Duration
	// Alone gives the job its own queue. All other jobs in a process run one after another, so a
	// job that hangs blocks the others until its Timeout. Set Alone for jobs that call other
	// servers.
	Alone bool
	// Run does the work. It can be interrupted at any point and is then run again from the
	// beginning. After an error or a panic, it is retried up to twice within minutes. After that,
	// it runs again at the next interval.
	Run func(ctx context.Context) error
}

// Stats counts a job's runs in this process.
type Stats struct {
	// Done counts the runs that succeeded, and Failed the runs that failed. Runs canceled by Stop
	// count in neither.
	Done, Failed int64
	// Took is the total duration of all runs that have ended, including failed and canceled runs.
	Took time.Duration
	// Running reports whether a run is active in this process.
	Running bool
}

// Runner runs jobs and tasks until it is stopped. It is safe for concurrent use.
type Runner struct {
	client   *river.Client[pgx.Tx]
	pool     *pgxpool.Pool
	log      *slog.Logger
	workers  map[string]*worker
	handlers map[string]*taskWorker

	stopping  atomic.Bool
	stopWaker context.CancelFunc
	waker     sync.WaitGroup
}

// Start runs the jobs and the handlers' tasks until Stop is called. ctx applies only to starting.
// The pool must have Conns connections and use the database role pg.Jobs. Stop closes the pool. If
// Start fails, it closes the pool itself.
//
// Start returns fault.Unavailable if the database cannot be reached or River's tables are missing
// or out of date. It returns fault.Internal if a job or handler is incomplete, or if two have the
// same name.
func Start(
	ctx context.Context, pool *pgxpool.Pool, jobs []Job, handlers []Handler, log *slog.Logger,
) (*Runner, error) {
	r := &Runner{pool: pool, log: log, workers: map[string]*worker{}, handlers: map[string]*taskWorker{}}
	if err := r.start(ctx, jobs, handlers); err != nil {
		pool.Close()
		return nil, err
	}
	return r, nil
}

func (r *Runner) start(ctx context.Context, jobs []Job, handlers []Handler) error {
	const op = "jobs.Start"
	cfg := river.Config{
		Schema: schema, ErrorHandler: r, Workers: river.NewWorkers(),
		Logger:            slog.New(warnFilter{Handler: r.log.Handler(), stopping: &r.stopping}),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}},
		FetchPollInterval: pollInterval, MaxAttempts: maxAttempts, RetryPolicy: r,
		CompletedJobRetentionPeriod: keepDone,
		CancelledJobRetentionPeriod: keepFailed, DiscardedJobRetentionPeriod: keepFailed,
		ReindexerSchedule: river.NeverSchedule(), // only the owner of an index may rebuild it
	}
	if err := errors.Join(r.addJobs(&cfg, jobs), r.addHandlers(&cfg, handlers)); err != nil {
		return fault.Wrap(fault.Internal, op, "", err)
	}
	driver := riverpgxv5.New(r.pool)
	if err := checkTables(ctx, driver, cfg.Logger); err != nil {
		return err
	}
	const message = "The background jobs cannot be started."
	client, err := river.NewClient(driver, &cfg)
	if err != nil {
		return fault.Wrap(fault.Unavailable, op, message, err)
	}
	if err := client.Start(context.WithoutCancel(ctx)); err != nil {
		return fault.Wrap(fault.Unavailable, op, message, err)
	}
	r.client = client
	r.startWaker(ctx)
	return nil
}

func (r *Runner) addJobs(cfg *river.Config, jobs []Job) error {
	for _, j := range jobs {
		if r.workers[j.Name] != nil || j.Every <= 0 || j.Timeout <= 0 {
			return errors.New("the background job " + j.Name + " needs a unique name, an interval and a deadline")
		}
		w := &worker{Job: j}
		r.workers[j.Name] = w
		river.AddWorkerArgs(cfg.Workers, args{Name: j.Name}, w)
		cfg.PeriodicJobs = append(cfg.PeriodicJobs, river.NewPeriodicJob(river.PeriodicInterval(j.Every), w.insert,
			&river.PeriodicJobOpts{ID: j.Name, RunOnStart: true}))
		if j.Alone {
			cfg.Queues[j.Name] = river.QueueConfig{MaxWorkers: 1}
		}
		repeatAfter(cfg, j.Timeout)
	}
	return nil
}

func (r *Runner) addHandlers(cfg *river.Config, handlers []Handler) error {
	for _, h := range handlers {
		if r.workers[h.Kind] != nil || r.handlers[h.Kind] != nil || !h.isValid() {
			return errors.New("the handler of the tasks " + h.Kind + " needs a unique kind, workers, a deadline, " +
				"a function and 1 to 99 attempts")
		}
		w := &taskWorker{Handler: h, pool: r.pool, log: r.log}
		r.handlers[h.Kind] = w
		river.AddWorkerArgs(cfg.Workers, taskArgs{kind: h.Kind}, w)
		queue := river.QueueConfig{MaxWorkers: h.Workers, FetchCooldown: fetchCooldown}
		cfg.Queues[h.Kind], cfg.Queues[h.Kind+laterSuffix] = queue, queue
		repeatAfter(cfg, h.Timeout)
	}
	return nil
}

// repeatAfter sets the age at which River checks whether a run is stuck. This age is the shortest
// timeout in any call to repeatAfter, plus rescueMargin. River repeats the run only if the run is
// also older than the Timeout of its river.Worker.
func repeatAfter(cfg *river.Config, timeout time.Duration) {
	if cfg.JobTimeout == 0 || timeout < cfg.JobTimeout {
		cfg.JobTimeout, cfg.RescueStuckJobsAfter = timeout, timeout+rescueMargin
	}
}

// checkTables returns fault.Unavailable if River's tables are missing or do not match this build.
func checkTables(ctx context.Context, driver *riverpgxv5.Driver, log *slog.Logger) error {
	const op = "jobs.Start"
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: schema, Logger: log})
	if err != nil {
		return fault.Wrap(fault.Internal, op, "", err)
	}
	v, err := m.Validate(ctx, nil)
	if err != nil {
		return fault.Wrap(fault.Unavailable, op, "The tables of the background jobs cannot be read.", err)
	}
	if !v.OK {
		message := "The tables of the background jobs are not up to date: run `crier migrate` first."
		return fault.New(fault.Unavailable, op, message)
	}
	return nil
}

// Stop cancels the active runs and waits for them to return. Another process, or the next Start,
// repeats them. If ctx ends first, Stop returns ctx's error and leaves the pool open.
func (r *Runner) Stop(ctx context.Context) error {
	r.stopping.Store(true)
	r.stopWaker()
	r.waker.Wait()
	if err := r.client.StopAndCancel(ctx); err != nil {
		return err // a run that has not returned needs the pool
	}
	r.pool.Close()
	return nil
}

// Stats returns each job's counts since Start, by job name. The counts are not a snapshot, because
// runs can end while Stats reads them.
func (r *Runner) Stats() map[string]Stats {
	out := make(map[string]Stats, len(r.workers))
	for name, w := range r.workers {
		out[name] = Stats{
			Done: w.done.Load(), Failed: w.failed.Load(), Took: time.Duration(w.took.Load()), Running: w.running.Load(),
		}
	}
	return out
}

// TaskStats returns each handler's counts since Start, by kind. The counts are not a snapshot,
// because runs can end while TaskStats reads them.
func (r *Runner) TaskStats() map[string]TaskStats {
	out := make(map[string]TaskStats, len(r.handlers))
	for kind, w := range r.handlers {
		out[kind] = w.stats()
	}
	return out
}

// NextRetry returns the time of the next attempt. River calls it after a failed run.
func (r *Runner) NextRetry(job *rivertype.JobRow) time.Time {
	next := new(river.DefaultClientRetryPolicy).NextRetry(job)
	w := r.handlers[job.Kind]
	if w == nil || w.MaxWait == 0 {
		return next
	}
	if latest := (clock.System{}).Now().Add(w.MaxWait); latest.Before(next) {
		return latest
	}
	return next
}

// HandleError counts and logs a run that returned an error. River calls it.
func (r *Runner) HandleError(ctx context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	return r.recordFailure(ctx, job, err, "")
}

// HandlePanic counts and logs a run that panicked. River calls it.
func (r *Runner) HandlePanic(
	ctx context.Context, job *rivertype.JobRow, value any, trace string,
) *river.ErrorHandlerResult {
	return r.recordFailure(ctx, job, fmt.Errorf("panic: %v", value), trace)
}

// recordFailure counts and logs a failed run. trace is the stack trace of a panic, or "".
func (r *Runner) recordFailure(
	ctx context.Context, job *rivertype.JobRow, err error, trace string,
) *river.ErrorHandlerResult {
	if w := r.handlers[job.Kind]; w != nil {
		return w.fail(ctx, job, err, trace)
	}
	if w := r.workers[job.Kind]; w != nil { // nil for a job of another version of the service
		w.failed.Add(1)
	}
	level := slog.LevelWarn // the run is repeated
	if job.Attempt >= job.MaxAttempts || trace != "" {
		level = slog.LevelError
	}
	r.log.Log(ctx, level, "a background job failed",
		"job", job.Kind, "attempt", job.Attempt, "of", job.MaxAttempts, "error", err, "trace", trace)
	return nil
}

// args is stored as JSON in the row of a job's run.
type args struct {
	Name string `json:"job"`
}

// Kind implements river.JobArgs. River stores the kind with each run to find the run's worker.
func (a args) Kind() string { return a.Name }

// worker adapts a Job to River and holds its counters in this process. took is in nanoseconds.
type worker struct {
	river.WorkerDefaults[args]
	Job
	done, failed, took atomic.Int64
	running            atomic.Bool
}

// unfinished lists the run states in which River does not insert another run of the same job.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable,
	rivertype.JobStateScheduled,
}

// insert returns the arguments and options of the job's next run. River drops that run if an
// earlier one is unfinished.
func (w *worker) insert() (river.JobArgs, *river.InsertOpts) {
	queue := river.QueueDefault
	if w.Alone {
		queue = w.Name
	}
	return args{Name: w.Name}, &river.InsertOpts{Queue: queue, UniqueOpts: river.UniqueOpts{ByState: unfinished}}
}

// Timeout implements river.Worker. It includes rescueMargin, because River also uses the timeout to
// decide when to repeat a run whose process died. Work applies the Job's own Timeout.
func (w *worker) Timeout(*river.Job[args]) time.Duration { return w.Job.Timeout + rescueMargin }

// Work implements river.Worker. It counts successful runs; recordFailure counts failed runs.
func (w *worker) Work(ctx context.Context, _ *river.Job[args]) error {
	began := clock.Boot()
	w.running.Store(true)
	defer func() {
		w.running.Store(false)
		w.took.Add(int64(clock.Boot() - began))
	}()
	ctx, cancel := context.WithTimeout(ctx, w.Job.Timeout)
	defer cancel()
	if err := w.Run(ctx); err != nil {
		return err
	}
	w.done.Add(1)
	return nil
}

// warnFilter filters River's log records. It drops records below the warning level. While the
// Runner is stopping, it drops all records, because River reports interrupted runs as errors.
type warnFilter struct {
	slog.Handler
	stopping *atomic.Bool
}

func (h warnFilter) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && !h.stopping.Load() && h.Handler.Enabled(ctx, l)
}
