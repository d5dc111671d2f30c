// Package migrations migrates the database schema to the version this build requires and reports
// the current schema version.
//
// The files are numbered and forward-only. The first is the baseline: the whole schema as of the
// first release. A database that was created with a different baseline is rejected, because no
// migration leads from one baseline to another.
//
// Migrations run while the service is running. Requests queue behind a statement that waits for a
// lock, so a statement waits at most LockTimeout. Except as described below, each file is applied
// in one transaction. If a lock is not available in time, the file is rolled back and retried after
// a pause, for up to ten minutes.
//
// Indexes are created and dropped, and constraints are validated, in separate files whose names end
// in .concurrently.sql. Each of these files has one statement, which runs outside a transaction,
// takes no lock that requests wait for, and can be repeated after a crash. A test rejects files
// that read or rewrite a large table under a lock.
package migrations

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"

	"crier/platform/fault"
)

//go:embed *.sql
var embedded embed.FS

// Config configures Migrate and Version.
type Config struct {
	// URL is used to connect as the owner of the database, bypassing any pooler. The owner needs
	// CREATEROLE but need not be a superuser.
	URL string
	// RolePrefix is the prefix of the database roles. It defaults to crier.
	RolePrefix string
	// Files are the migrations. Nil means the product's own files.
	Files fs.FS
	// LockTimeout is how long a migration waits for a lock before it yields to the requests queued
	// behind it. 0 means 3 s. It must be shorter than the total time that these requests wait:
	// three tries of 2 s each in platform/pg. The pauses between attempts, and the time after which
	// Migrate gives up, are multiples of LockTimeout.
	LockTimeout time.Duration
}

const (
	applicationName = "crier migrate"
	lockTimeout     = 3 * time.Second

	// giveUpAfter is the total time that a step waits for other sessions, as a multiple of
	// LockTimeout. By default, this is ten minutes.
	giveUpAfter = 200
	// maxPause is the longest pause between two attempts, as a multiple of LockTimeout.
	maxPause = 10
)

// Migrate creates the roles and applies the missing migrations, one after another. Several
// processes may call it at the same time; all but one wait. Migrate logs what it is waiting for.
//
// A migration that fails or is interrupted is rolled back, and the next call starts with it. A
// migration that runs outside a transaction is not rolled back but can be repeated.
//
// Migrate returns fault.Conflict if the database has a different baseline, and fault.Invalid if the
// configuration is invalid. It returns fault.Unavailable if the database cannot be reached or
// another session holds a required lock for too long.
func Migrate(ctx context.Context, cfg Config, log *slog.Logger) error {
	cfg, conn, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return migrate(ctx, cfg, conn, log)
}

// Version returns the current schema version and the version this build requires. The current
// version is 0 if the database was never migrated. This build also works with a newer version.
// Version returns fault.Conflict if the database has a different baseline, and fault.Unavailable
// while another session has locked the version table.
func Version(ctx context.Context, cfg Config) (have, want int64, err error) {
	cfg, conn, err := open(ctx, cfg)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, name := range fileNames(cfg.Files) {
		v, err := goose.NumericComponent(name)
		if err != nil {
			continue // not a migration
		}
		want = max(want, v)
	}
	have, err = version(ctx, conn, cfg.Files)
	if isLocked(err) {
		err = fault.Wrap(fault.Unavailable, "migrations.Version", "The schema's version cannot be read, because "+
			"another session has locked its table: try again when that has ended.", err)
	}
	return have, want, err
}

const versionTable = `-- migrations.Version
select to_regclass($1) is not null`

// The row is read as JSON because a database created by other code lacks the baseline column.
const versionRead = `-- migrations.Version
select coalesce(max(version_id), 0), coalesce(max(to_jsonb(v) ->> 'baseline'), '')
from ` + goose.DefaultTablename + ` v where is_applied`

// version returns 0 for a database that was never migrated. It returns fault.Conflict if the
// database has a different baseline.
func version(ctx context.Context, conn *pgx.Conn, files fs.FS) (have int64, err error) {
	const unreadable = "The schema's version cannot be read."
	want, err := baselineOf(files)
	if err != nil {
		return 0, internalError(unreadable, err)
	}
	var exists bool
	if err := conn.QueryRow(ctx, versionTable, goose.DefaultTablename).Scan(&exists); err != nil {
		return 0, internalError(unreadable, err)
	}
	if !exists {
		return 0, nil
	}
	var baseline string
	if err := conn.QueryRow(ctx, versionRead).Scan(&have, &baseline); err != nil {
		return 0, internalError(unreadable, err)
	}
	if have > 0 && baseline != want {
		return 0, fault.New(fault.Conflict, "migrations.Version", "The database was created with another baseline of "+
			"the schema and cannot be migrated to this one: use a new, empty database (with crier dev: stop it and "+
			"remove the folder postgres in CRIER_HOME).")
	}
	return have, nil
}

// Hash returns a hash of the product's migrations, including River's. Databases migrated with the
// same hash have the same schema.
func Hash() string {
	h := sha256.New()
	applied := gooseFiles{FS: embedded, prefix: productPrefix}
	for _, name := range fileNames(embedded) {
		b, err := applied.ReadFile(name)
		if err != nil {
			continue // impossible for an embedded file
		}
		h.Write([]byte(name + "\x00"))
		h.Write(b)
	}
	v, err := jobsVersion()
	if err != nil {
		return hex.EncodeToString(h.Sum(nil)[:8]) // impossible for River's embedded files
	}
	h.Write([]byte(strconv.Itoa(v) + jobsGrants + jobsPolicies))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// open fills in the defaults and connects. Statements in the session wait at most LockTimeout for a
// lock. Neither their duration nor the session's idle time is limited.
func open(ctx context.Context, cfg Config) (Config, *pgx.Conn, error) {
	if cfg.RolePrefix == "" {
		cfg.RolePrefix = productPrefix
	}
	if !prefixForm.MatchString(cfg.RolePrefix) {
		return cfg, nil, fault.New(fault.Invalid, "migrations.Migrate",
			"ROLE_PREFIX must be lower-case letters, digits and underscores, at most 40.")
	}
	if cfg.Files == nil {
		cfg.Files = embedded
	}
	if cfg.LockTimeout == 0 {
		cfg.LockTimeout = lockTimeout
	}
	cc, err := pgx.ParseConfig(cfg.URL)
	if err != nil {
		return cfg, nil, fault.Wrap(fault.Invalid, "migrations.Migrate", "The database address cannot be read.", err)
	}
	cc.RuntimeParams["application_name"] = applicationName
	// A timeout set for the owner's role would abort every attempt to build an index, or end the
	// session and release the migration lock.
	for _, limit := range []string{"statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout"} {
		cc.RuntimeParams[limit] = "0"
	}
	cc.RuntimeParams["lock_timeout"] = milliseconds(cfg.LockTimeout)
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return cfg, nil, fault.Wrap(fault.Unavailable, "migrations.Migrate", "The database cannot be reached.", err)
	}
	return cfg, conn, nil
}

func internalError(message string, err error) error {
	return fault.Wrap(fault.Internal, "migrations.Migrate", message, err)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
