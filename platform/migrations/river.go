package migrations

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// jobsSchema is the schema of River's tables. The baseline and platform/jobs use the same name.
const jobsSchema = "jobs"

// jobsGrants allows the use of River's tables to the role of the jobs only. It may be repeated.
const jobsGrants = `
grant usage on schema jobs to crier_jobs;
grant select, insert, update, delete on jobs.river_job, jobs.river_leader, jobs.river_queue, jobs.river_notification to crier_jobs;
grant select on jobs.river_migration to crier_jobs;
grant usage on all sequences in schema jobs to crier_jobs`

// jobsStep is the name, in messages, of the step applyJobs.
const jobsStep = "of the background jobs"

// applyJobs applies River's migrations and the grants on its tables, which belong to the owner of the database. Each
// migration is a transaction of its own, so applyJobs may be repeated after a failure.
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

// jobsVersion returns the newest version of River's tables in this build. It does not use the database.
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
