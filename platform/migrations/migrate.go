package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"crier/platform/fault"
)

const (
	lockKey  = 0x6372696572 // "crier"
	lockPoll = 100 * time.Millisecond

	codeLockTimeout = "55P03"
	codeDeadlock    = "40P01"
)

// migrator applies migrations.
type migrator struct {
	Config
	log *slog.Logger
	// connect is how a session connects that changes the schema.
	connect *pgx.ConnConfig
	// session is one connection, the one that applies them. It holds the migration lock, so that as long as a
	// statement of it runs nobody else migrates, even when this process has died meanwhile.
	session *sql.DB
	goose   *goose.Provider
	// beside is a connection that is never in a transaction: "create index concurrently" would wait for it. watch loses
	// it when the server does not answer in time.
	beside *pgx.Conn
}

func migrate(ctx context.Context, cfg Config, beside *pgx.Conn, log *slog.Logger) (err error) {
	m := &migrator{Config: cfg, log: log, connect: beside.Config(), beside: beside}
	m.session = stdlib.OpenDB(*m.connect, stdlib.OptionAfterConnect(m.lock))
	m.session.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, m.session.Close()) }()
	if err := m.session.PingContext(ctx); fault.Is(err, fault.Unavailable) {
		return err
	} else if err != nil {
		return failed("The migration lock cannot be had.", err)
	}
	if err := m.step(ctx, firstStep, m.begin); err != nil {
		return err
	}
	if err := m.up(ctx); err != nil || cfg.Files != fs.FS(embedded) {
		return err
	}
	return m.step(ctx, jobsStep, m.applyJobs)
}

// firstStep names in messages what comes before the files.
const firstStep = "of the roles and versions"

// begin refuses a database of another baseline and makes the roles. It has a connection of its own, because watch needs
// the one beside.
func (m *migrator) begin(ctx context.Context, _ string) error {
	conn, err := pgx.ConnectConfig(ctx, m.connect)
	if err != nil {
		return err
	}
	if _, err = version(ctx, conn, m.Files); err == nil {
		err = ensureRoles(ctx, conn, m.RolePrefix)
	}
	return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
}

// lock takes the migration lock for the session. It asks again and again: a session that waits inside one statement
// would hold up "create index concurrently" of the one that has the lock.
func (m *migrator) lock(ctx context.Context, conn *pgx.Conn) error {
	for waited := time.Duration(0); ; waited += lockPoll {
		var got bool
		err := conn.QueryRow(ctx, "-- schema.lock\nselect pg_try_advisory_lock($1)", int64(lockKey)).Scan(&got)
		if err == nil && got {
			return nil
		}
		switch {
		case err == nil && waited >= giveUpAfter*m.LockTimeout:
			err = fault.New(fault.Unavailable, "schema.Migrate", fmt.Sprintf("Another process has been migrating "+
				"the database for %v: run crier migrate again when it has ended.", waited))
		case err == nil:
			if waited == lockPoll { // not for a session that is just ending
				m.log.WarnContext(ctx, "another process is migrating the database; this one waits for it")
			}
			err = pause(ctx, lockPoll)
		}
		if err != nil {
			return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
		}
	}
}

