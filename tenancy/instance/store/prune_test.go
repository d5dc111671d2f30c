package store

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tests/dbtest"
)

func TestFindOldSessions_ReadsInIndexOrder(t *testing.T) {
	t.Parallel()
	var plan []string
	if err := dbtest.Open(t).InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
		person := uuid.New()
		if _, err := tx.Exec(t.Context(), `insert into person (id, email, name) values ($1, 'a@example.com', 'A')`, person); err != nil {
			return err
		}
		if _, err := tx.Exec(t.Context(), `insert into session (id, person_id, hash, expires_at)
			select gen_random_uuid(), $1, sha256(n::text::bytea), now() - interval '1 year' from generate_series(1, 5000) n`, person); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), "explain "+findOldSessions, pgx.QueryExecModeExec, time.Hour.Milliseconds(), time.Time{}, uuid.Nil, 100)
		if err != nil {
			return err
		}
		plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if shown := strings.Join(plan, "\n"); strings.Contains(shown, "Sort") || !strings.Contains(shown, "session_expires") {
		t.Errorf("the plan does not read session_expires in order:\n%s", shown)
	}
}
