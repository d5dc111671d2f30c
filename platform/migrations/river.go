package migrations

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// jobsSchema is where River's tables are, as the baseline and platform/jobs name it.
const jobsSchema = "jobs"

// jobsGrants lets only the role that runs jobs use River's tables. It may be repeated.
const jobsGrants = `
grant usage on schema jobs to crier_jobs;
grant select, insert, update, delete on jobs.river_job, jobs.river_leader, jobs.river_queue, jobs.river_notification to crier_jobs;
grant select on jobs.river_migration to crier_jobs;
grant usage on all sequences in schema jobs to crier_jobs`

// jobsStep names in messages what applyJobs does.
const jobsStep = "of the background jobs"

// applyJobs brings River's tables up to date, and grants them. They are the owner's, like all others; each of River's
// migrations is a transaction of its own, so that it may be repeated after any of them.
func (m *migrator) applyJobs(ctx context.Context, _ string) error {
	pc, err := pgxpool.ParseConfig(m.URL)
	if err != nil {
		return err
	}
	pc.MaxConns, pc.ConnConfig = 1, m.connect
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return err
	}
	defer pool.Close()
	river, err := jobsMigrator(pool)
	if err != nil {
		return err
	}
	done, err := river.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return err
	}
	for _, v := range done.Versions {
		m.log.InfoContext(ctx, "migrated", "river", v.Name, "took", v.Duration)
	}
	_, err = pool.Exec(ctx, withPrefix(jobsGrants, m.RolePrefix))
	return err
}

// jobsVersion is the version of River's tables that this build wants.
func jobsVersion() (int, error) {
	m, err := jobsMigrator(nil)
	if err != nil {
		return 0, err
	}
	all := m.AllVersions()
	return all[len(all)-1].Version, nil
}

func jobsMigrator(pool *pgxpool.Pool) (*rivermigrate.Migrator[pgx.Tx], error) {
	cfg := &rivermigrate.Config{Schema: jobsSchema, Logger: slog.New(slog.DiscardHandler)}
	return rivermigrate.New(riverpgxv5.New(pool), cfg)
}
