// Package jobs runs background jobs, each at an interval and in one process at a time, by the queue of River in the
// service's own database.
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
	// Conns is how many connections the pool of a Runner needs: one listens for ever, one serves the queue, and one
	// each the search for a leader and what only the leader does.
	Conns = 4

	schema      = "jobs"
	maxAttempts = 3
	// pollInterval is how often the queue is read without a notification. Notifications find a new job at once; this
	// only covers a lost one.
	pollInterval = 30 * time.Second
	// rescueMargin is how much longer than its deadline a run may stand as running before its process counts as dead.
	rescueMargin = time.Minute
)

// Job is work that is done again and again. At most one run of it is under way in all processes; one whose process
// died is repeated after its Timeout and a minute.
type Job struct {
	// Name identifies the job in the database, in logs and in metrics. It matches [a-z][a-z0-9-]+ and never changes.
	Name string
	// Every is the time from the start of one run to that of the next. The first run begins when the process starts.
	Every time.Duration
	// Timeout ends the context of a run.
	Timeout time.Duration
	// Run does the work. It may be stopped at any point and is begun again then. After an error or a panic it is
	// repeated up to twice within minutes, and then at the next interval.
	Run func(ctx context.Context) error
}

// Stats is what this process has seen of a job.
type Stats struct {
	Done, Failed int64         // runs
	Took         time.Duration // all runs together
	Running      bool
}

// Runner runs jobs until it is stopped.
type Runner struct {
	client *river.Client[pgx.Tx]
	pool   *pgxpool.Pool
	log    *slog.Logger
	works  map[string]*work

	stopping atomic.Bool
}

// Start begins to run jobs; ctx is for starting only. The pool enters the role of the jobs and has Conns connections;
// it is closed by Stop, and when Start fails. A database without River's tables is fault.Unavailable.
func Start(ctx context.Context, pool *pgxpool.Pool, jobs []Job, log *slog.Logger) (*Runner, error) {
	r := &Runner{pool: pool, log: log, works: map[string]*work{}}
	err := r.start(ctx, jobs)
	if err != nil {
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
		w := &work{Job: j}
		if r.works[j.Name] != nil || j.Every <= 0 || j.Timeout <= 0 {
			words := "The background job " + j.Name + " needs a name of its own, an interval and a deadline."
			return fault.New(fault.Internal, op, words)
		}
		r.works[j.Name] = w
		river.AddWorkerArgs(workers, args{j.Name}, w)
		periodic = append(periodic, river.NewPeriodicJob(river.PeriodicInterval(j.Every), w.insert,
			&river.PeriodicJobOpts{ID: j.Name, RunOnStart: true}))
		longest = max(longest, j.Timeout)
	}
	driver, quiet := riverpgxv5.New(r.pool), slog.New(warnings{r.log.Handler(), &r.stopping})
	m, err := rivermigrate.New(driver, &rivermigrate.Config{Schema: schema, Logger: quiet})
	if err != nil {
		return fault.Wrap(fault.Internal, op, "", err)
	}
	v, err := m.Validate(ctx, nil)
	if err != nil {
		return fault.Wrap(fault.Unavailable, op, "The tables of the background jobs cannot be read.", err)
	}
	if !v.OK {
		words := "The tables of the background jobs are not up to date: run `crier migrate` first."
		return fault.New(fault.Unavailable, op, words)
	}
	r.client, err = river.NewClient(driver, &river.Config{
		Schema: schema, Logger: quiet, ErrorHandler: r, Workers: workers, PeriodicJobs: periodic,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 1}},
		FetchPollInterval: pollInterval, MaxAttempts: maxAttempts,
		JobTimeout: longest, RescueStuckJobsAfter: longest + rescueMargin,
		ReindexerSchedule: river.NeverSchedule(), // only the owner of an index may
	})
	if err == nil {
		err = r.client.Start(context.WithoutCancel(ctx))
	}
	if err != nil {
		return fault.Wrap(fault.Unavailable, op, "The background jobs cannot be started.", err)
	}
	return nil
}

// Stop cancels the run that is under way, if there is one, and waits until it has returned. Another process or the
// next start repeats it.
func (r *Runner) Stop(ctx context.Context) error {
	r.stopping.Store(true)
	if err := r.client.StopAndCancel(ctx); err != nil {
		return err // what still runs needs the pool
	}
	r.pool.Close()
	return nil
}

// Stats returns what this process has seen of each job, by its name.
func (r *Runner) Stats() map[string]Stats {
	out := make(map[string]Stats, len(r.works))
	for name, w := range r.works {
		out[name] = Stats{w.done.Load(), w.failed.Load(), time.Duration(w.took.Load()), w.running.Load()}
	}
	return out
}

// HandleError is called by River after a run that returned an error.
func (r *Runner) HandleError(ctx context.Context, job *rivertype.JobRow, err error) *river.ErrorHandlerResult {
	r.failed(ctx, job, err, "")
	return nil
}

// HandlePanic is called by River after a run that panicked.
func (r *Runner) HandlePanic(
	ctx context.Context, job *rivertype.JobRow, value any, trace string,
) *river.ErrorHandlerResult {
	r.failed(ctx, job, fmt.Errorf("panic: %v", value), trace)
	return nil
}

func (r *Runner) failed(ctx context.Context, job *rivertype.JobRow, err error, trace string) {
	if w := r.works[job.Kind]; w != nil { // else it is of another version of the service
		w.failed.Add(1)
	}
	level := slog.LevelWarn // it is run again
	if job.Attempt >= job.MaxAttempts || trace != "" {
		level = slog.LevelError
	}
	r.log.Log(ctx, level, "a background job failed",
		"job", job.Kind, "attempt", job.Attempt, "of", job.MaxAttempts, "error", err, "trace", trace)
}

// args is what a job's row holds.
type args struct {
	Name string `json:"job"`
}

// Kind is the job's name for River.
func (a args) Kind() string { return a.Name }

// work is a job as River runs it.
type work struct {
	river.WorkerDefaults[args]
	Job
	done, failed, took atomic.Int64
	running            atomic.Bool
}

// unfinished are the states of a run that keep another one from being inserted.
var unfinished = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable,
	rivertype.JobStateScheduled,
}

func (w *work) insert() (river.JobArgs, *river.InsertOpts) {
	return args{w.Name}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByState: unfinished}}
}

// Timeout is the deadline of a run for River.
func (w *work) Timeout(*river.Job[args]) time.Duration { return w.Job.Timeout }

// Work is one run.
func (w *work) Work(ctx context.Context, _ *river.Job[args]) error {
	began := clock.Boot()
	w.running.Store(true)
	defer func() {
		w.running.Store(false)
		w.took.Add(int64(clock.Boot() - began))
	}()
	err := w.Run(ctx)
	if err == nil {
		w.done.Add(1)
	}
	return err
}

// warnings passes on a library's warnings and errors, but not its news, and not that it is interrupted by a stop.
type warnings struct {
	slog.Handler
	stopping *atomic.Bool
}

func (h warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && !h.stopping.Load() && h.Handler.Enabled(ctx, l)
}
