package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"crier/platform/clock"
)

// mostAttempts is the greatest Attempts of a Handler. It is smaller than storedAttempts.
const mostAttempts = 99

// ErrLater is returned by Run for a task that is not to be run now, such as one that would take more than its part of
// what tasks share. The task is run some seconds later in the second queue of its kind, with the same Number. The run
// counts as neither done nor failed.
var ErrLater = errors.New("the task is run later")

// Handler runs the tasks of one kind. Each kind has two queues of its own, with their own workers: one for first
// attempts, and one for what has failed once or was put off. So no kind delays another, and no repetition a first attempt.
// A run whose process died is the exception: it is repeated in the queue where it was.
type Handler struct {
	// Kind identifies the tasks in the database, in logs and in metrics: two or more lower-case letters, digits and
	// hyphens. It differs from the names of all jobs and must not change. All processes that share the database have a
	// Handler of each kind: the tasks of a kind without one stay in the database, and a run that died is given up.
	Kind string
	// Workers is the number of tasks that one process runs at a time, of each of the two queues.
	Workers int
	// Timeout ends the context of a run. A run that goes on after that keeps its worker, and a minute later the task is
	// run a second time.
	Timeout time.Duration
	// Attempts is how many times a task is run until it succeeds, 1 to 99. After the n-th failure River waits n^4
	// seconds, give or take 10 %, and up to 10 s more. From the first to the last attempt, without the time of the
	// attempts themselves: 1 s with 2, 17 s with 3, 6 min with 5, 80 min with 8, 4.3 h with 10, 35 h with 15, 6.5 days
	// with 20; with a MaxWait of 15 minutes 5 h with 25 and 23.5 h with 99.
	Attempts int
	// MaxWait is the longest wait after a failure, beside the 10 s. 0 is no limit.
	MaxWait time.Duration
	// Run does the work. It may be stopped at any point and then starts again from the beginning, also if it had just
	// succeeded, so it must be repeatable. After an error or a panic it is retried as Attempts says, after an error of
	// Permanent not at all. The text of an error is logged and stored for a day, and must not hold content or secrets.
	Run func(ctx context.Context, t Task, a Attempt) error
	// GaveUp is called after a task was given up, so that the log can name what was lost. It may be nil. It is not called
	// again when it failed or its process died.
	GaveUp func(ctx context.Context, t Task)
}

// Attempt numbers a run of a task.
type Attempt struct {
	// Number is 1 in the first run. A run that ended because its process was stopped is repeated with the same number,
	// one whose process died with the next.
	Number int
	// Of is the Attempts of the Handler.
	Of int
	// Later means that the run is of the second queue: it delays no first attempt.
	Later bool
}

// TaskStats counts the runs of a Handler in this process.
type TaskStats struct {
	// Done and Failed are the numbers of runs that have ended. A run that Stop cancelled is in neither.
	Done, Failed int64
	// GaveUp is the number of tasks that are not retried: their last attempt failed, or the error was permanent. Each
	// is in Failed too.
	GaveUp int64
	// Running is the number of active runs.
	Running int64
	// Took is the time of all ended runs together, including failed and cancelled ones.
	Took time.Duration
}

// Permanent returns an error with the text of err that ends a task at once: it is not retried. It returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err: err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }

func (e *permanentError) Unwrap() error { return e.err }

func isPermanent(err error) bool {
	var p *permanentError
	return errors.As(err, &p)
}

// isValid returns true when River can run tasks with h.
func (h Handler) isValid() bool {
	return isKind(h.Kind) && h.Run != nil && h.Timeout > 0 && h.Attempts >= 1 && h.Attempts <= mostAttempts &&
		h.MaxWait >= 0 && h.Workers >= 1 && h.Workers <= river.QueueNumWorkersMax
}

// taskWorker is a Handler as River runs it, with its counts in this process. took is in nanoseconds.
type taskWorker struct {
	river.WorkerDefaults[taskArgs]
	Handler
	pool                                *pgxpool.Pool
	log                                 *slog.Logger
	done, failed, gaveUp, running, took atomic.Int64
}

// Timeout implements river.Worker. The margin is for the repetition of a run whose process died; Work applies the
// Handler's own Timeout.
func (w *taskWorker) Timeout(*river.Job[taskArgs]) time.Duration {
	return w.Handler.Timeout + rescueMargin
}

