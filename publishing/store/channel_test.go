package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"crier/tests/fixture"
)

func TestAChannelBeginsInItsOrganizationsZone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	moves := func(zone string) {
		t.Helper()
		r.ok(r.db.InOrg(t.Context(), r.org.UUID(), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), "update organization set timezone = $2 where id = $1", r.org, zone)
			return err
		}))
	}
	moves("Europe/Berlin")
	c := fixture.Channel(r.org)
	got, _, err := r.store.Connect(t.Context(), c, []byte("sealed"))
	r.ok(err)
	moves("Asia/Tokyo")
	again, _, err := r.store.Connect(t.Context(), c, []byte("sealed"))
	r.ok(err)
	if got.Timezone != "Europe/Berlin" || again.Timezone != "Europe/Berlin" {
		t.Errorf("connected in %s, reconnected in %s", got.Timezone, again.Timezone)
	}
}
