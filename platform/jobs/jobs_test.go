package jobs_test

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"crier/platform/fault"
	"crier/platform/jobs"
	"crier/platform/pg"
	"crier/tests/dbtest"
	"crier/tests/syncbuffer"
)

func pool(t *testing.T, address string) *pgxpool.Pool {
	t.Helper()
	p, err := dbtest.OpenURL(t, address).DirectPool(t.Context(), pg.Jobs, jobs.Conns)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// start runs jobs until the test ends.
func start(t *testing.T, address string, log *slog.Logger, all ...jobs.Job) *jobs.Runner {
	t.Helper()
	r, err := jobs.Start(t.Context(), pool(t, address), all, nil, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, r) })
	return r
}

func stop(t *testing.T, r *jobs.Runner) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	defer cancel()
	if err := r.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting until %s", what)
		}
	}
}

// runSQL executes a statement as the owner of the tables.
func runSQL(t *testing.T, address, sql string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Exec(t.Context(), sql)
	if err := errors.Join(err, c.Close(context.WithoutCancel(t.Context()))); err != nil {
		t.Fatal(err)
	}
}

var quiet = slog.New(slog.DiscardHandler)

func TestStart_RunsAJobInOneProcessAtATime(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	var runs, now atomic.Int32
	var overlap atomic.Bool
	job := jobs.Job{Name: "one-at-a-time", Every: time.Second, Timeout: time.Minute, Run: func(context.Context) error {
		if now.Add(1) > 1 {
			overlap.Store(true)
		}
		defer now.Add(-1)
		time.Sleep(1500 * time.Millisecond) // longer than the interval
		runs.Add(1)
		return nil
	}}
	for range 3 {
		start(t, address, quiet, job)
	}
	eventually(t, "four runs have ended", func() bool { return runs.Load() >= 4 })
	if overlap.Load() {
		t.Error("got two runs at a time, want one")
	}
}

func TestStart_FailedRunIsRepeatedAndHarmsNoOtherJob(t *testing.T) {
	t.Parallel()
	log := &syncbuffer.Buffer{}
	var well atomic.Int32
	r := start(t, dbtest.URL(t), slog.New(slog.NewTextHandler(log, nil)),
		jobs.Job{Name: "panics", Every: time.Second, Timeout: time.Minute, Run: func(context.Context) error { panic("a cause") }},
		jobs.Job{Name: "errors", Every: time.Second, Timeout: time.Minute, Run: func(context.Context) error { return errors.New("another cause") }},
		jobs.Job{
			Name: "hangs", Every: time.Second, Timeout: 50 * time.Millisecond,
			Run: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		},
		jobs.Job{Name: "works", Every: time.Second, Timeout: time.Minute, Run: func(context.Context) error { well.Add(1); return nil }})
	eventually(t, "every job ran twice", func() bool {
		s := r.Stats()
		return s["panics"].Failed >= 2 && s["errors"].Failed >= 2 && s["hangs"].Failed >= 2 && s["works"].Done >= 2
	})
	if s := r.Stats(); s["works"].Failed != 0 || s["panics"].Done != 0 || s["hangs"].Took < 50*time.Millisecond {
		t.Errorf("got %+v, want no failure of works, no success of panics, and 50 ms at least for hangs", s)
	}
	for _, want := range []string{"job=panics", "panic: a cause", "jobs_test.go", "job=errors", "another cause", "job=hangs", "deadline exceeded"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log does not contain %q:\n%s", want, log.String())
		}
	}
}

func TestStart_JobThatHangsAloneHarmsNoOtherJob(t *testing.T) {
	t.Parallel()
	hangs, works := make(chan struct{}), make(chan struct{}, 10)
	start(t, dbtest.URL(t), quiet,
		jobs.Job{Name: "hangs", Every: time.Hour, Timeout: time.Hour, Alone: true, Run: func(ctx context.Context) error {
			close(hangs)
			<-ctx.Done()
			return ctx.Err()
		}},
		jobs.Job{Name: "works", Every: time.Second, Timeout: time.Hour, Run: func(context.Context) error {
			works <- struct{}{}
			return nil
		}})
	<-hangs
	for range 3 { // earlier runs may be in the channel
		<-works
	}
}

func TestStop_CancelsARunThatAnotherProcessRepeats(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	began, ended := make(chan struct{}, 10), make(chan error, 10)
	first, err := jobs.Start(t.Context(), pool(t, address), []jobs.Job{{Name: "long", Every: time.Hour, Timeout: time.Hour, Run: func(ctx context.Context) error {
		began <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}}}, nil, quiet)
	if err != nil {
		t.Fatal(err)
	}
	<-began
	stop(t, first)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended: got %v, want context.Canceled", err)
	}
	if s := first.Stats()["long"]; s.Failed != 0 || s.Running {
		t.Errorf("got %+v, want a cancelled run that does not count as failed", s)
	}
	again := make(chan struct{}, 10)
	start(t, address, quiet, jobs.Job{
		Name: "long", Every: time.Hour, Timeout: time.Hour,
		Run: func(context.Context) error { again <- struct{}{}; return nil },
	})
	<-again
}

const childAddress = "CRIER_JOBS_TEST"

// TestChild is the process that TestStart_RepeatsTheRunOfAKilledProcess kills.
func TestChild(t *testing.T) {
	address := os.Getenv(childAddress)
	if address == "" {
		t.Skip("it runs only as a child")
	}
	db, err := pg.Open(t.Context(), pg.Config{URL: address, MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	p, err := db.DirectPool(t.Context(), pg.Jobs, jobs.Conns)
	if err != nil {
		t.Fatal(err)
	}
	_, err = jobs.Start(t.Context(), p, []jobs.Job{{Name: "deadly", Every: time.Hour, Timeout: time.Minute, Run: func(ctx context.Context) error {
		_, err := os.Stdout.WriteString("began\n")
		<-ctx.Done()
		return err
	}}}, nil, quiet)
	if err != nil {
		t.Fatal(err)
	}
	<-t.Context().Done()
	select {}
}

func TestStart_RepeatsTheRunOfAKilledProcess(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.timeout=2m")
	child.Env = append(os.Environ(), childAddress+"="+address)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "began"; {
		t.Log(lines.Text())
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	again := make(chan struct{}, 10)
	// As if ten minutes had passed.
	runSQL(t, address, `set role crier_jobs; delete from jobs.river_leader; update jobs.river_job set attempted_at = now() - interval '10 minutes'`)
	r := start(t, address, quiet, jobs.Job{
		Name: "deadly", Every: time.Hour, Timeout: time.Minute,
		Run: func(context.Context) error { again <- struct{}{}; return nil },
	})
	<-again
	eventually(t, "the run is counted", func() bool { return r.Stats()["deadly"].Done == 1 })
}

func TestStart_RefusesADatabaseWithoutItsTables(t *testing.T) {
	t.Parallel()
	job := jobs.Job{Name: "never", Every: time.Hour, Timeout: time.Minute, Run: func(context.Context) error { return nil }}
	address := dbtest.URL(t)
	runSQL(t, address, `drop table jobs.river_notification; delete from jobs.river_migration where version > 6`)
	for name, address := range map[string]string{"empty": dbtest.Blank(t), "older": address} {
		_, err := jobs.Start(t.Context(), pool(t, address), []jobs.Job{job}, nil, quiet)
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "crier migrate") {
			t.Errorf("%s: got %v, want fault.Unavailable with crier migrate", name, err)
		}
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
