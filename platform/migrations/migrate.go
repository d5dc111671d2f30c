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

// migrator holds the state of one call to Migrate.
type migrator struct {
	Config
	log *slog.Logger
	// connect configures the sessions that change the schema.
	connect *pgx.ConnConfig
	// session is the only connection that applies the files. It holds the migration lock.
	// Therefore, no other process migrates while one of the session's statements runs, even if this
	// process has died.
	session *sql.DB
	goose   *goose.Provider
	// watcher is a connection that is never in a transaction, because "create index concurrently"
	// waits for open transactions to end. If the server does not respond to watch in time, the
	// connection is closed.
	watcher *pgx.Conn
}

// migrate takes the migration lock, creates the roles, and applies the files. If these are the
// product's own files, it then applies River's migrations.
func migrate(ctx context.Context, cfg Config, watcher *pgx.Conn, log *slog.Logger) (err error) {
	m := &migrator{Config: cfg, log: log, connect: watcher.Config(), watcher: watcher}
	m.session = stdlib.OpenDB(*m.connect, stdlib.OptionAfterConnect(m.lock))
	m.session.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, m.session.Close()) }()
	if err := m.session.PingContext(ctx); fault.Is(err, fault.Unavailable) {
		return err
	} else if err != nil {
		return internalError("The migration lock could not be acquired.", err)
	}
	if err := m.retryStep(ctx, firstStep, m.prepare); err != nil {
		return err
	}
	if err := m.applyFiles(ctx); err != nil || cfg.Files != fs.FS(embedded) {
		return err
	}
	return m.retryStep(ctx, jobsStep, m.applyJobs)
}

// firstStep is the name used in messages for the steps that run before the files are applied.
const firstStep = "of the roles and versions"

