// Package schema brings the database to the shape that this build of the code expects, and tells whether it has it.
package schema

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"crier/platform/fault"
)

//go:embed *.sql
var embedded embed.FS

const (
	lockKey  = 0x6372696572 // "crier"
	lockPoll = 100 * time.Millisecond
)

// Config says which database, and as whom: its owner, past any pooler. No superuser is needed, CREATEROLE is.
type Config struct {
	URL        string
	RolePrefix string // of the five roles; empty = crier
	Files      fs.FS  // nil = the product's own migrations
}

// Migrate makes the roles and applies the migrations that are missing, under one lock: several nodes may call it at once. It only goes forward; a migration that fails leaves no trace of itself, and the next call begins with it.
func Migrate(ctx context.Context, cfg Config, log *slog.Logger) error {
	cfg, conn, err := open(ctx, cfg)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // gives the lock back too
	if err := lock(ctx, conn); err != nil {
		return failed("The migration lock cannot be had.", err)
	}
	if err := ensureRoles(ctx, conn, cfg.RolePrefix); err != nil {
		return err
	}
	if err := up(ctx, cfg, conn.Config(), log); err != nil {
		return failed(blame(err), err)
	}
	return nil
}

// Version tells the version that the database has (0 = none) and the one that this build wants. have > want is a newer database, which old code can use.
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
	var exists bool
	if err := conn.QueryRow(ctx, "-- schema.Version\nselect to_regclass($1) is not null", goose.DefaultTablename).Scan(&exists); err != nil {
		return 0, 0, failed("The schema's version cannot be read.", err)
	}
	if !exists {
		return 0, want, nil
	}
	err = conn.QueryRow(ctx, "-- schema.Version\nselect coalesce(max(version_id), 0) from "+goose.DefaultTablename+" where is_applied").Scan(&have)
	if err != nil {
		return 0, 0, failed("The schema's version cannot be read.", err)
	}
	return have, want, nil
}

// Hash names the content of the product's migrations: equal hashes make equal databases.
func Hash() string {
	h := sha256.New()
	for _, name := range migrations(embedded) {
		b, err := fs.ReadFile(embedded, name)
		if err != nil {
			continue // an embedded file that was listed can be read
		}
		h.Write([]byte(name + "\x00"))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

func open(ctx context.Context, cfg Config) (Config, *pgx.Conn, error) {
	if cfg.RolePrefix == "" {
		cfg.RolePrefix = productPrefix
	}
	if !prefixForm.MatchString(cfg.RolePrefix) {
		return cfg, nil, fault.New(fault.Invalid, "schema.Migrate", "ROLE_PREFIX must be lower-case letters, digits and underscores, at most 40.")
	}
	if cfg.Files == nil {
		cfg.Files = embedded
	}
	cc, err := pgx.ParseConfig(cfg.URL)
	if err != nil {
		return cfg, nil, fault.Wrap(fault.Invalid, "schema.Migrate", "The database address cannot be read.", err)
	}
	cc.RuntimeParams["application_name"] = "crier migrate"
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return cfg, nil, fault.Wrap(fault.Unavailable, "schema.Migrate", "The database cannot be reached.", err)
	}
	return cfg, conn, nil
}

// lock asks again and again: a session that waits inside one statement would hold up "create index concurrently" of the one that has the lock.
func lock(ctx context.Context, conn *pgx.Conn) error {
	for {
		var got bool
		if err := conn.QueryRow(ctx, "-- schema.lock\nselect pg_try_advisory_lock($1)", int64(lockKey)).Scan(&got); err != nil || got {
			return err
		}
		if err := pause(ctx, lockPoll); err != nil {
			return err
		}
	}
}

func up(ctx context.Context, cfg Config, cc *pgx.ConnConfig, log *slog.Logger) (err error) {
	if len(migrations(cfg.Files)) == 0 {
		return nil
	}
	db := stdlib.OpenDB(*cc)
	defer func() { err = errors.Join(err, db.Close()) }()
	p, err := provider(cfg, db)
	if err != nil {
		return err
	}
	done, err := p.Up(ctx)
	for _, r := range done {
		log.InfoContext(ctx, "migrated", "file", r.Source.Path, "took", r.Duration)
	}
	return err
}

func provider(cfg Config, db *sql.DB) (*goose.Provider, error) {
	return goose.NewProvider(goose.DialectPostgres, db, rewritten{cfg.Files, cfg.RolePrefix},
		goose.WithDisableGlobalRegistry(true))
}

// blame names the file that failed.
func blame(err error) string {
	if pe := (*goose.PartialError)(nil); errors.As(err, &pe) && pe.Failed != nil && pe.Failed.Source != nil {
		return "The migration " + pe.Failed.Source.Path + " failed; those before it are kept."
	}
	return "The migrations cannot be run."
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
