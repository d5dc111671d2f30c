package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"crier/platform/jobs"
)

// TestRun_RetriesDoNotDelayFirstAttempts blocks the only worker for retries until the first attempt
// of another task has run.
func TestRun_RetriesDoNotDelayFirstAttempts(t *testing.T) {
	t.Parallel()
	r, release := newRig(t), make(chan struct{})
	bad, good := uuid.New(), uuid.New()
	began, calls := make(chan struct{}, 10), make(chan run, 10)
	runner := r.serve(t, quiet, handler("kind", func(ctx context.Context, task jobs.Task, a jobs.Attempt) error {
		if task.ID == bad && a.Number == 1 {
			return errors.New("a cause")
		}
		if task.ID == bad {
			began <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		calls <- run{task: task, attempt: a}
		return nil
	}))
	hangs := r.add(t, jobs.Task{Kind: "kind", ID: bad})
	<-began
	other := r.add(t, jobs.Task{Kind: "kind", ID: good})
	if got, want := <-calls, (run{task: other, attempt: jobs.Attempt{Number: 1, Of: 3}}); got != want {
		t.Errorf("got %v while a repetition hangs, want %v", got, want)
	}
	close(release)
	if got, want := <-calls, (run{task: hangs, attempt: jobs.Attempt{Number: 2, Of: 3, Later: true}}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	eventually(t, "both are done", func() bool { return runner.TaskStats()["kind"].Done == 2 })
}

func TestRun_PostponedTaskIsNotFailure(t *testing.T) {
	t.Parallel()
	r, calls := newRig(t), make(chan run, 10)
	runner := r.serve(t, quiet, handler("kind", func(_ context.Context, task jobs.Task, a jobs.Attempt) error {
		calls <- run{task: task, attempt: a}
		if !a.Later {
			return fmt.Errorf("wrapped: %w", jobs.ErrLater)
		}
		return nil
	}))
	task := r.add(t, jobs.Task{Kind: "kind", Org: uuid.New(), ID: uuid.New()})
	for _, later := range []bool{false, true} {
		want := run{task: task, attempt: jobs.Attempt{Number: 1, Of: 3, Later: later}}
		if got := <-calls; got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	direct := jobs.Task{Kind: "kind", Org: uuid.New(), ID: uuid.New(), Later: true}
	r.add(t, direct)
	direct.Later = false
	if got, want := <-calls, (run{task: direct, attempt: jobs.Attempt{Number: 1, Of: 3, Later: true}}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	eventually(t, "both are done", func() bool { return runner.TaskStats()["kind"].Done == 2 })
	if got := runner.TaskStats()["kind"]; got.Failed != 0 || got.GaveUp != 0 {
		t.Errorf("got %+v, want no failure", got)
	}
}

func TestRun_GivenUpTaskIsReportedOnce(t *testing.T) {
	t.Parallel()
	r, gone := newRig(t), make(chan jobs.Task, 10)
	h := handler("kind", func(_ context.Context, task jobs.Task, _ jobs.Attempt) error {
		if task.Org == uuid.Nil {
			return jobs.Permanent(errors.New("a cause"))
		}
		return errors.New("a cause")
	})
	h.Attempts = 2
	h.GaveUp = func(_ context.Context, task jobs.Task) { gone <- task }
	runner := r.serve(t, quiet, h, handler("silent", func(context.Context, jobs.Task, jobs.Attempt) error {
		return jobs.Permanent(errors.New("a cause"))
	}))
	r.add(t, jobs.Task{Kind: "silent", ID: uuid.New()})
	for _, org := range []uuid.UUID{uuid.Nil, uuid.New()} {
		task := r.add(t, jobs.Task{Kind: "kind", Org: org, ID: uuid.New()})
		if got := <-gone; got != task {
			t.Errorf("got %v, want %v", got, task)
		}
		eventually(t, "it is cancelled", func() bool { return r.row(t, "state", task) == "cancelled" })
	}
	died := r.add(t, jobs.Task{Kind: "kind", Org: uuid.New(), ID: uuid.New(), After: time.Hour})
	runSQL(t, r.address, fmt.Sprintf(`set role crier_jobs; update jobs.river_job set state = 'available', attempt = 2,
		scheduled_at = now() where args ->> 'id' = '%s'`, died.ID))
	if got := <-gone; got.ID != died.ID {
		t.Errorf("got %v, want the task whose process died in the last attempt, %v", got, died)
	}
	eventually(t, "all are counted", func() bool { return runner.TaskStats()["kind"].GaveUp == 3 })
	if len(gone) > 0 {
		t.Errorf("got %v too", <-gone)
	}
}

func TestRun_WaitsAfterFailuresAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fails := func(context.Context, jobs.Task, jobs.Attempt) error { return errors.New("a cause") }
	short, long := handler("short", fails), handler("long", fails)
	short.Attempts, long.Attempts, short.MaxWait = 20, 20, time.Minute
	r.serve(t, quiet, short, long)
	for kind, want := range map[string]string{"short": "true", "long": "false"} {
		task := r.add(t, jobs.Task{Kind: kind, ID: uuid.New(), After: time.Hour})
		runSQL(t, r.address, fmt.Sprintf(`set role crier_jobs; update jobs.river_job set state = 'available', attempt = 9,
			scheduled_at = now(), errors = array_fill('{}'::jsonb, array[9]) where args ->> 'id' = '%s'`, task.ID))
		eventually(t, "the tenth attempt has failed", func() bool { return r.row(t, "state", task) == "retryable" })
		if got := r.row(t, "scheduled_at < now() + interval '1 minute'", task); got != want {
			t.Errorf("%s: got %s for a wait of at most a minute, want %s", kind, got, want)
		}
		if got := r.row(t, "queue", task); got != kind+"-later" {
			t.Errorf("got the queue %s, want %s-later", got, kind)
		}
	}
}
