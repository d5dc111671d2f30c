package service_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/pg"
	"crier/tenancy"
	tenancyservice "crier/tenancy/service"
	"crier/tests/dbtest"
)

// publishing fakes the port. A purge of the organization slow lasts until its context ends.
type publishing struct {
	slow    tenancy.OrgID
	stopped []tenancy.OrgID
	synced  []string
	fails   error
}

func (p *publishing) Stop(_ context.Context, org tenancy.OrgID, _ string) error {
	p.synced = append(p.synced, "stop "+org.String())
	return nil
}

func (p *publishing) Resume(_ context.Context, org tenancy.OrgID, _ string, _ bool) error {
	p.synced = append(p.synced, "resume "+org.String())
	return p.fails
}

func (p *publishing) Stopped(_ context.Context, orgs []tenancy.OrgID) (out []tenancy.OrgID, err error) {
	for _, org := range orgs {
		if slices.Contains(p.stopped, org) {
			out = append(out, org)
		}
	}
	return out, nil
}

func (p *publishing) TakeMade(context.Context, pg.Querier, tenancy.Maker) (tenancy.MadeBy, error) {
	return tenancy.MadeBy{}, nil
}

func (p *publishing) ForgetReviewer(context.Context, string) error { return nil }

func (p *publishing) Purge(ctx context.Context, org tenancy.OrgID) (int, error) {
	if org == p.slow {
		<-ctx.Done()
	}
	return 0, ctx.Err()
}

// purging is an instance whose clock is ahead of the database's.
type purging struct {
	*tenancyservice.Accounts
	t          *testing.T
	db         *pg.DB
	address    string
	publishing *publishing
}

func newPurging(t *testing.T, ahead time.Duration) *purging {
	t.Helper()
	p := &purging{t: t, address: dbtest.URL(t), publishing: &publishing{}}
	p.db = dbtest.OpenURL(t, p.address)
	now := clock.Func(func() time.Time { return time.Now().Add(ahead).UTC() })
	p.Accounts = accountsOf(t, tenancyservice.Deps{DB: p.db, Clock: now, Publishing: p.publishing})
	return p
}

// gate executes a statement as the role of people and credentials.
func (p *purging) gate(sql string, args ...any) {
	p.t.Helper()
	if err := p.db.InRole(p.t.Context(), pg.Gate, func(tx pgx.Tx) error {
		_, err := tx.Exec(p.t.Context(), sql, args...)
		return err
	}); err != nil {
		p.t.Fatal(err)
	}
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

func TestPurge_SlowOrganizationLeavesTimeToOthers(t *testing.T) {
	t.Parallel()
	p := newPurging(t, 0)
	for _, email := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		org := owner(t, p.Accounts, email).Org
		if p.publishing.slow == (tenancy.OrgID{}) {
			p.publishing.slow = org // the first by id, too
		}
	}
	p.gate(`update organization set deleted_at = now() - interval '2 hours'`)
	p.SetPurgeShare(10 * time.Second) // enough for an organization that is not slow, on a busy machine too
	if n, err := p.Purge(t.Context()); err != nil || n < 1 || p.organizations() < 1 {
		t.Errorf("purge: got %d, %v, want others purged and no error", n, err)
	}
	p.publishing.slow = tenancy.OrgID{}
	p.SetPurgeShare(time.Minute)
	if _, err := p.Purge(t.Context()); err != nil {
		t.Errorf("purge when none is slow: %v", err)
	}
	if n := p.organizations(); n != 0 {
		t.Errorf("%d organizations are left, want none", n)
	}
}

// An organization with more rows than one statement may delete is purged in many, each of which is small.
func TestPurge_DeletesManyRowsInSmallStatements(t *testing.T) {
	t.Parallel()
	p := newPurging(t, 0)
	mine, other := owner(t, p.Accounts, "a@example.com").Org, owner(t, p.Accounts, "b@example.com").Org
	alter(t, p.address, `create function many() returns trigger language plpgsql as $$ begin
			if (select count(*) from gone) > 1000 then raise exception 'too many rows at once'; end if; return null; end $$`,
		`create trigger many after delete on audit referencing old table as gone for each statement execute function many()`)
	p.gate(`insert into audit (org_id, id, at, actor, via, action)
		select o, gen_random_uuid(), now(), 'x', 'instance', 'x' from unnest($1::uuid[]) o, generate_series(1, 2500)`,
		[][16]byte{mine.UUID(), other.UUID()})
	p.gate(`update organization set deleted_at = now() - interval '2 hours' where id = $1`, mine)
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
	owner(t, p.Accounts, "a@example.com")
	p.gate(`update organization set deleted_at = now()`)
	p.gate(`insert into used_request (id, expires_at) values ('x', now() + interval '1 hour')`)
	p.TrustClock(false)
	if n, err := p.Purge(t.Context()); n != 0 || !fault.Is(err, fault.Unavailable) || p.organizations() != 1 {
		t.Errorf("purge: got %d, %v, want Unavailable and the organization left", n, err)
	}
	if n, err := p.PruneExpired(t.Context()); n != 0 || !fault.Is(err, fault.Unavailable) {
		t.Errorf("prune: got %d, %v, want Unavailable", n, err)
	}
	p.TrustClock(true)
	if n, err := p.Purge(t.Context()); n != 1 || err != nil {
		t.Errorf("purge by an injected clock: got %d, %v, want 1", n, err)
	}
	near := newPurging(t, time.Minute)
	near.TrustClock(false)
	if _, err := near.Purge(t.Context()); err != nil {
		t.Errorf("purge with a clock that is a minute ahead: %v", err)
	}
}