func (m *migrator) up(ctx context.Context) error {
	if len(migrations(m.Files)) == 0 {
		return nil
	}
	baseline, err := baselineOf(m.Files)
	if err != nil {
		return failed("The migrations cannot be read.", err)
	}
	m.goose, err = goose.NewProvider(goose.DialectPostgres, m.session, rewritten{m.Files, m.RolePrefix, baseline},
		goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return failed("The migrations cannot be read.", err)
	}
	var all []*goose.MigrationStatus
	err = m.step(ctx, firstStep, func(ctx context.Context, _ string) (err error) {
		all, err = m.goose.Status(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.State != goose.StatePending {
			continue
		}
		if err := m.step(ctx, one.Source.Path, m.apply); err != nil {
			return err
		}
	}
	return nil
}

// step applies the next migration, which is the named one. As long as others have locks that it needs, it is tried
// again, after pauses in which their requests and ours can pass.
func (m *migrator) step(ctx context.Context, name string, apply func(context.Context, string) error) error {
	patience := m.LockTimeout
	if isConcurrent(name) {
		// Nobody queues behind its waits, and what it has built so far would be lost: it waits once, for long.
		apply, patience = m.applyConcurrently, giveUpAfter*m.LockTimeout
	}
	waited, rest, holders := time.Duration(0), m.LockTimeout, "an unknown session"
	for {
		var err error
		holders, err = m.watched(ctx, name, holders, apply)
		if err == nil {
			return nil
		}
		if fault.Is(err, fault.Conflict) {
			return err
		}
		if !isLocked(err) {
			return failed("The migration "+name+" failed; those before it are kept.", err)
		}
		if waited += patience; waited >= giveUpAfter*m.LockTimeout {
			return fault.Wrap(fault.Unavailable, "schema.Migrate", fmt.Sprintf("The migration %s has waited %v for a "+
				"lock, last for %s: run crier migrate again when that has ended.", name, waited, holders), err)
		}
		m.log.WarnContext(ctx, "a migration did not get its lock and is tried again", "file", name, "after", rest,
			"held by", holders)
		if err := pause(ctx, rest); err != nil {
			return failed("The migration "+name+" was not applied.", err)
		}
		waited, rest = waited+rest, min(2*rest, maxPause*m.LockTimeout)
	}
}

func (m *migrator) apply(ctx context.Context, name string) error {
	done, err := m.goose.UpByOne(ctx)
	if err != nil {
		return err
	}
	m.log.InfoContext(ctx, "migrated", "file", name, "took", done.Duration)
	return nil
}

// applyConcurrently applies a migration outside of a transaction.
func (m *migrator) applyConcurrently(ctx context.Context, name string) error {
	index, err := createdIndex(m.Files, name)
	if err != nil {
		return err
	}
	if _, err := m.session.ExecContext(ctx, "set lock_timeout = "+milliseconds(giveUpAfter*m.LockTimeout)); err != nil {
		return err
	}
	if index != "" {
		if err := m.dropInvalid(ctx, index); err != nil {
			return err
		}
	}
	if err := m.apply(ctx, name); err != nil {
		return err
	}
	_, err = m.session.ExecContext(ctx, "reset lock_timeout")
	return err
}

const indexInvalid = `-- schema.IndexInvalid
select exists (select from pg_index where indexrelid = to_regclass($1) and not indisvalid)`

// dropInvalid drops an index that was left by a build that did not come to its end. Nobody else builds it now, because
// that session would hold the migration lock.
func (m *migrator) dropInvalid(ctx context.Context, index string) error {
	invalid := false
	err := m.session.QueryRowContext(ctx, indexInvalid, index).Scan(&invalid)
	if err != nil || !invalid {
		return err
	}
	_, err = m.session.ExecContext(ctx, "drop index concurrently "+index)
	return err
}

// watched applies a migration and returns which sessions it was last seen waiting for, last when it was not.
func (m *migrator) watched(
	ctx context.Context, name, last string, apply func(context.Context, string) error,
) (holders string, err error) {
	done, seen := make(chan struct{}), make(chan string)
	go func() { seen <- m.watch(ctx, name, last, done) }()
	err = apply(ctx, name)
	close(done)
	return <-seen, err
}

const holdersRead = `-- schema.Holders
select coalesce(string_agg(distinct format('process %s of %s (%s)', h.pid, coalesce(h.usename, '?'),
  coalesce(nullif(h.application_name, ''), h.backend_type, '?')), ', '), '')
from pg_stat_activity a cross join unnest(pg_blocking_pids(a.pid)) b(pid) join pg_stat_activity h on h.pid = b.pid
where a.datname = current_database() and a.application_name = $1`

// watch logs which sessions a migration waits for, whenever that changes, and returns the last when done is closed.
func (m *migrator) watch(ctx context.Context, name, last string, done <-chan struct{}) string {
	look := time.NewTicker(m.LockTimeout / 4)
	defer look.Stop()
	for {
		select {
		case <-done:
			return last
		case <-look.C:
		}
		var holders string
		read, cancel := context.WithTimeout(ctx, max(m.LockTimeout, time.Second))
		err := m.beside.QueryRow(read, holdersRead, applicationName).Scan(&holders)
		cancel()
		if err != nil {
			m.log.WarnContext(ctx, "what a migration waits for cannot be read", "file", name, "error", err)
			return last
		}
		if holders != "" && holders != last {
			last = holders
			m.log.WarnContext(ctx, "a migration waits for other transactions", "file", name, "of", holders)
		}
	}
}

// isLocked returns true for what Postgres has rolled back because others had the locks.
func isLocked(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && slices.Contains([]string{codeLockTimeout, codeDeadlock}, pe.Code)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
