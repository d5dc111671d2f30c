package pg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tests/faultnet"
)

// Every statement ends even if its caller set no deadline, because a caller that waits forever
// keeps a connection.
func TestStatements_EndWhenTheServerNeverAnswers(t *testing.T) {
	t.Parallel()
	p, through := faultnet.Start(t, blank(t))
	d := open(t, through, "")
	one := func(b *pgx.Batch) { b.Queue("select 1") }
	ask := map[string]func() error{
		"WriteRole clock":  func() error { return d.WriteRole(context.Background(), pg.Clock, one) },
		"WriteRole sender": func() error { return d.WriteRole(context.Background(), pg.Sender, one) },
		"InRole clock": func() error {
			return d.InRole(context.Background(), pg.Clock, func(tx pgx.Tx) error { _, err := tx.Exec(context.Background(), "select 1"); return err })
		},
		"WriteRole gate": func() error { return d.WriteRole(context.Background(), pg.Gate, one) },
	}
	for name, do := range ask {
		if err := do(); err != nil {
			t.Fatalf("%s: got the error %v, want none", name, err)
		}
	}
	p.Set(faultnet.Swallow)
	defer p.Set(faultnet.Refuse) // Close waits until the connections end
	type ending struct {
		name string
		err  error
	}
	ended := make(chan ending, len(ask))
	for name, do := range ask {
		go func() { ended <- ending{name: name, err: do()} }()
	}
	for range ask {
		if e := <-ended; !pg.IsAway(e.err) { // the test's own time limit is the bound
			t.Errorf("%s ends with %v, want an error that means that the database is away", e.name, e.err)
		}
	}
}

func TestStatement_IsCancelledAtTheServer(t *testing.T) {
	t.Parallel()
	d := open(t, blank(t), "")
	owner, err := d.Direct(t.Context(), pg.Login) // the roles do not see each other's statements
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = owner.Close(context.WithoutCancel(t.Context())) }() // the test is over
	const mark = "select pg_sleep(600) /* cancelled at the server */"
	until := func(what string, running int) {
		t.Helper()
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			var n int
			const sql = "select count(*) from pg_stat_activity where state = 'active' and query = $1"
			if err := owner.QueryRow(t.Context(), sql, mark).Scan(&n); err != nil {
				t.Fatal(err)
			}
			if n == running {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: the server runs %d such statements, want %d", what, n, running)
			}
		}
	}
	run := func(ctx context.Context) error {
		return d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) { b.Queue(mark) })
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	until("before its caller cancels it", 1)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || pg.IsAway(err) {
		t.Errorf("a statement that its caller cancelled ended with %v, want context.Canceled", err)
	}
	until("after its caller cancelled it", 0)

	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := run(soon); !pg.IsAway(err) {
		t.Errorf("a statement whose deadline has passed ended with %v, want an error that means away", err)
	}
	until("after its deadline", 0)
}

func TestSettings_FollowRole(t *testing.T) {
	t.Parallel()
	address := blank(t)
	for _, pooler := range []string{"", pg.PoolerTransaction} {
		d := open(t, address, pooler)
		for _, role := range []pg.Role{pg.Tenant, pg.Gate, pg.Keys, pg.Sessions, pg.Clock, pg.Sender} {
			var statement, lock, idle, seq string
			read := func(row pgx.Row) error { return row.Scan(&statement, &lock, &idle, &seq) }
			const sql = `select current_setting('statement_timeout'), current_setting('lock_timeout'), current_setting('idle_in_transaction_session_timeout'), current_setting('enable_seqscan')`
			for way, do := range map[string]func() error{
				"batch": func() error {
					return d.WriteRole(t.Context(), role, func(b *pgx.Batch) { b.Queue(sql).QueryRow(read) })
				},
				"transaction": func() error {
					return d.InRole(t.Context(), role, func(tx pgx.Tx) error { return read(tx.QueryRow(t.Context(), sql)) })
				},
				"organization": func() error {
					return d.InOrg(t.Context(), uuid.New(), func(tx pgx.Tx) error { return read(tx.QueryRow(t.Context(), sql)) })
				},
			} {
				if err := do(); err != nil {
					t.Fatalf("%s %s: got the error %v, want none", role, way, err)
				}
				planned := (role == pg.Clock || role == pg.Sender) && way != "organization"
				if statement == "0" || lock == "0" || idle != "5s" || (seq == "off") != planned {
					t.Errorf("pooler %q, %s, %s: got statement_timeout %s, lock_timeout %s, idle %s, enable_seqscan %s; want limits, and enable_seqscan off: %t",
						pooler, role, way, statement, lock, idle, seq, planned)
				}
			}
		}
	}
}
