package instance_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

func TestPruneSessions_DeletesSessionsPastTheirRetention(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	db := dbtest.OpenURL(t, address)
	a := tenancytest.New(t, db)
	tenancytest.Owner(t, a, "a@example.com")
	const keep = 7 * 24 * time.Hour
	gate := func(sql string, args ...any) (n int) {
		t.Helper()
		if err := db.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error { return tx.QueryRow(t.Context(), sql, args...).Scan(&n) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, ago := range []time.Duration{keep + time.Hour, keep + 2*time.Hour, keep - time.Hour, -time.Hour} {
		tenancytest.Login(t, a, "a@example.com")
		gate(`with s as (select id from session where expires_at > now() + interval '2 days' limit 1), u as (
			update session set expires_at = now() - $1 * interval '1 millisecond' from s where session.id = s.id returning 1) select count(*) from u`, ago.Milliseconds())
	}
	tenancytest.Alter(t, address, `create function harm() returns trigger language plpgsql as $$ begin
		if old.expires_at < now() - interval '7 days 90 minutes' then raise exception 'no'; end if; return old; end $$`,
		`create trigger harm before delete on session for each row execute function harm()`)
	if err := db.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
		// A session with this expiry could not be read.
		_, err := tx.Exec(t.Context(), "update session set expires_at = '-infinity'")
		return err
	}); !strings.Contains(fmt.Sprint(err), "session_expires_at_check") {
		t.Errorf("a session that ended at minus infinity: %v, want a violation of its check", err)
	}
	n, err := a.PruneSessions(t.Context(), keep)
	if left := gate("select count(*) from session"); n != 1 || left != 3 {
		t.Errorf("%d sessions were deleted and %d are left, want 1 and 3", n, left)
	}
	if !strings.Contains(fmt.Sprint(err), "1 items could not be changed") {
		t.Errorf("with a session that cannot be deleted: %v, want an error that counts it", err)
	}
	tenancytest.Alter(t, address, `drop trigger harm on session`)
	if n, err := a.PruneSessions(t.Context(), keep); n != 1 || err != nil {
		t.Errorf("%d sessions were deleted with error %v, want 1", n, err)
	}
	if live := gate("select count(*) from session where expires_at > now()"); live != 1 {
		t.Errorf("%d live sessions are left, want 1", live)
	}
}
