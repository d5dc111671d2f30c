package pg_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/tests/dbtest"
)

type thing struct{}

func TestUUIDCodec_RoundTrip(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	want, none := id.New[thing](), id.ID[thing]{}
	got, gone, bare, missing := none, id.New[thing](), uuid.Nil, uuid.New()
	var list []uuid.UUID
	var maybe *uuid.UUID
	var text, nothing string
	err := db.InRole(t.Context(), pg.Clock, func(tx pgx.Tx) error {
		const sql = `select $1::uuid, $2::uuid, $3::uuid, $2::uuid, $4::uuid[], $2::uuid, $1::uuid::text, coalesce($2::uuid::text, 'null')`
		if err := tx.QueryRow(t.Context(), sql,
			want, none, want.UUID(), []uuid.UUID{want.UUID(), uuid.Nil}).Scan(&got, &gone, &bare, &missing, &list, &maybe, &text, &nothing); err != nil {
			return err
		}
		var many [][16]byte
		return tx.QueryRow(t.Context(), `select $1::uuid[]`, [][16]byte{want.UUID()}).Scan(&many)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got != want || bare != want.UUID() || text != want.String() {
		t.Errorf("got %v, %v and %s, want %v each time", got, bare, text, want)
	}
	if !gone.IsZero() || missing != uuid.Nil || maybe != nil || nothing != "null" {
		t.Errorf("got %v, %v, %v and %s for NULL, want zero values", gone, missing, maybe, nothing)
	}
	if len(list) != 2 || list[0] != bare || list[1] != uuid.Nil {
		t.Errorf("got the list %v, want %v and the zero id", list, bare)
	}
}
