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

// mostAttempts is the maximum value of Handler.Attempts. It must be less than storedAttempts.
const mostAttempts = 99

// ErrLater is returned by Handler.Run to postpone a task, for example because the task would exceed
// its share of a limited capacity. The task runs again a few seconds later from its kind's second
// queue, with the same Attempt.Number. The postponed run counts as neither done nor failed.
var ErrLater = errors.New("the task will run later")

// Handler runs the tasks of one kind. Each kind has two queues with separate workers: one for first
// attempts, and one for tasks that failed or were postponed. Kinds therefore do not delay each
// other, and retries do not delay first attempts. There is one exception: a run whose process died
// is repeated from the queue it was in.
type Handler struct {
	// Kind identifies the tasks in the database, logs and metrics. It consists of two or more
	// lowercase letters, digits and hyphens, must differ from every job name, and must not change.
	//
	// Every process that shares the database needs a Handler for each kind. Without a Handler,
	// tasks stay in the database, and a run whose process died is abandoned.
	Kind string
	// Workers is how many tasks one process runs at a time from each of the two queues.
	Workers int
	// Timeout is the time after which the context of a run ends. If the run continues after that,
	// it keeps its worker busy, and a minute later the task is started a second time.
	Timeout time.Duration
	// Attempts is the maximum number of times a task is run, from 1 to 99. After the nth failure,
	// River waits n^4 seconds, plus or minus 10%, and then up to 10 s more.
	//
	// Without the extra 10 s, the waits add up to 1 s with 2 attempts, 17 s with 3, 6 min with 5,
	// 80 min with 8, 4.3 h with 10, 35 h with 15, and 6.5 days with 20. With a MaxWait of 15
	// minutes, they add up to 5 h with 25 attempts and 23.5 h with 99.
	Attempts int
	// MaxWait limits the wait after a failure, not counting the extra 10 s. 0 means no limit.
	MaxWait time.Duration
	// Run does the work. It must be safe to repeat: it can be interrupted at any point, even just
	// after it has succeeded, and is then run again from the beginning.
	//
	// After an error or a panic, Run is retried until Attempts is reached. After a Permanent error,
	// it is not retried. Error texts are logged and stored for a day, so they must not contain
	// content or secrets.
	Run func(ctx context.Context, t Task, a Attempt) error
	// GaveUp is called after a task has been abandoned, so that the log can name what was lost. It
	// may be nil. If GaveUp fails, it is not called again. If the process dies before River has
	// stored the result, GaveUp can be called again.
	GaveUp func(ctx context.Context, t Task)
}

// Attempt describes one run of a task.
type Attempt struct {
	// Number is 1 for the first run. A run interrupted by Stop is repeated with the same number,
	// and a run whose process died is repeated with the next number.
	Number int
	// Of is the Handler's Attempts.
	Of int
	// Later is true if the task was taken from its kind's second queue, where it cannot delay first
	// attempts.
	Later bool
}

// TaskStats counts a Handler's runs in this process.
type TaskStats struct {
	// Done counts the runs that succeeded, and Failed the runs that failed. Runs canceled by Stop
	// count in neither.
	Done, Failed int64
	// GaveUp counts the tasks that were abandoned because of a permanent error or because their
	// last attempt failed. The last run of each of these tasks also counts in Failed.
	GaveUp int64
	// Running is the number of active runs.
	Running int64
	// Took is the total duration of all runs that have ended, including failed and canceled runs.
	Took time.Duration
}

// Permanent wraps err so that the task is not retried. The error text stays the same. Permanent
// returns nil if err is nil.
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

// isValid reports whether River can run tasks with h.
func (h Handler) isValid() bool {
	return isKind(h.Kind) && h.Run != nil && h.Timeout > 0 && h.Attempts >= 1 && h.Attempts <= mostAttempts &&
		h.MaxWait >= 0 && h.Workers >= 1 && h.Workers <= river.QueueNumWorkersMax
}

// taskWorker adapts a Handler to River and holds its counters in this process. took is in
// nanoseconds.
type taskWorker struct {
	river.WorkerDefaults[taskArgs]
	Handler
	pool                                *pgxpool.Pool
	log                                 *slog.Logger
	done, failed, gaveUp, running, took atomic.Int64
}

// Timeout implements river.Worker. It includes rescueMargin, because River also uses the timeout to
// decide when to repeat a run whose process died. Work applies the Handler's own Timeout.
func (w *taskWorker) Timeout(*river.Job[taskArgs]) time.Duration {
	return w.Handler.Timeout + rescueMargin
}

// Work implements river.Worker. It counts successful runs; fail counts failed runs.
func (w *taskWorker) Work(ctx context.Context, job *river.Job[taskArgs]) error {
	if job.Attempt > w.Attempts {
		return Permanent(errors.New(
			"the process died during the last attempt, or fewer attempts are allowed than before"))
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
	// laterWait and laterAgain are the minimum waits after ErrLater. laterWait applies to tasks in
	// the first queue and laterAgain to tasks in the second. Other tasks run in the meantime.
	//
	// The waits are short so that shared capacity does not sit idle while many tasks wait for it.
	// Each wait costs a few queries, and the number of workers limits the total cost.
	laterWait  = time.Second
	laterAgain = 2 * time.Second
	// afterTimeout limits each call to moveLater and GaveUp.
	afterTimeout = 5 * time.Second
)

const taskLater = `-- jobs.TaskLater
update jobs.river_job set queue = $2 where id = $1`

// moveLater moves an active run's row to the second queue. River takes the task from that queue
// once the row's state allows it. If the update fails, moveLater logs the error, and the task is
// repeated from its current queue.
func (w *taskWorker) moveLater(ctx context.Context, job *rivertype.JobRow) {
	queue := w.Kind + laterSuffix
	if job.Queue == queue {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), afterTimeout)
	defer cancel()
	if _, err := w.pool.Exec(ctx, taskLater, job.ID, queue); err != nil {
		w.log.WarnContext(ctx, "a task could not be moved to the retry queue", "task", w.Kind, "error", err)
	}
}

// fail counts and logs a failed run, and tells River whether to retry the task. trace is the stack
// trace of a panic, or "".
func (w *taskWorker) fail(
	ctx context.Context, job *rivertype.JobRow, err error, trace string,
) *river.ErrorHandlerResult {
	w.failed.Add(1)
	last := isPermanent(err) || job.Attempt >= w.Attempts
	message, level := "a task failed and will be retried", slog.LevelWarn
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
