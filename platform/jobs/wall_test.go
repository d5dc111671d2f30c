package jobs_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"crier/platform/jobs"
	"crier/platform/pg"
)

// code returns the SQLSTATE of a Postgres error, and "" for any other error.
func code(err error) string {
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return ""
	}
	return pe.Code
}

const denied = "42501"

func TestAdd_RoleAddsOnlyItsOwnTasks(t *testing.T) {
	t.Parallel()
	r, a, b := newRig(t), uuid.New(), uuid.New()
	for name, c := range map[string]struct {
		in, org uuid.UUID
		want    string
	}{
		"an organization, its own":         {in: a, org: a, want: ""},
		"an organization, another's":       {in: a, org: b, want: denied},
		"an organization, nobody's":        {in: a, org: uuid.Nil, want: denied},
		"the gate, nobody's":               {in: uuid.Nil, org: uuid.Nil, want: ""},
		"the gate, that of a organization": {in: uuid.Nil, org: a, want: denied},
	} {
		task := jobs.Task{Kind: "kind", Org: c.org, ID: uuid.New()}
		err := r.in(t.Context(), c.in, func(tx pgx.Tx) error { return r.queue.Add(t.Context(), tx, task) })
		if code(err) != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s: got %v, want the code %q", name, err, c.want)
		}
		if there := r.row(t, "state", task) != ""; there != (c.want == "") {
			t.Errorf("%s: got a task: %t", name, there)
		}
	}
	for _, role := range []pg.Role{pg.Tenant, pg.Clock, pg.Sender, pg.Retention} {
		err := r.db.InRole(t.Context(), role, func(tx pgx.Tx) error {
			return r.queue.Add(t.Context(), tx, jobs.Task{Kind: "kind", Org: a, ID: uuid.New()})
		})
		if code(err) != denied {
			t.Errorf("%s without an organization: got %v, want the code %s", role, err, denied)
		}
	}
}

func TestTasks_RoleSeesOnlyItsOwnAndChangesNone(t *testing.T) {
	t.Parallel()
	r, a, b := newRig(t), uuid.New(), uuid.New()
	for _, org := range []uuid.UUID{a, b, b, uuid.Nil} {
		r.add(t, jobs.Task{Kind: "kind", Org: org, ID: uuid.New()})
	}
	for org, want := range map[uuid.UUID]int{a: 1, b: 2, uuid.New(): 0, uuid.Nil: 1} {
		var got int
		err := r.in(t.Context(), org, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "select count(*) from jobs.river_job").Scan(&got)
		})
		if err != nil || got != want {
			t.Errorf("organization %s: got %d tasks, %v, want %d", org, got, err, want)
		}
		for _, sql := range []string{
			"update jobs.river_job set state = 'available'", "delete from jobs.river_job",
			"select from jobs.river_leader", "select from jobs.river_queue", "insert into jobs.river_job (kind, args, errors) values ('kind', '{}', '{}')",
		} {
			err := r.in(t.Context(), org, func(tx pgx.Tx) error { _, err := tx.Exec(t.Context(), sql); return err })
			if code(err) != denied {
				t.Errorf("organization %s, %s: got %v, want the code %s", org, sql, err, denied)
			}
		}
		var changed pgconn.CommandTag
		err = r.in(t.Context(), org, func(tx pgx.Tx) (err error) {
			changed, err = tx.Exec(t.Context(), "update jobs.river_job set kind = 'other'")
			return err
		})
		if err != nil || changed.RowsAffected() != 0 {
			t.Errorf("organization %s: got %d tasks changed, %v, want none", org, changed.RowsAffected(), err)
		}
	}
	var got int
	err := r.db.InRole(t.Context(), pg.Tenant, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), "select count(*) from jobs.river_job").Scan(&got)
	})
	if err != nil || got != 0 {
		t.Errorf("no organization: got %d tasks, %v, want 0", got, err)
	}
}
