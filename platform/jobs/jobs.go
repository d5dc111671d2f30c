// Package jobs runs background jobs, each at an interval and in one process at a time. It uses River, whose queue is in
// the database of the service.
package jobs

import (
	"context"
	"fmt"
	"log/slog"
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
	// Conns is the number of connections that the pool of a Runner needs: one each for listening, for the queue, for
	// the election of a leader, and for the tasks of the leader.
	Conns = 4

	schema      = "jobs"
	maxAttempts = 3
	// pollInterval is how often the queue is read without a notification. It matters only when a notification is lost.
	pollInterval = 30 * time.Second
	// rescueMargin is added to the longest deadline; a run that has not ended after that is repeated, because its
	// process must be dead.
	rescueMargin = time.Minute
)

// Job is periodic work. At most one run of a job is active in all processes. A run whose process has died is repeated a
// minute after the longest Timeout of all jobs.
type Job struct {
	// Name identifies the job in the database, in logs and in metrics. It matches [a-z][a-z0-9-]+ and must not change.
	Name string
	// Every is the time from the start of one run to that of the next. A run also begins when a process becomes River's
	// leader, such as at the start of the first process.
	Every time.Duration
	// Timeout ends the context of a run.
	Timeout time.Duration
	// Run does the work. It may be stopped at any point, and then starts again from the beginning. After an error or a
	// panic it is repeated up to twice within minutes, and after that at the next interval.
	Run func(ctx context.Context) error
}

// Stats counts the runs of a job in this process.
type Stats struct {
	// Done and Failed are the numbers of runs that have ended. A run that Stop cancelled is in neither.
	Done, Failed int64
	// Took is the time of all ended runs together, including failed and cancelled ones.
	Took time.Duration
	// Running means that a run is active in this process.
	Running bool
}

// Runner runs jobs until it is stopped. It is safe for concurrent use.
type Runner struct {
	client  *river.Client[pgx.Tx]
	pool    *pgxpool.Pool
	log     *slog.Logger
	workers map[string]*worker

	stopping atomic.Bool
}

// Start starts to run jobs; ctx is for starting only. The connections of pool must use the database role of the jobs,
// and there must be Conns of them. The pool is closed by Stop, or by Start if it fails. The error is fault.Unavailable
// when the database cannot be reached or its tables for River are missing or out of date, and fault.Internal when a job
// has no interval or deadline or two have the same name.
func Start(ctx context.Context, pool *pgxpool.Pool, jobs []Job, log *slog.Logger) (*Runner, error) {
	r := &Runner{pool: pool, log: log, workers: map[string]*worker{}}
	if err := r.start(ctx, jobs); err != nil {
		pool.Close()
		return nil, err
	}
	return r, nil
}

func (r *Runner) start(ctx context.Context, jobs []Job) error {
	const op = "jobs.Start"
	workers := river.NewWorkers()
	var periodic []*river.PeriodicJob
	var longest time.Duration
	for _, j := range jobs {
		w := &worker{Job: j}
		if r.workers[j.Name] != nil || j.Every <= 0 || j.Timeout <= 0 {
			message := "The background job " + j.Name + " needs a name of its own, an interval and a deadline."
			return fault.New(fault.Internal, op, message)
		}
		r.workers[j.Name] = w
		river.AddWorkerArgs(workers, args{Name: j.Name}, w)
		periodic = append(periodic, river.NewPeriodicJob(river.PeriodicInterval(j.Every), w.insert,
			&river.PeriodicJobOpts{ID: j.Name, RunOnStart: true}))
		longest = max(longest, j.Timeout)
	}
	driver, log := riverpgxv5.New(r.pool), slog.New(warnFilter{Handler: r.log.Handler(), stopping: &r.stopping})
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
	r.client, err = river.NewClient(driver, &river.Config{
		Schema: schema, Logger: log, ErrorHandler: r, Workers: workers, PeriodicJobs: periodic,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}},
		FetchPollInterval: pollInterval, MaxAttempts: maxAttempts,
		JobTimeout: longest, RescueStuckJobsAfter: longest + rescueMargin,
		ReindexerSchedule: river.NeverSchedule(), // only the owner of an index may rebuild it
	})
	const message = "The background jobs cannot be started."
	if err != nil {
		return fault.Wrap(fault.Unavailable, op, message, err)
	}
	if err := r.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fault.Wrap(fault.Unavailable, op, message, err)
	}
	return nil
}

