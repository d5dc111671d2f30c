package deletion_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

// purging is an instance whose clock may differ from the database's.
type purging struct {
	*boot.Accounts
	t          *testing.T
	db         *pg.DB
	address    string
	publishing *tenancytest.Publishing
}

func newPurging(t *testing.T, ahead time.Duration) *purging {
	t.Helper()
	p := &purging{t: t, address: dbtest.URL(t), publishing: &tenancytest.Publishing{}}
	p.db = dbtest.OpenURL(t, p.address)
	now := clock.Func(func() time.Time { return time.Now().Add(ahead).UTC() })
	p.Accounts = tenancytest.With(t, boot.AccountsDeps{DB: p.db, Clock: now, Publishing: p.publishing})
	return p
}

// organizations returns how many organizations are left.
func (p *purging) organizations() (n int) {
	p.t.Helper()
	if err := p.db.InRole(p.t.Context(), pg.Gate, func(tx pgx.Tx) error {
		return tx.QueryRow(p.t.Context(), `select count(*) from organization`).Scan(&n)
	}); err != nil {
		p.t.Fatal(err)
	}
	return n
}

func TestPurge_SlowOrganizationLeavesTimeForOthers(t *testing.T) {
	t.Parallel()
	p := newPurging(t, 0)
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		org := tenancytest.Owner(t, p.Accounts, email).Org
		if p.publishing.Slow == (tenancy.OrgID{}) {
			p.publishing.Slow = org // also the first by id
		}
	}
	tenancytest.Gate(p.t, p.db, `update organization set deleted_at = now() - interval '2 hours'`)
	// This is enough for organizations that are not slow, even on a busy machine.
	p.SetPurgeShare(10 * time.Second)
	if n, err := p.Purge(t.Context()); err != nil || n < 1 || p.organizations() < 1 {
		t.Errorf("purge: got %d, %v, want others purged and no error", n, err)
	}
	p.publishing.Slow = tenancy.OrgID{}
	p.SetPurgeShare(time.Minute)
	if _, err := p.Purge(t.Context()); err != nil {
		t.Errorf("purge when none is slow: %v", err)
	}
	if n := p.organizations(); n != 0 {
		t.Errorf("%d organizations are left, want none", n)
	}
}

// An organization with more rows than one statement may delete is purged in many small statements.
func TestPurge_DeletesManyRowsInSmallStatements(t *testing.T) {
	t.Parallel()
	p := newPurging(t, 0)
	mine, other := tenancytest.Owner(t, p.Accounts, "a@example.com").Org, tenancytest.Owner(t, p.Accounts, "b@example.com").Org
	tenancytest.Alter(t, p.address, `create function many() returns trigger language plpgsql as $$ begin
			if (select count(*) from gone) > 1000 then raise exception 'too many rows at once'; end if; return null; end $$`,
		`create trigger many after delete on audit referencing old table as gone for each statement execute function many()`)
	tenancytest.Gate(p.t, p.db, `insert into audit (org_id, id, at, actor, via, action)
		select o, gen_random_uuid(), now(), 'x', 'instance', 'x' from unnest($1::uuid[]) o, generate_series(1, 2500)`,
		[][16]byte{mine.UUID(), other.UUID()})
	tenancytest.Gate(p.t, p.db, `update organization set deleted_at = now() - interval '2 hours' where id = $1`, mine)
	if n, err := p.Purge(t.Context()); n != 1 || err != nil || p.organizations() != 1 {
		t.Errorf("purge: got %d, %v, want one organization purged", n, err)
	}
	left := 0
	if err := p.db.InOrg(t.Context(), other.UUID(), func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select count(*) from audit`).Scan(&left)
	}); err != nil || left < 2500 {
		t.Errorf("the other organization has %d entries, %v, want all", left, err)
	}
}

func TestPurge_RefusesWithWrongClock(t *testing.T) {
	t.Parallel()
	p := newPurging(t, 8*24*time.Hour)
	tenancytest.Owner(t, p.Accounts, "a@example.com")
	tenancytest.Gate(p.t, p.db, `update organization set deleted_at = now()`)
	tenancytest.Gate(p.t, p.db, `insert into used_request (id, expires_at) values ('x', now() + interval '1 hour')`)
	p.DB.ClockInjected = false
	if n, err := p.Purge(t.Context()); n != 0 || !fault.Is(err, fault.Unavailable) || p.organizations() != 1 {
		t.Errorf("purge: got %d, %v, want Unavailable and the organization left", n, err)
	}
	if n, err := p.PruneExpired(t.Context()); n != 0 || !fault.Is(err, fault.Unavailable) {
		t.Errorf("prune: got %d, %v, want Unavailable", n, err)
	}
	p.DB.ClockInjected = true
	if n, err := p.Purge(t.Context()); n != 1 || err != nil {
		t.Errorf("purge by an injected clock: got %d, %v, want 1", n, err)
	}
	near := newPurging(t, time.Minute)
	near.DB.ClockInjected = false
	if _, err := near.Purge(t.Context()); err != nil {
		t.Errorf("purge with a clock that is a minute ahead: %v", err)
	}
}

func TestRestoreOrganization_UsesTheDatabaseTime(t *testing.T) {
	t.Parallel()
	p := newPurging(t, -10*time.Minute)
	p.DB.ClockInjected = false
	o := tenancytest.Owner(t, p.Accounts, "a@example.com")
	tenancytest.Gate(p.t, p.db, `update organization set deleted_at = now() - interval '61 minutes'`)
	if err := p.RestoreOrganization(t.Context(), o, o.Org.String()); !fault.Is(err, fault.NotFound) {
		t.Errorf("restore after the grace by a slow clock: got %v, want NotFound", err)
	}
	tenancytest.Gate(p.t, p.db, `update person set deleted_at = now() - interval '61 minutes'`)
	signIn, err := p.Login(t.Context(), "a@example.com", tenancytest.Password, tenancytest.Here)
	if err != nil || signIn.Step != tenancy.StepRestore {
		t.Fatalf("log-in: got %+v, %v, want the confirmation of the undo", signIn, err)
	}
	if _, err := p.Restore(t.Context(), signIn.Token, tenancytest.Here); !fault.Is(err, fault.Gone) {
		t.Errorf("restore of the account: got %v, want Gone", err)
	}
	tenancytest.Gate(p.t, p.db, `update person set deleted_at = null`)
	tenancytest.Gate(p.t, p.db, `update organization set deleted_at = now() - interval '59 minutes'`)
	if err := p.RestoreOrganization(t.Context(), o, o.Org.String()); err != nil {
		t.Errorf("restore within the grace: %v", err)
	}
}
