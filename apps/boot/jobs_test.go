package boot

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tenancy"
)

func TestServe_PrunesRowsAfterRetention(t *testing.T) {
	t.Parallel()
	s := serveWith(t, map[string]string{"PRUNE_INTERVAL": "1s", "EVENT_RETENTION": "0s"})
	want := []string{
		"analytics-snapshots", "approvals", "collect-files", "prune-analytics", "prune-connects", "prune-deleted-posts", "prune-expired-links", "prune-idempotency-keys",
		"prune-notifications", "prune-oauth-clients", "prune-oauth-tokens",
		"prune-sessions", "prune-upload-addresses", "prune-webhook-deliveries", "prune-webhook-secrets", "purge", "refresh-access", "sync-publishing",
	}
	if got := slices.Sorted(maps.Keys(s.jobs.Stats())); !slices.Equal(got, want) {
		t.Errorf("the jobs are %v, want %v", got, want)
	}
	if err := s.db.WriteOrg(t.Context(), s.owner.Org.UUID(), func(b *pgx.Batch) {
		b.Queue(`insert into idempotency (org_id, key, request_hash, body, created_at) values
			($1, 'old', 'x', '[]', now() - interval '31 days'), ($1, 'new', 'x', '[]', now() - interval '29 days')`, s.owner.Org)
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Accounts.Login(t.Context(), "owner@crier.test", "correct horse battery", tenancy.Source{}); err != nil {
		t.Fatal(err)
	}
	if err := s.db.WriteRole(t.Context(), pg.Gate, func(b *pgx.Batch) {
		b.Queue(`update session set expires_at = $1`, time.Now().Add(-8*24*time.Hour))
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the key and the session are pruned", func() bool { return s.pruned.Load() == 2 })
	families, err := s.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, f := range families {
		seen[f.GetName()] = len(f.GetMetric())
	}
	for _, name := range []string{"crier_jobs_done_total", "crier_jobs_failed_total", "crier_jobs_seconds_total", "crier_jobs_running"} {
		if seen[name] != len(want) {
			t.Errorf("%s has %d rows, want one of each job, %d", name, seen[name], len(want))
		}
	}
	if seen["crier_pruned_rows_total"] != 1 {
		t.Errorf("crier_pruned_rows_total has %d rows, want 1", seen["crier_pruned_rows_total"])
	}
}