// Stop cancels the active run, if there is one, and waits until it has returned. Another process, or the next Start,
// repeats the run. When ctx ends first, Stop returns its error and leaves the pool open.
func (r *Runner) Stop(ctx context.Context) error {
	r.stopping.Store(true)
	if err := r.client.StopAndCancel(ctx); err != nil {
		return err // a run that has not returned needs the pool
	}
	r.pool.Close()
	return nil
}

// Stats returns the counts of each job since Start, by its name. They are read one after another, while runs may end.
func (r *Runner) Stats() map[string]Stats {
	out := make(map[string]Stats, len(r.workers))
	for name, w := range r.workers {
		out[name] = Stats{
			Done: w.done.Load(), Failed: w.failed.Load(), Took: time.Duration(w.took.Load()), Running: w.running.Load(),
		}
	}
	return out
}

// HandleError is called by River after a run that returned an error.
func (r *Runner) HandleError(ctx context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	r.recordFailure(ctx, job, err, "")
	return nil
}

// HandlePanic is called by River after a run that panicked.
func (r *Runner) HandlePanic(
	ctx context.Context, job *rivertype.JobRow, value any, trace string,
) *river.ErrorHandlerResult {
	r.recordFailure(ctx, job, fmt.Errorf("panic: %v", value), trace)
	return nil
}

// recordFailure counts and logs a failed run. trace is the stack of a panic.
func (r *Runner) recordFailure(ctx context.Context, job *rivertype.JobRow, err error, trace string) {
	if w := r.workers[job.Kind]; w != nil { // nil for a job of another version of the service
		w.failed.Add(1)
	}
	level := slog.LevelWarn // the run is repeated
	if job.Attempt >= job.MaxAttempts || trace != "" {
		level = slog.LevelError
	}
	r.log.Log(ctx, level, "a background job failed",
		"job", job.Kind, "attempt", job.Attempt, "of", job.MaxAttempts, "error", err, "trace", trace)
}

// args is stored as JSON in the row of a run.
type args struct {
	Name string `json:"job"`
}

// Kind implements river.JobArgs. River stores it with each run and finds the worker of the run by it.
func (a args) Kind() string { return a.Name }

// worker is a Job as River runs it, with its counts in this process. took is in nanoseconds.
type worker struct {
	river.WorkerDefaults[args]
	Job
	done, failed, took atomic.Int64
	running            atomic.Bool
}

// unfinished are the states of a run in which River inserts no other run of the job.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable,
	rivertype.JobStateScheduled,
}

// insert returns the next run. River does not insert it while another run of the job is in one of the states
// unfinished.
func (w *worker) insert() (river.JobArgs, *river.InsertOpts) {
	return args{Name: w.Name}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByState: unfinished}}
}

// Timeout implements river.Worker. Without it a run would have the longest Timeout of all jobs.
func (w *worker) Timeout(*river.Job[args]) time.Duration { return w.Job.Timeout }

// Work implements river.Worker. It counts a run that succeeds; recordFailure counts one that fails.
func (w *worker) Work(ctx context.Context, _ *river.Job[args]) error {
	began := clock.Boot()
	w.running.Store(true)
	defer func() {
		w.running.Store(false)
		w.took.Add(int64(clock.Boot() - began))
	}()
	if err := w.Run(ctx); err != nil {
		return err
	}
	w.done.Add(1)
	return nil
}

// warnFilter is a handler for River's records. It drops those below warnings, and all while the Runner stops, when
// River reports the interruption as errors.
type warnFilter struct {
	slog.Handler
	stopping *atomic.Bool
}

func (h warnFilter) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && !h.stopping.Load() && h.Handler.Enabled(ctx, l)
}
