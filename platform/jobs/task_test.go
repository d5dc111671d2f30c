package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/tests/dbtest"
	"crier/tests/syncbuffer"
)

// run is one call of a Handler.
type run struct {
	task    jobs.Task
	attempt jobs.Attempt
}

// rig is a database with a queue, and the address that Runners use.
type rig struct {
	address string
	db      *pg.DB
	queue   *jobs.Queue
}

func newRig(t *testing.T) rig {
	t.Helper()
	q, err := jobs.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	address := dbtest.URL(t)
	return rig{address: address, db: dbtest.OpenURL(t, address), queue: q}
}

// serve runs tasks until the test ends.
func (r rig) serve(t *testing.T, log *slog.Logger, handlers ...jobs.Handler) *jobs.Runner {
	t.Helper()
	runner, err := jobs.Start(t.Context(), pool(t, r.address), nil, handlers, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, runner) })
	return runner
}

// in runs fn in a transaction of the organization, or of the gate role if org is uuid.Nil.
func (r rig) in(ctx context.Context, org uuid.UUID, fn func(tx pgx.Tx) error) error {
	if org == uuid.Nil {
		return r.db.InRole(ctx, pg.Gate, fn)
	}
	return r.db.InOrg(ctx, org, fn)
}

func (r rig) add(t *testing.T, task jobs.Task) jobs.Task {
	t.Helper()
	err := r.in(t.Context(), task.Org, func(tx pgx.Tx) error { return r.queue.Add(t.Context(), tx, task) })
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// row returns the value of an SQL expression for the row of a task, or "" if there is no row.
func (r rig) row(t *testing.T, expression string, task jobs.Task) (out string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), r.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	if _, err := c.Exec(t.Context(), "set role crier_jobs"); err != nil {
		t.Fatal(err)
	}
	sql := "select (" + expression + ")::text from jobs.river_job where args ->> 'id' = $1"
	if err := c.QueryRow(t.Context(), sql, task.ID).Scan(&out); err != nil && !pg.IsNoRows(err) {
		t.Fatal(err)
	}
	return out
}

// crash changes the row of a task as if its process had died ten minutes ago during this attempt.
func (r rig) crash(t *testing.T, task jobs.Task, attempt int) {
	t.Helper()
	runSQL(t, r.address, fmt.Sprintf(`set role crier_jobs; update jobs.river_job set state = 'running', attempt = %d,
		attempted_at = now() - interval '10 minutes', attempted_by = '{gone}' where args ->> 'id' = '%s'`, attempt, task.ID))
}

// listen returns a function that waits for the next notification of new tasks.
func (r rig) listen(t *testing.T) (next func() string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), r.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	if _, err := c.Exec(t.Context(), `listen "jobs.river_insert"`); err != nil {
		t.Fatal(err)
	}
	return func() string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			t.Fatalf("no notification came: %v", err)
		}
		return n.Payload
	}
}

// handler returns a Handler with the defaults of these tests.
func handler(kind string, do func(ctx context.Context, t jobs.Task, a jobs.Attempt) error) jobs.Handler {
	return jobs.Handler{Kind: kind, Workers: 1, Timeout: time.Minute, Attempts: 3, Run: do}
}

// record returns a Handler that sends each of its calls to the channel.
func record(kind string, calls chan<- run) jobs.Handler {
	return handler(kind, func(_ context.Context, t jobs.Task, a jobs.Attempt) error {
		calls <- run{task: t, attempt: a}
		return nil
	})
}