// Work implements river.Worker. It counts a run that succeeds; fail counts one that fails.
func (w *taskWorker) Work(ctx context.Context, job *river.Job[taskArgs]) error {
	if job.Attempt > w.Attempts {
		return Permanent(errors.New("the process died in the last attempt, or fewer attempts are allowed than before"))
	}
	began := clock.Boot()
	w.running.Add(1)
	defer func() {
		w.running.Add(-1)
		w.took.Add(int64(clock.Boot() - began))
	}()
	err := w.run(ctx, job)
	if err == nil {
		w.done.Add(1)
		return nil
	}
	if errors.Is(err, ErrLater) {
		w.moveLater(ctx, job.JobRow)
		if job.Queue == w.Kind+laterSuffix {
			return river.JobSnooze(laterAgain)
		}
		return river.JobSnooze(laterWait)
	}
	if errors.Is(ctx.Err(), context.Canceled) && !isPermanent(err) {
		return errors.Join(err, ctx.Err()) // River repeats a stopped run only if it sees this error
	}
	return err
}

func (w *taskWorker) run(ctx context.Context, job *river.Job[taskArgs]) error {
	ctx, cancel := context.WithTimeout(ctx, w.Handler.Timeout)
	defer cancel()
	task := Task{Kind: w.Kind, Org: job.Args.Org, ID: job.Args.ID}
	return w.Run(ctx, task, Attempt{Number: job.Attempt, Of: w.Attempts, Later: job.Queue == w.Kind+laterSuffix})
}

const (
	// laterWait is how long a task waits at least that returned ErrLater, and laterAgain how long in the second queue: the
	// tasks behind it have turns meanwhile. It is short, so that what tasks share is not idle while many wait for it. Each
	// that waits costs a few queries in that time, of all together not more than the workers of the queue make.
	laterWait  = time.Second
	laterAgain = 2 * time.Second
	// afterTimeout limits what follows a run that failed.
	afterTimeout = 5 * time.Second
)

const taskLater = `-- jobs.TaskLater
update jobs.river_job set queue = $2 where id = $1`

// moveLater moves the row of an active run to the second queue, from which River takes it when its state allows that.
// After an error, which is logged, the task is repeated in the queue where it is.
func (w *taskWorker) moveLater(ctx context.Context, job *rivertype.JobRow) {
	queue := w.Kind + laterSuffix
	if job.Queue == queue {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterTimeout)
	defer cancel()
	if _, err := w.pool.Exec(ctx, taskLater, job.ID, queue); err != nil {
		w.log.WarnContext(ctx, "a task stays in the queue of first attempts", "task", w.Kind, "error", err)
	}
}

// fail counts and logs a failed run, and tells River whether it was the last one. trace is the stack of a panic.
func (w *taskWorker) fail(
	ctx context.Context, job *rivertype.JobRow, err error, trace string,
) *river.ErrorHandlerResult {
	w.failed.Add(1)
	last := isPermanent(err) || job.Attempt >= w.Attempts
	message, level := "a task failed and is retried", slog.LevelWarn
	if last {
		w.gaveUp.Add(1)
		message = "a task failed and was given up"
	}
	if last || trace != "" {
		level = slog.LevelError
	}
	var args taskArgs
	if broken := json.Unmarshal(job.EncodedArgs, &args); broken != nil {
		err = errors.Join(err, broken)
	}
	w.log.Log(ctx, level, message, "task", w.Kind, "id", args.ID, "attempt", job.Attempt, "of", w.Attempts,
		"error", err, "trace", trace)
	if !last {
		w.moveLater(ctx, job)
	} else if w.GaveUp != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterTimeout)
		defer cancel()
		w.GaveUp(ctx, Task{Kind: w.Kind, Org: args.Org, ID: args.ID})
	}
	return &river.ErrorHandlerResult{SetCancelled: last}
}

func (w *taskWorker) stats() TaskStats {
	return TaskStats{
		Done: w.done.Load(), Failed: w.failed.Load(), GaveUp: w.gaveUp.Load(), Running: w.running.Load(),
		Took: time.Duration(w.took.Load()),
	}
}
