package key_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

// ownerOf returns a connection as the owner of the database, with the organization as its tenant.
func ownerOf(t *testing.T, address string, org tenancy.OrgID) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	exec(t, c, "select set_config('app.org_id', $1, false)", org.String())
	return c
}

func exec(t *testing.T, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// expire sets the expiry of a key.
func expire(t *testing.T, owner *pgx.Conn, key tenancy.KeyID, at time.Time) {
	t.Helper()
	exec(t, owner, "set role crier_tenant")
	tag, err := owner.Exec(t.Context(), "update api_key set expires_at = $2 where id = $1", key, at)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d keys were updated with error %v, want 1", tag.RowsAffected(), err)
	}
	exec(t, owner, "reset role")
}

// The cache must not hide the expiry of a key.
func TestAuthenticate_KeyEndsAtItsExpiry(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	begin := time.Now().Truncate(time.Microsecond)
	var now atomic.Int64
	a := tenancytest.With(t, boot.AccountsDeps{
		DB: dbtest.OpenURL(t, address), Revocations: &processes{healthy: true},
		Clock: clock.Func(func() time.Time { return begin.Add(time.Duration(now.Load())) }),
	})
	person := tenancytest.Owner(t, a, "a@example.com")
	db := ownerOf(t, address, person.Org)
	full, key := tenancytest.NewKey(t, a, person)
	const life = 20 * time.Second
	expire(t, db, key.ID, begin.Add(life))
	for _, at := range []struct {
		age time.Duration
		ok  bool
	}{
		{age: 0, ok: true},
		{age: life - time.Millisecond, ok: true},
		{age: life, ok: false},
		{age: life + time.Millisecond, ok: false},
		{age: time.Hour, ok: false},
	} {
		now.Store(int64(at.age))
		p, err := a.Authenticate(t.Context(), full)
		if at.ok && (err != nil || p.Org != person.Org) {
			t.Errorf("a key that ends after %s is refused after %s: %v", life, at.age, err)
		}
		if !at.ok && !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("a key that ends after %s is answered with %v after %s, want Unauthenticated", life, err, at.age)
		}
	}
}

// A look-up may read a key before it is revoked and end afterwards. Its result must not be cached.
func TestAuthenticate_LookUpDuringRevocationIsNotCached(t *testing.T) {
	t.Parallel()
	for name, revoke := range map[string]func(a, other *boot.Accounts, p tenancy.Principal, key tenancy.KeyID) error{
		"revoked here": func(a, _ *boot.Accounts, p tenancy.Principal, key tenancy.KeyID) error {
			return a.DeleteKey(t.Context(), p, key.String())
		},
		"revoked by another process, all forgotten": func(a, other *boot.Accounts, p tenancy.Principal, key tenancy.KeyID) error {
			defer a.Cached().ForgetAll()
			return other.DeleteKey(t.Context(), p, key.String())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := dbtest.URL(t)
			a := tenancytest.With(t, boot.AccountsDeps{
				DB: dbtest.OpenURL(t, address), Clock: clock.System{}, Revocations: &processes{healthy: true},
			})
			other := tenancytest.New(t, dbtest.OpenURL(t, address))
			person := tenancytest.Owner(t, other, "a@example.com")
			full, key := tenancytest.NewKey(t, other, person)
			db := ownerOf(t, address, person.Org)
			// The policy makes the look-up wait for a lock of the test while it reads the key.
			exec(t, db, `create function pass() returns boolean language plpgsql volatile as $$
				begin perform pg_advisory_xact_lock_shared(1); return true; end $$`)
			exec(t, db, `create policy pass on api_key as restrictive for select to crier_gate using (pass())`)
			exec(t, db, `select pg_advisory_lock(1)`)
			found := make(chan error, 1)
			go func() {
				_, err := a.Authenticate(t.Context(), full)
				found <- err
			}()
			for waits := false; !waits; time.Sleep(time.Millisecond) {
				select {
				case err := <-found:
					t.Fatalf("the look-up did not wait: %v", err)
				default:
				}
				if err := db.QueryRow(t.Context(), `select exists (select from pg_locks where locktype = 'advisory' and not granted
					and database = (select oid from pg_database where datname = current_database()))`).Scan(&waits); err != nil {
					t.Fatal(err)
				}
			}
			if err := revoke(a, other, person, key.ID); err != nil {
				t.Fatal(err)
			}
			exec(t, db, `select pg_advisory_unlock(1)`)
			if err := <-found; err != nil {
				t.Fatalf("the look-up that had read the key before: %v", err)
			}
			if _, err := a.Authenticate(t.Context(), full); !fault.Is(err, fault.Unauthenticated) {
				t.Errorf("the next request with the key: %v, want Unauthenticated", err)
			}
		})
	}
}

func TestDeleteKey_TakesEffectInThisProcessAtOnce(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	at := time.Now() // the clock stands still, so that no cache entry expires
	a := tenancytest.With(t, boot.AccountsDeps{DB: db, Clock: clock.Func(func() time.Time { return at })})
	person := tenancytest.Owner(t, a, "a@example.com")
	kept, _ := tenancytest.NewKey(t, a, person)
	full, key := tenancytest.NewKey(t, a, person)
	for _, k := range []string{full, kept} {
		if _, err := a.Authenticate(t.Context(), k); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.DeleteKey(t.Context(), person, key.ID.String()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Authenticate(t.Context(), full); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("the revoked key: %v, want Unauthenticated", err)
	}
	if _, err := a.Authenticate(t.Context(), kept); err != nil {
		t.Errorf("another key of the organization: %v", err)
	}
}