func TestPruneExpired_RefusedRowStaysAlone(t *testing.T) {
	t.Parallel()
	p := newPurging(t, 0)
	p.gate(`insert into used_request (id, expires_at)
		select 'r' || n, now() - (10 + n) * interval '1 minute' from generate_series(1, 250) n`)
	alter(t, p.address, `create function harm() returns trigger language plpgsql as $$ begin
			if old.id = 'r120' then raise exception 'no'; end if; return old; end $$`,
		`create trigger harm before delete on used_request for each row execute function harm()`)
	if n, err := p.PruneExpired(t.Context()); n != 249 || err == nil {
		t.Errorf("prune: got %d, %v, want 249 and an error", n, err)
	}
	alter(t, p.address, `drop trigger harm on used_request`)
	if n, err := p.PruneExpired(t.Context()); n != 1 || err != nil {
		t.Errorf("prune: got %d, %v, want 1", n, err)
	}
}

// TestPruneExpired_LeavesWhatASlowClockStillUses: a signed request can be replayed as long as the
// clock of any process allows it, so its id must be kept for that long.
func TestPruneExpired_LeavesWhatASlowClockStillUses(t *testing.T) {
	t.Parallel()
	p := newPurging(t, 0)
	p.gate(`insert into used_request (id, expires_at)
		select 'r' || n, now() - n * interval '1 minute' from unnest('{1, 9, 11}'::int[]) n`)
	if n, err := p.PruneExpired(t.Context()); n != 1 || err != nil {
		t.Errorf("prune: got %d, %v, want only what expired more than ten minutes ago", n, err)
	}
}

func TestRestoreOrganization_DecidesByTheTimeOfTheDatabase(t *testing.T) {
	t.Parallel()
	p := newPurging(t, -10*time.Minute)
	p.TrustClock(false)
	o := owner(t, p.Accounts, "a@example.com")
	p.gate(`update organization set deleted_at = now() - interval '61 minutes'`)
	if err := p.RestoreOrganization(t.Context(), o, o.Org.String()); !fault.Is(err, fault.NotFound) {
		t.Errorf("restore after the grace by a slow clock: got %v, want NotFound", err)
	}
	p.gate(`update person set deleted_at = now() - interval '61 minutes'`)
	signIn, err := p.Login(t.Context(), "a@example.com", password, here)
	if err != nil || signIn.Step != tenancy.StepRestore {
		t.Fatalf("log-in: got %+v, %v, want the confirmation of the undo", signIn, err)
	}
	if _, err := p.Restore(t.Context(), signIn.Token, here); !fault.Is(err, fault.Gone) {
		t.Errorf("restore of the account: got %v, want Gone", err)
	}
	p.gate(`update person set deleted_at = null`)
	p.gate(`update organization set deleted_at = now() - interval '59 minutes'`)
	if err := p.RestoreOrganization(t.Context(), o, o.Org.String()); err != nil {
		t.Errorf("restore within the grace: %v", err)
	}
}

func TestSyncAllPublishing_FindsWhatTasksGaveUp(t *testing.T) {
	t.Parallel()
	p := newPurging(t, 0)
	marked, freed, right := owner(t, p.Accounts, "a@example.com").Org, owner(t, p.Accounts, "b@example.com").Org,
		owner(t, p.Accounts, "c@example.com").Org
	p.gate(`update organization set suspended_at = now() where id = any ($1)`, [][16]byte{marked.UUID(), right.UUID()})
	p.publishing.stopped = []tenancy.OrgID{freed, right}
	p.publishing.fails = errors.New("the disk is full")
	n, err := p.SyncAllPublishing(t.Context())
	slices.Sort(p.publishing.synced)
	want := []string{"resume " + freed.String(), "stop " + marked.String()}
	if n != 2 || err == nil || !slices.Equal(p.publishing.synced, want) {
		t.Errorf("got %d, %v and the calls %q, want 2, an error and %q", n, err, p.publishing.synced, want)
	}
}