// More queues than connections can work at once, because an active run holds no connection.
func TestRunner_ManyQueuesShareTheConnections(t *testing.T) {
	t.Parallel()
	const kinds = 5 * jobs.Conns
	r, began, end := newRig(t), make(chan struct{}, kinds), make(chan struct{})
	var handlers []jobs.Handler
	for i := range kinds {
		handlers = append(handlers, handler(fmt.Sprintf("kind-%d", i), func(ctx context.Context, _ jobs.Task, _ jobs.Attempt) error {
			began <- struct{}{}
			select {
			case <-end:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}))
	}
	runner := r.serve(t, quiet, handlers...)
	for _, h := range handlers {
		r.add(t, jobs.Task{Kind: h.Kind, Org: uuid.New(), ID: uuid.New()})
	}
	for range kinds {
		<-began
	}
	close(end)
	for _, h := range handlers {
		eventually(t, "done "+h.Kind, func() bool { return runner.TaskStats()[h.Kind].Done == 1 })
	}
}

func TestAdd_RunsTheTaskOnceAfterTheCommit(t *testing.T) {
	t.Parallel()
	r, calls := newRig(t), make(chan run, 10)
	h := record("two-words", calls)
	h.Attempts = 4
	first, second := r.serve(t, quiet, h), r.serve(t, quiet, h)
	open := jobs.Task{Kind: "two-words", Org: uuid.New(), ID: uuid.New()}
	other := jobs.Task{Kind: "two-words", Org: open.Org, ID: uuid.New()}
	err := r.db.InOrg(t.Context(), open.Org, func(tx pgx.Tx) error {
		if err := r.queue.Add(t.Context(), tx, open); err != nil {
			return err
		}
		r.add(t, other)
		if got := <-calls; got.task != other {
			t.Errorf("got a run of %v before its commit, want %v", got.task, other)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := <-calls, (run{task: open, attempt: jobs.Attempt{Number: 1, Of: 4}}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	global := r.add(t, jobs.Task{Kind: "two-words", ID: uuid.New()})
	if got := <-calls; got.task != global {
		t.Errorf("got %v, want %v", got.task, global)
	}
	eventually(t, "the tasks are completed", func() bool {
		return r.row(t, "state", open) == "completed" && r.row(t, "state", global) == "completed"
	})
	if got := r.row(t, "args", global); got != fmt.Sprintf(`{"id": "%s"}`, global.ID) {
		t.Errorf("got the arguments %s, want the id only", got)
	}
	a, b := first.TaskStats()["two-words"], second.TaskStats()["two-words"]
	if a.Done+b.Done != 3 || a.Failed+b.Failed+a.GaveUp+b.GaveUp+a.Running+b.Running != 0 || a.Took+b.Took <= 0 {
		t.Errorf("got %+v and %+v, want three runs that are done", a, b)
	}
}

func TestAdd_RollbackLeavesNoTask(t *testing.T) {
	t.Parallel()
	r, cause := newRig(t), errors.New("a cause")
	for _, org := range []uuid.UUID{uuid.New(), uuid.Nil} {
		task := jobs.Task{Kind: "never", Org: org, ID: uuid.New()}
		err := r.in(t.Context(), org, func(tx pgx.Tx) error {
			return errors.Join(r.queue.Add(t.Context(), tx, task), cause)
		})
		if !errors.Is(err, cause) || err.Error() != cause.Error() {
			t.Errorf("got %v, want the cause only", err)
		}
		if got := r.row(t, "state", task); got != "" {
			t.Errorf("got a task in the state %s, want none", got)
		}
	}
}

func TestAdd_NotifiesAtEachCommit(t *testing.T) {
	t.Parallel()
	r, org := newRig(t), uuid.New()
	next := r.listen(t)
	r.add(t, jobs.Task{Kind: "warm", Org: org, ID: uuid.New()}) // opens the connections
	_ = r.in(t.Context(), org, func(tx pgx.Tx) error {
		return errors.Join(r.queue.Add(t.Context(), tx, jobs.Task{Kind: "kind", Org: org, ID: uuid.New()}), errors.New("rolled back"))
	})
	r.add(t, jobs.Task{Kind: "kind", Org: org, ID: uuid.New()})
	r.add(t, jobs.Task{Kind: "kind", Org: org, ID: uuid.New()})
	r.add(t, jobs.Task{Kind: "last", Org: org, ID: uuid.New()})
	var got []string
	for len(got) == 0 || !strings.Contains(got[len(got)-1], "last") {
		got = append(got, next())
	}
	want := `{"queue": "warm"} {"queue": "kind"} {"queue": "kind"} {"queue": "last"}`
	if all := strings.Join(got, " "); all != want {
		t.Errorf("got the notifications %s, want %s", all, want)
	}
}

func TestAdd_AfterDelaysTheFirstAttempt(t *testing.T) {
	t.Parallel()
	r, calls := newRig(t), make(chan run, 10)
	later := r.add(t, jobs.Task{Kind: "later", Org: uuid.New(), ID: uuid.New(), After: time.Hour})
	if got := r.row(t, "state || ' ' || date_trunc('minute', scheduled_at - created_at + interval '1 s')", later); got != "scheduled 01:00:00" {
		t.Errorf("got %s, want scheduled in an hour", got)
	}
	r.serve(t, quiet, record("later", calls))
	soon := r.add(t, jobs.Task{Kind: "later", Org: uuid.New(), ID: uuid.New(), After: time.Second})
	soon.After = 0
	if got := <-calls; got.task != soon {
		t.Errorf("got %v, want %v", got.task, soon)
	}
	if got := r.row(t, "state", later); got != "scheduled" {
		t.Errorf("got the state %s, want scheduled", got)
	}
}

func TestAdd_RefusesAnInvalidKind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, kind := range []string{"", "x", "default", "Upper", "two words", "a--b", "-a"} {
		err := r.in(t.Context(), uuid.Nil, func(tx pgx.Tx) error {
			return r.queue.Add(t.Context(), tx, jobs.Task{Kind: kind, ID: uuid.New()})
		})
		if !fault.Is(err, fault.Internal) || !strings.Contains(err.Error(), "kind of a task") {
			t.Errorf("kind %q: got %v, want fault.Internal", kind, err)
		}
	}
}

func TestRun_ErrorIsRetriedAndPermanentEndsTheTask(t *testing.T) {
	t.Parallel()
	r, log := newRig(t), &syncbuffer.Buffer{}
	cause := errors.New("a cause")
	twice := handler("twice", func(_ context.Context, _ jobs.Task, a jobs.Attempt) error {
		if a.Number == 1 {
			return cause
		}
		return nil
	})
	never := handler("never", func(context.Context, jobs.Task, jobs.Attempt) error {
		return fmt.Errorf("wrapped: %w", jobs.Permanent(cause))
	})
	always := handler("always", func(context.Context, jobs.Task, jobs.Attempt) error { return cause })
	always.Attempts = 2
	runner := r.serve(t, slog.New(slog.NewTextHandler(log, nil)), twice, never, always)
	tasks := map[string]jobs.Task{}
	for _, kind := range []string{"twice", "never", "always"} {
		tasks[kind] = r.add(t, jobs.Task{Kind: kind, Org: uuid.New(), ID: uuid.New()})
	}
	for kind, want := range map[string]string{"twice": "completed 2", "never": "cancelled 1", "always": "cancelled 2"} {
		eventually(t, kind+" is "+want, func() bool { return r.row(t, "state || ' ' || attempt", tasks[kind]) == want })
	}
	for kind, want := range map[string]jobs.TaskStats{
		"twice": {Done: 1, Failed: 1}, "never": {Failed: 1, GaveUp: 1}, "always": {Failed: 2, GaveUp: 1},
	} {
		got := runner.TaskStats()[kind]
		got.Took = 0
		if got != want {
			t.Errorf("%s: got %+v, want %+v", kind, got, want)
		}
		if line := "task=" + kind + " id=" + tasks[kind].ID.String() + " attempt=1 of="; !strings.Contains(log.String(), line) {
			t.Errorf("the log does not contain %q:\n%s", line, log.String())
		}
	}
	if !errors.Is(jobs.Permanent(cause), cause) || jobs.Permanent(nil) != nil {
		t.Error("Permanent does not wrap its error, or not nil")
	}
}

func TestRun_PanicCountsAsFailureAndHarmsNoOtherTask(t *testing.T) {
	t.Parallel()
	r, calls, log := newRig(t), make(chan run, 10), &syncbuffer.Buffer{}
	panics := handler("panics", func(_ context.Context, task jobs.Task, a jobs.Attempt) error {
		if a.Number == 1 && task.Org != uuid.Nil {
			panic("a cause")
		}
		calls <- run{task: task, attempt: a}
		return nil
	})
	runner := r.serve(t, slog.New(slog.NewTextHandler(log, nil)), panics)
	bad := r.add(t, jobs.Task{Kind: "panics", Org: uuid.New(), ID: uuid.New()})
	good := r.add(t, jobs.Task{Kind: "panics", ID: uuid.New()})
	want := map[run]bool{
		{task: good, attempt: jobs.Attempt{Number: 1, Of: 3}}:             true,
		{task: bad, attempt: jobs.Attempt{Number: 2, Of: 3, Later: true}}: true,
	}
	for range want {
		if got := <-calls; !want[got] {
			t.Errorf("got %v, want one of %v", got, want)
		}
	}
	eventually(t, "both are done", func() bool { return runner.TaskStats()["panics"].Done == 2 })
	if got := runner.TaskStats()["panics"]; got.Failed != 1 || got.GaveUp != 0 || got.Running != 0 {
		t.Errorf("got %+v, want one failure", got)
	}
	if text := log.String(); !strings.Contains(text, "panic: a cause") || !strings.Contains(text, "task_test.go") {
		t.Errorf("the log does not contain the panic and its stack:\n%s", text)
	}
}

func TestRun_TimeoutEndsAHangingTaskAndNoKindDelaysAnother(t *testing.T) {
	t.Parallel()
	r, calls, release := newRig(t), make(chan run, 10), make(chan struct{})
	began := make(chan struct{}, 10)
	slow := handler("slow", func(ctx context.Context, _ jobs.Task, _ jobs.Attempt) error {
		began <- struct{}{}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	hangs := handler("hangs", func(ctx context.Context, _ jobs.Task, _ jobs.Attempt) error {
		<-ctx.Done()
		return ctx.Err()
	})
	hangs.Timeout, hangs.Attempts = 50*time.Millisecond, 1
	runner := r.serve(t, quiet, slow, hangs, record("fast", calls))
	org := uuid.New()
	r.add(t, jobs.Task{Kind: "slow", Org: org, ID: uuid.New()})
	waiting := r.add(t, jobs.Task{Kind: "slow", Org: org, ID: uuid.New()})
	<-began
	r.add(t, jobs.Task{Kind: "fast", Org: org, ID: uuid.New()})
	<-calls
	hung := r.add(t, jobs.Task{Kind: "hangs", Org: org, ID: uuid.New()})
	eventually(t, "the hanging task was given up", func() bool { return r.row(t, "state", hung) == "cancelled" })
	if got := r.row(t, "errors[1] ->> 'error'", hung); got != context.DeadlineExceeded.Error() {
		t.Errorf("got the error %s, want %v", got, context.DeadlineExceeded)
	}
	if got := runner.TaskStats()["slow"]; got.Running != 1 || got.Done != 0 {
		t.Errorf("got %+v, want one run of its one worker", got)
	}
	if got := r.row(t, "state", waiting); got != "available" {
		t.Errorf("got the state %s of the second task, want available", got)
	}
	close(release)
	eventually(t, "the slow tasks are done", func() bool { return runner.TaskStats()["slow"].Done == 2 })
}

// TestRun_NotifiesWorkersOfDueTasks: River itself notifies nobody of a task that it made available
// early, or that it retries within seconds.
func TestRun_NotifiesWorkersOfDueTasks(t *testing.T) {
	t.Parallel()
	r, calls := newRig(t), make(chan run)
	r.serve(t, quiet, record("idle", make(chan run)), record("due", calls))
	first := r.add(t, jobs.Task{Kind: "due", ID: uuid.New()})
	eventually(t, "the only worker is busy", func() bool { return r.row(t, "state", first) == "running" })
	second := r.add(t, jobs.Task{Kind: "due", ID: uuid.New(), After: time.Hour})
	next := r.listen(t)
	runSQL(t, r.address, fmt.Sprintf(`set role crier_jobs; update jobs.river_job set state = 'available', scheduled_at = now()
		where args ->> 'id' = '%s'`, second.ID))
	if got, want := next(), `{"queue" : "due"}`; got != want {
		t.Errorf("got the notification %s, want %s", got, want)
	}
	for _, want := range []jobs.Task{first, second} {
		if got := <-calls; got.task.ID != want.ID {
			t.Errorf("got %v, want %v", got.task, want)
		}
	}
}

func TestStop_CancelsATaskThatAnotherProcessRepeats(t *testing.T) {
	t.Parallel()
	r, began, calls := newRig(t), make(chan struct{}, 10), make(chan run, 10)
	long := handler("long", func(ctx context.Context, _ jobs.Task, _ jobs.Attempt) error {
		began <- struct{}{}
		<-ctx.Done()
		return errors.New("an error that does not name the cancellation")
	})
	long.Attempts = 1
	first, err := jobs.Start(t.Context(), pool(t, r.address), nil, []jobs.Handler{long}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	task := r.add(t, jobs.Task{Kind: "long", Org: uuid.New(), ID: uuid.New()})
	<-began
	stop(t, first)
	if got := first.TaskStats()["long"]; got.Done+got.Failed+got.GaveUp+got.Running != 0 || got.Took <= 0 {
		t.Errorf("got %+v, want a cancelled run that counts as nothing but its time", got)
	}
	r.serve(t, quiet, record("long", calls))
	if got, want := <-calls, (run{task: task, attempt: jobs.Attempt{Number: 1, Of: 3}}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestStart_RepeatsTheTasksOfADeadProcess(t *testing.T) {
	t.Parallel()
	r, calls := newRig(t), make(chan run, 10)
	long := record("long", calls)
	long.Timeout = time.Hour
	died := r.add(t, jobs.Task{Kind: "short", Org: uuid.New(), ID: uuid.New()})
	r.crash(t, died, 1)
	active := r.add(t, jobs.Task{Kind: "long", Org: uuid.New(), ID: uuid.New()})
	r.crash(t, active, 1)
	deadly := r.add(t, jobs.Task{Kind: "short", Org: uuid.New(), ID: uuid.New()})
	r.crash(t, deadly, 3)
	runner := r.serve(t, quiet, record("short", calls), long)
	if got, want := <-calls, (run{task: died, attempt: jobs.Attempt{Number: 2, Of: 3}}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	eventually(t, "the last attempt was not repeated", func() bool { return r.row(t, "state", deadly) == "cancelled" })
	if got := r.row(t, "state", active); got != "running" {
		t.Errorf("got the state %s of a task within its Timeout, want running", got)
	}
	eventually(t, "the run is counted", func() bool { return runner.TaskStats()["short"].Done == 1 })
	if got := runner.TaskStats()["short"]; got.GaveUp != 1 || got.Failed != 1 {
		t.Errorf("got %+v, want one task given up", got)
	}
}

func TestStart_RefusesAnIncompleteHandler(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	whole := handler("whole", func(context.Context, jobs.Task, jobs.Attempt) error { return nil })
	job := jobs.Job{Name: "job", Every: time.Hour, Timeout: time.Minute, Run: func(context.Context) error { return nil }}
	for name, change := range map[string]func(h *jobs.Handler){
		"no kind":             func(h *jobs.Handler) { h.Kind = "" },
		"the kind of a job":   func(h *jobs.Handler) { h.Kind = "job" },
		"the queue of jobs":   func(h *jobs.Handler) { h.Kind = "default" },
		"the kind of another": func(h *jobs.Handler) { h.Kind = "whole" },
		"no workers":          func(h *jobs.Handler) { h.Workers = 0 },
		"no deadline":         func(h *jobs.Handler) { h.Timeout = 0 },
		"no attempts":         func(h *jobs.Handler) { h.Attempts = 0 },
		"too many attempts":   func(h *jobs.Handler) { h.Attempts = 100 },
		"a wait below zero":   func(h *jobs.Handler) { h.MaxWait = -1 },
		"a second queue":      func(h *jobs.Handler) { h.Kind = "whole-later" },
		"no function":         func(h *jobs.Handler) { h.Run = nil },
	} {
		broken := whole
		broken.Kind = "broken"
		change(&broken)
		handlers := []jobs.Handler{whole, broken}
		_, err := jobs.Start(t.Context(), pool(t, address), []jobs.Job{job}, handlers, quiet)
		if !fault.Is(err, fault.Internal) {
			t.Errorf("%s: got %v, want fault.Internal", name, err)
		}
	}
}
