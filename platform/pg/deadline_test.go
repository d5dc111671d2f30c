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

// Every statement ends although its caller gave it no deadline: a caller that waits for ever holds what others need.
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
			t.Fatalf("%s: %v", name, err)
		}
	}
	p.Set(faultnet.Swallow)
	defer p.Set(faultnet.Refuse) // the pools wait for the end of their connections
	type ending struct {
		name string
		err  error
	}
	ended := make(chan ending, len(ask))
	for name, do := range ask {
		go func() { ended <- ending{name, do()} }()
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
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	const mark = "select pg_sleep(600) /* cancelled at the server */"
	err := d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) { b.Queue(mark) })
	if !pg.IsAway(err) {
		t.Fatalf("the statement ends with %v", err)
	}
	running := func() (n int) {
		err := d.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "select count(*) from pg_stat_activity where state = 'active' and query = $1", mark).Scan(&n)
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for end := time.Now().Add(30 * time.Second); running() > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server still runs a statement whose caller has gone")
		}
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if err := d.WriteRole(ctx, pg.Clock, func(b *pgx.Batch) { b.Queue(mark) }); !errors.Is(err, context.Canceled) || pg.IsAway(err) {
		t.Fatalf("a statement that its caller cancelled ends with %v", err)
	}
}

func TestSettings_AreThoseOfTheRole(t *testing.T) {
	t.Parallel()
	address := blank(t)
	for _, pooler := range []string{"", pg.PoolerTransaction} {
		d := open(t, address, pooler)
		for _, role := range []pg.Role{pg.Tenant, pg.Gate, pg.Keys, pg.Clock, pg.Sender} {
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
					t.Fatalf("%s %s: %v", role, way, err)
				}
				planned := (role == pg.Clock || role == pg.Sender) && way != "organization"
				if statement == "0" || lock == "0" || idle != "5s" || (seq == "off") != planned {
					t.Errorf("pooler %q, %s, %s: statement_timeout %s, lock_timeout %s, idle %s, enable_seqscan %s", pooler, role, way, statement, lock, idle, seq)
				}
			}
		}
	}
}
