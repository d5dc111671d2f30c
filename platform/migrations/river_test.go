package migrations_test

import (
	"testing"
	"time"

	"crier/platform/migrations"
	"crier/tests/dbtest"
)

// riverPolicies reads the policies of River's rows and whether they bind the owner.
const riverPolicies = `select relforcerowsecurity::text || ' ' || relrowsecurity::text || ' ' ||
	(select string_agg(policyname, ' ' order by policyname) from pg_policies where schemaname = 'jobs' and tablename = 'river_job')
	from pg_class where oid = 'jobs.river_job'::regclass`

func TestMigrate_RestoresPoliciesOfBackgroundJobs(t *testing.T) {
	t.Parallel()
	const want = "true true gate_adds gate_sees jobs tenant_adds tenant_sees"
	for name, change := range map[string]string{
		"nothing":              `select`,
		"a policy":             `drop policy gate_adds on jobs.river_job`,
		"row security":         `alter table jobs.river_job no force row level security, disable row level security`,
		"a migration of River": `delete from jobs.river_migration where version = 8`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := migrations.Config{URL: dbtest.URL(t)}
			exec(t, session(t, cfg.URL), change)
			migrate(t, cfg)
			if got := text(t, cfg.URL, riverPolicies); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestMigrate_DoesNotWaitForTransactionsWithATask(t *testing.T) {
	t.Parallel()
	cfg := migrations.Config{URL: dbtest.URL(t), LockTimeout: 200 * time.Millisecond}
	exec(t, session(t, cfg.URL), "begin; lock table jobs.river_job in row exclusive mode")
	lines, log := newLog()
	if err := migrations.Migrate(t.Context(), cfg, log); err != nil {
		t.Fatal(err)
	}
	if len(lines) > 0 {
		t.Errorf("got the log line %q, want no wait", <-lines)
	}
}
