package instance_test

import (
	"testing"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/pg"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

// expiring is an instance with its own database.
type expiring struct {
	*boot.Accounts
	t          *testing.T
	db         *pg.DB
	address    string
	publishing *tenancytest.Publishing
}

func newExpiring(t *testing.T) *expiring {
	t.Helper()
	p := &expiring{t: t, address: dbtest.URL(t), publishing: &tenancytest.Publishing{}}
	p.db = dbtest.OpenURL(t, p.address)
	p.Accounts = tenancytest.With(t, boot.AccountsDeps{DB: p.db, Clock: clock.System{}, Publishing: p.publishing})
	return p
}

func TestPruneExpired_OnlyTheRefusedRowStays(t *testing.T) {
	t.Parallel()
	p := newExpiring(t)
	tenancytest.Gate(p.t, p.db, `insert into used_request (id, expires_at)
		select 'r' || n, now() - (10 + n) * interval '1 minute' from generate_series(1, 250) n`)
	tenancytest.Alter(t, p.address, `create function harm() returns trigger language plpgsql as $$ begin
			if old.id = 'r120' then raise exception 'no'; end if; return old; end $$`,
		`create trigger harm before delete on used_request for each row execute function harm()`)
	if n, err := p.PruneExpired(t.Context()); n != 249 || err == nil {
		t.Errorf("prune: got %d, %v, want 249 and an error", n, err)
	}
	tenancytest.Alter(t, p.address, `drop trigger harm on used_request`)
	if n, err := p.PruneExpired(t.Context()); n != 1 || err != nil {
		t.Errorf("prune: got %d, %v, want 1", n, err)
	}
}

// TestPruneExpired_KeepsWhatASlowClockStillUses checks that the ids of signed requests are kept as
// long as the clock of any process would allow a replay.
func TestPruneExpired_KeepsWhatASlowClockStillUses(t *testing.T) {
	t.Parallel()
	p := newExpiring(t)
	tenancytest.Gate(p.t, p.db, `insert into used_request (id, expires_at)
		select 'r' || n, now() - n * interval '1 minute' from unnest('{1, 9, 11}'::int[]) n`)
	if n, err := p.PruneExpired(t.Context()); n != 1 || err != nil {
		t.Errorf("prune: got %d, %v, want only what expired more than ten minutes ago", n, err)
	}
}