// prepare checks the database's baseline and creates the roles. It opens a separate connection,
// because watch uses the watcher.
func (m *migrator) prepare(ctx context.Context, _ string) error {
	conn, err := pgx.ConnectConfig(ctx, m.connect)
	if err != nil {
		return err
	}
	if _, err := version(ctx, conn, m.Files); err != nil {
		return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return errors.Join(ensureRoles(ctx, conn, m.RolePrefix), conn.Close(context.WithoutCancel(ctx)))
}

// lock takes the migration lock for the session. It polls instead of waiting inside a statement,
// because "create index concurrently" in the session that holds the lock would wait for that
// statement to end. If lock fails, it closes the connection.
func (m *migrator) lock(ctx context.Context, conn *pgx.Conn) error {
	if err := m.pollLock(ctx, conn); err != nil {
		return errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	return nil
}

func (m *migrator) pollLock(ctx context.Context, conn *pgx.Conn) error {
	for waited := time.Duration(0); ; waited += lockPoll {
		var got bool
		err := conn.QueryRow(ctx, "-- migrations.lock\nselect pg_try_advisory_lock($1)", int64(lockKey)).Scan(&got)
		if err != nil || got {
			return err
		}
		if waited >= giveUpAfter*m.LockTimeout {
			return fault.New(fault.Unavailable, "migrations.Migrate", fmt.Sprintf("Another process has been migrating "+
				"the database for %v: run crier migrate again when it has finished.", waited))
		}
		if waited == lockPoll { // not at the first attempt: the other session may just be ending
			m.log.WarnContext(ctx, "another process is migrating the database; waiting for it")
		}
		if err := pause(ctx, lockPoll); err != nil {
			return err
		}
	}
}

// applyFiles applies the files that have not been applied to the database yet, in order. It stops
// at the first file that fails. The files before that one stay applied.
func (m *migrator) applyFiles(ctx context.Context) error {
	if len(fileNames(m.Files)) == 0 {
		return nil
	}
	baseline, err := baselineOf(m.Files)
	if err != nil {
		return internalError("The migrations cannot be read.", err)
	}
	m.goose, err = goose.NewProvider(goose.DialectPostgres, m.session,
		gooseFiles{FS: m.Files, prefix: m.RolePrefix, baseline: baseline}, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return internalError("The migrations cannot be read.", err)
	}
	var all []*goose.MigrationStatus
	err = m.retryStep(ctx, firstStep, func(ctx context.Context, _ string) (err error) {
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
		if err := m.retryStep(ctx, one.Source.Path, m.apply); err != nil {
			return err
		}
	}
	return nil
}

// retryStep runs apply for the named step. If the step is a file, it must be the next migration. If
// the step fails because other sessions hold locks that it needs, retryStep tries again after a
// pause. During the pause, the requests queued for these locks can proceed.
//
// It returns fault.Conflict if the database has a different baseline, fault.Unavailable once it has
// waited for giveUpAfter, and fault.Internal for other errors.
func (m *migrator) retryStep(ctx context.Context, name string, apply func(context.Context, string) error) error {
	patience := m.LockTimeout
	if isConcurrent(name) {
		// While a concurrent file waits, no requests queue behind it. A retry would lose the part
		// of an index that is already built.
		apply, patience = m.applyConcurrently, giveUpAfter*m.LockTimeout
	}
	waited, rest, holders := time.Duration(0), m.LockTimeout, "an unknown session"
	for {
		var err error
		holders, err = m.applyWatched(ctx, name, holders, apply)
		if err == nil {
			return nil
		}
		if fault.Is(err, fault.Conflict) {
			return err
		}
		if !isLocked(err) {
			return internalError("The migration "+name+" failed; the earlier ones are kept.", err)
		}
		waited += patience
		if waited >= giveUpAfter*m.LockTimeout {
			return fault.Wrap(fault.Unavailable, "migrations.Migrate", fmt.Sprintf("The migration %s has waited %v "+
				"for a lock, most recently held by %s: run crier migrate again when that has ended.",
				name, waited, holders), err)
		}
		m.log.WarnContext(ctx, "a migration did not get its lock and will be retried", "file", name, "after", rest,
			"held by", holders)
		if err := pause(ctx, rest); err != nil {
			return internalError("The migration "+name+" was not applied.", err)
		}
		waited, rest = waited+rest, min(2*rest, maxPause*m.LockTimeout)
	}
}

// apply applies the next file. goose chooses the file; name is used only in the log.
func (m *migrator) apply(ctx context.Context, name string) error {
	done, err := m.goose.UpByOne(ctx)
	if err != nil {
		return err
	}
	m.log.InfoContext(ctx, "migrated", "file", name, "took", done.Duration)
	return nil
}

// applyConcurrently applies a file outside a transaction. It first drops any invalid index that an
// earlier attempt left behind.
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

const indexInvalid = `-- migrations.IndexInvalid
select exists (select from pg_index where indexrelid = to_regclass($1) and not indisvalid)`

// dropInvalid drops an index that an interrupted build left invalid. No other session is building
// it, because that session would hold the migration lock.
func (m *migrator) dropInvalid(ctx context.Context, index string) error {
	invalid := false
	err := m.session.QueryRowContext(ctx, indexInvalid, index).Scan(&invalid)
	if err != nil || !invalid {
		return err
	}
	_, err = m.session.ExecContext(ctx, "drop index concurrently "+index)
	return err
}

// applyWatched applies a migration. It returns the sessions the migration most recently waited for,
// or last if it did not wait.
func (m *migrator) applyWatched(
	ctx context.Context, name, last string, apply func(context.Context, string) error,
) (holders string, err error) {
	done, seen := make(chan struct{}), make(chan string)
	go func() { seen <- m.watch(ctx, name, last, done) }()
	err = apply(ctx, name)
	close(done)
	return <-seen, err
}

const holdersRead = `-- migrations.Holders
select coalesce(string_agg(distinct format('process %s of %s (%s)', h.pid, coalesce(h.usename, '?'),
  coalesce(nullif(h.application_name, ''), h.backend_type, '?')), ', '), '')
from pg_stat_activity a cross join unnest(pg_blocking_pids(a.pid)) b(pid) join pg_stat_activity h on h.pid = b.pid
where a.datname = current_database() and a.application_name = $1`

// watch logs the sessions a migration is waiting for each time that set changes. It returns the
// most recent set once done is closed, or earlier if the watcher fails.
func (m *migrator) watch(ctx context.Context, name, last string, done <-chan struct{}) string {
	ticker := time.NewTicker(m.LockTimeout / 4)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return last
		case <-ticker.C:
		}
		var holders string
		read, cancel := context.WithTimeout(ctx, max(m.LockTimeout, time.Second))
		err := m.watcher.QueryRow(read, holdersRead, applicationName).Scan(&holders)
		cancel()
		if err != nil {
			m.log.WarnContext(ctx, "cannot read what a migration is waiting for", "file", name, "error", err)
			return last
		}
		if holders != "" && holders != last {
			last = holders
			m.log.WarnContext(ctx, "a migration is waiting for other transactions", "file", name, "of", holders)
		}
	}
}

// isLocked reports whether a statement was rolled back because other sessions held locks.
func isLocked(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && slices.Contains([]string{codeLockTimeout, codeDeadlock}, pe.Code)
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
