package grant_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
)

func TestPrune_DeletesWhatNothingCanUse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.tokens(r.owner, nil)
	kept := r.tokens(r.owner, nil)
	r.exec(`insert into oauth_grant_day (org_id, grant_id, day, posts) select org_id, id, now()::date - 10, 1 from oauth_grant`)
	r.device()
	if n, err := r.Grants.Prune(t.Context()); err != nil || n != 1 {
		t.Errorf("got %d rows, %v; want only the old day", n, err)
	}
	// Only the tokens of the first family expire.
	r.exec(`update oauth_token set expires_at = now() - interval '2 hours' where family_id = (select id from oauth_family order by created_at, id limit 1)`)
	r.exec(`update oauth_family set created_at = now() - interval '2 days'`)
	r.exec(`update oauth_grant set approved_at = now() - interval '2 days'`)
	r.exec(`update oauth_code set expires_at = now() - interval '2 days'`)
	must(t, r.db.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `update device_code set expires_at = now() - interval '1 hour'`)
		return err
	}))
	const want = 2 + 2 + 1 + 1 // tokens, codes, the device, the family
	if n, err := r.Grants.Prune(t.Context()); err != nil || n != want {
		t.Errorf("got %d rows, %v; want %d", n, err, want)
	}
	r.wantToken("the other token", kept.Access, "")
	r.exec(`update oauth_token set expires_at = now() - interval '2 hours'`)
	const rest = 2 + 1 + 1 // tokens, the family, the grant
	if n, err := r.Grants.Prune(t.Context()); err != nil || n != rest {
		t.Errorf("got %d rows, %v; want %d", n, err, rest)
	}
}

func TestPrune_KeepsWhatMayStillBeUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	code := r.approve(r.owner, nil)
	r.accounts.DB.ClockInjected = false
	r.advance(-time.Hour)
	if _, err := r.Grants.Prune(t.Context()); err == nil {
		t.Error("a process with a wrong clock prunes, want an error")
	}
	r.advance(time.Hour)
	if n, err := r.Grants.Prune(t.Context()); err != nil || n != 0 {
		t.Errorf("got %d rows, %v; want none", n, err)
	}
	if _, err := r.Grants.Exchange(t.Context(), r.client, request(code)); err != nil {
		t.Errorf("the code: %v", err)
	}
}
