package dbtest

import (
	"context"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/migrations"
)

const (
	templatePrefix = "crier_tpl_"
	clonePrefix    = "crier_t_"
	templateLock   = 0x6462746573 // "dbtes"
)

// template returns the name of the template database for the current migrations. It creates one
// database for each content of the migrations, under a lock. A database that is marked as a
// template is complete.
func template(ctx context.Context, s server, admin *pgx.Conn) (string, error) {
	name := templatePrefix + migrations.Hash()
	whole, err := isTemplate(ctx, admin, name)
	if err != nil || whole {
		return name, err
	}
	if _, err := admin.Exec(ctx, "select pg_advisory_lock($1)", int64(templateLock)); err != nil {
		return "", err
	}
	defer admin.Exec(context.WithoutCancel(ctx), "select pg_advisory_unlock($1)",
		int64(templateLock)) // the end of the session releases the lock too
	if whole, err := isTemplate(ctx, admin, name); err != nil || whole {
		return name, err
	}
	if _, err := admin.Exec(ctx, "drop database if exists "+name+" with (force)"); err != nil {
		return "", err
	}
	if _, err := admin.Exec(ctx, "create database "+name+" template template0"); err != nil {
		return "", err
	}
	if err := migrations.Migrate(ctx, migrations.Config{URL: withDatabase(s.owner, name)},
		slog.New(slog.DiscardHandler)); err != nil {
		return "", err
	}
	_, err = admin.Exec(ctx, "alter database "+name+" with is_template true")
	return name, err
}

func isTemplate(ctx context.Context, admin *pgx.Conn, name string) (whole bool, err error) {
	err = admin.QueryRow(ctx, "select exists (select from pg_database where datname = $1 and datistemplate)",
		name).Scan(&whole)
	return whole, err
}

// sweep drops the databases that killed runs left behind: unused clones older than an hour, and
// templates of other migrations that no run has used for a day.
func sweep(ctx context.Context, s server) error {
	admin, err := pgx.Connect(ctx, s.owner)
	if err != nil {
		return err
	}
	defer admin.Close(context.WithoutCancel(ctx))
	if err := note(ctx, admin); err != nil {
		return err
	}
	rows, err := admin.Query(ctx, `select datname, datistemplate from pg_database d
		where pg_has_role(datdba, 'MEMBER') and not exists (select from pg_stat_activity a where a.datid = d.oid)
			and (case when starts_with(datname, $1) then split_part(datname, '_', 3)::bigint < extract(epoch from now()) - 3600
			when starts_with(datname, $2) then datistemplate and datname not in (select name from dbtest_template where used_at > now() - interval '1 day')
			else false end)`, clonePrefix, templatePrefix)
	if err != nil {
		return err
	}
	old, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Name     string
		Template bool
	}])
	if err != nil {
		return err
	}
	for _, d := range old {
		if d.Template {
			_, err = admin.Exec(ctx, "alter database "+d.Name+" with is_template false")
		}
		if err == nil {
			_, err = admin.Exec(ctx, "drop database if exists "+d.Name)
		}
		// Another process may be using or dropping the database.
		if pe := (*pgconn.PgError)(nil); err != nil && !errors.As(err, &pe) {
			return err
		}
	}
	return nil
}

// note records in the maintenance database that this process uses its template.
func note(ctx context.Context, admin *pgx.Conn) error {
	_, err := admin.Exec(ctx, `do $$ begin
		perform pg_advisory_xact_lock(8);
		create table if not exists dbtest_template (name text primary key, used_at timestamptz not null);
	end $$`)
	if err != nil {
		return err
	}
	_, err = admin.Exec(ctx, `insert into dbtest_template (name, used_at) values ($1, now())
		on conflict (name) do update set used_at = excluded.used_at`, templatePrefix+migrations.Hash())
	return err
}
