// Package migrations brings the database to the shape that this build of the code expects, and tells whether it has it.
//
// The files are numbered and only go forward. The first is the baseline: the whole schema as of the first release. A
// database that was begun with another baseline is refused, because nothing leads from one to the other.
//
// A migration meets a service at work. Every file is one transaction whose statements wait at most LockTimeout for a
// lock, since requests queue behind one that waits; it is then rolled back and tried again after a pause, until the
// lock is had or ten minutes are over. Indexes are built and dropped, and constraints validated, by files of their own
// whose names end in .concurrently.sql: one statement, outside of a transaction, which takes no lock that a request
// waits for and may be repeated after a crash. A test refuses files that read or rewrite a large table under a lock.
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

// Config says which database, and as whom: its owner, past any pooler. No superuser is needed, CREATEROLE is.
type Config struct {
	URL        string
	RolePrefix string // of the roles; empty = crier
	Files      fs.FS  // nil = the product's own migrations
	// LockTimeout is how long a migration waits for a lock before it lets the requests pass that queue behind it; 3 s
	// when zero. It must be shorter than they wait themselves (platform/pg: three times 2 s). The pauses between the
	// tries, and the time after which Migrate gives up, are multiples of it.
	LockTimeout time.Duration
}

const (
	applicationName = "crier migrate"
	lockTimeout     = 3 * time.Second

	// giveUpAfter is how many LockTimeouts Migrate waits for others in one step: ten minutes.
	giveUpAfter = 200
	// maxPause is how many LockTimeouts it lets pass at most between two tries.
	maxPause = 10
)

// Migrate makes the roles and applies the migrations that are missing, one after the other. Several processes may call
// it at once: all but one wait. It logs what it waits for. A migration that fails leaves no trace of itself, and the
// next call begins with it. The error is Conflict for a database of another baseline, and Unavailable when another
// process or another transaction was in the way for too long.
func Migrate(ctx context.Context, cfg Config, log *slog.Logger) error {
	cfg, conn, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return migrate(ctx, cfg, conn, log)
}

// Version returns the version that the database has (0 = none) and the one that this build wants. have > want is a
// newer database, which old code can use. The error is Conflict for a database of another baseline, and Unavailable
// while another session has the table of the versions locked.
func Version(ctx context.Context, cfg Config) (have, want int64, err error) {
	cfg, conn, err := open(ctx, cfg)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	for _, name := range migrations(cfg.Files) {
		if v, err := goose.NumericComponent(name); err == nil {
			want = max(want, v)
		}
	}
	have, err = version(ctx, conn, cfg.Files)
	if isLocked(err) {
		err = fault.Wrap(fault.Unavailable, "schema.Version",
			"The schema's version cannot be read, because another session has its table locked: try again when that has ended.", err)
	}
	return have, want, err
}

const versionTable = `-- schema.Version
select to_regclass($1) is not null`

// As JSON, because a database that was not begun, or not by this code, lacks the column baseline.
const versionRead = `-- schema.Version
select coalesce(max(version_id), 0), coalesce(max(to_jsonb(v) ->> 'baseline'), '')
from ` + goose.DefaultTablename + ` v where is_applied`

// version returns the version that the database has, and Conflict when that is one of another baseline.
func version(ctx context.Context, conn *pgx.Conn, files fs.FS) (have int64, err error) {
	const unreadable = "The schema's version cannot be read."
	want, err := baselineOf(files)
	if err != nil {
		return 0, failed(unreadable, err)
	}
	var exists bool
	if err := conn.QueryRow(ctx, versionTable, goose.DefaultTablename).Scan(&exists); err != nil {
		return 0, failed(unreadable, err)
	}
	if !exists {
		return 0, nil
	}
	var baseline string
	if err := conn.QueryRow(ctx, versionRead).Scan(&have, &baseline); err != nil {
		return 0, failed(unreadable, err)
	}
	if have > 0 && baseline != want {
		return 0, fault.New(fault.Conflict, "schema.Version", "The database was begun with another baseline of the "+
			"schema and cannot be brought to this one: use a new, empty database (with crier dev: stop it and remove "+
			"the folder postgres in CRIER_HOME).")
	}
	return have, nil
}

// Hash names the content of the product's migrations: equal hashes make equal databases.
func Hash() string {
	h := sha256.New()
	applied := rewritten{FS: embedded, prefix: productPrefix}
	for _, name := range migrations(embedded) {
		b, err := applied.ReadFile(name)
		if err != nil {
			continue // an embedded file that was listed can be read
		}
		h.Write([]byte(name + "\x00"))
		h.Write(b)
	}
	if v, err := jobsVersion(); err == nil { // it fails only when River's own files cannot be read
		h.Write([]byte(strconv.Itoa(v)))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// open fills in the defaults and connects. A statement waits at most LockTimeout for a lock; how long it runs and how
// long the session is idle has no limit.
func open(ctx context.Context, cfg Config) (Config, *pgx.Conn, error) {
	if cfg.RolePrefix == "" {
		cfg.RolePrefix = productPrefix
	}
	if !prefixForm.MatchString(cfg.RolePrefix) {
		return cfg, nil, fault.New(fault.Invalid, "schema.Migrate",
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
		return cfg, nil, fault.Wrap(fault.Invalid, "schema.Migrate", "The database address cannot be read.", err)
	}
	cc.RuntimeParams["application_name"] = applicationName
	// An index build that a limit of the owner's role ends would begin from zero with every repeat, and a session that is
	// ended loses the migration lock.
	for _, limit := range []string{"statement_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout"} {
		cc.RuntimeParams[limit] = "0"
	}
	cc.RuntimeParams["lock_timeout"] = milliseconds(cfg.LockTimeout)
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return cfg, nil, fault.Wrap(fault.Unavailable, "schema.Migrate", "The database cannot be reached.", err)
	}
	return cfg, conn, nil
}

func failed(message string, err error) error {
	return fault.Wrap(fault.Internal, "schema.Migrate", message, err)
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
