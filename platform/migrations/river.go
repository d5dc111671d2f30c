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

// jobsGrants grants access to River's tables. The jobs role gets full access. The tenant and gate
// roles can add tasks and see their own. The statements can be repeated.
//
// River uses the clause "on conflict do update set kind", which requires the privilege to update
// that column. Without a policy for updates, the tenant and gate roles still cannot update a row.
const jobsGrants = `
grant usage on schema jobs to crier_jobs, crier_tenant, crier_gate;
grant select, insert, update, delete on jobs.river_job, jobs.river_leader, jobs.river_queue, jobs.river_notification to crier_jobs;
grant select on jobs.river_migration to crier_jobs;
grant usage on all sequences in schema jobs to crier_jobs;
grant select, update (kind), insert (id, args, created_at, kind, max_attempts, metadata, priority, queue, scheduled_at,
  state, tags, unique_key, unique_states) on jobs.river_job to crier_tenant, crier_gate;
grant usage on sequence jobs.river_job_id_seq to crier_tenant, crier_gate;`

// jobsPolicies creates the row-level security policies for jobs and tasks. The statement can be
// repeated. When repeated, it takes no lock that would delay a transaction that adds a task. To
// change a policy's expression, create the policy under a new name and drop the old one.
const jobsPolicies = `
do $$ begin
  if (select relforcerowsecurity from pg_class where oid = 'jobs.river_job'::regclass)
    and (select count(*) from pg_policies where schemaname = 'jobs' and tablename = 'river_job'
      and policyname in ('jobs', 'tenant_sees', 'tenant_adds', 'gate_sees', 'gate_adds')) = 5 then
    return;
  end if;
  drop policy if exists jobs on jobs.river_job;
  drop policy if exists tenant_sees on jobs.river_job;
  drop policy if exists tenant_adds on jobs.river_job;
  drop policy if exists gate_sees on jobs.river_job;
  drop policy if exists gate_adds on jobs.river_job;
  create policy jobs on jobs.river_job to crier_jobs using (true) with check (true);
  create policy tenant_sees on jobs.river_job for select to crier_tenant
    using (args ->> 'org' = (select nullif(current_setting('app.org_id', true), '')));
  create policy tenant_adds on jobs.river_job for insert to crier_tenant
    with check (args ->> 'org' = (select nullif(current_setting('app.org_id', true), '')));
  create policy gate_sees on jobs.river_job for select to crier_gate using (not args ? 'org');
  create policy gate_adds on jobs.river_job for insert to crier_gate with check (not args ? 'org');
  alter table jobs.river_job enable row level security, force row level security;
end $$`

// jobsOpen lets the owner of River's tables see the rows in them, because River's migrations may
// change rows. jobsPolicies removes this access again.
const jobsOpen = `alter table if exists jobs.river_job no force row level security`

// jobsStep is the name used in messages for the step that runs applyJobs.
const jobsStep = "of the background jobs"

// applyJobs applies River's migrations and the grants and policies on its tables, which belong to
// the database owner. Each migration is a separate transaction, so applyJobs can be repeated after
// a failure.
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
	current, err := river.Validate(ctx, nil)
	if err != nil {
		return err
	}
	if !current.OK {
		if _, err := pool.Exec(ctx, jobsOpen); err != nil {
			return err
		}
	}
	done, err := river.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return err
	}
	for _, v := range done.Versions {
		m.log.InfoContext(ctx, "migrated", "river", v.Name, "took", v.Duration)
	}
	_, err = pool.Exec(ctx, withPrefix(jobsGrants+jobsPolicies, m.RolePrefix))
	return err
}

// jobsVersion returns the newest version of River's tables that this build contains. It does not
// access the database.
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
