// Package sqltest checks the statements of stores. Their plans must not read a whole table, and
// their columns must match their rows.
package sqltest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tests/dbtest"
)

// Step is a node in a query plan.
type Step struct {
	Kind  string `json:"Node Type"`
	Table string `json:"Relation Name"`
	Index string `json:"Index Name"`
	Cond  string `json:"Index Cond"`
	Side  string `json:"Parent Relationship"`
	Alias string `json:"Alias"`
	Steps []Step `json:"Plans"`
}

// whole returns the tables that a plan reads completely, or completely for one organization.
func (s Step) whole(leads map[string]string) (out []string) {
	of := leads[s.Index]
	if strings.HasSuffix(s.Kind, "Scan") && s.Table != "" &&
		(!strings.Contains(s.Cond, "("+of+" ") || of == "org_id" && !strings.Contains(s.Cond, " AND ")) {
		out = append(out, strings.TrimSuffix(s.Table+" by "+s.Index, " by "))
	}
	for _, x := range s.Steps {
		out = append(out, x.whole(leads)...)
	}
	return out
}

// paired returns the subqueries whose rows a nested loop compares with all rows of another
// subquery. With 512 posts in a statement, that is a quarter of a million comparisons, which take
// longer than everything else.
func (s Step) paired() (out []string) {
	for _, x := range s.Steps {
		if s.Kind == "Nested Loop" && x.Side == "Inner" {
			inner := x
			for slices.Contains([]string{"Materialize", "Subquery Scan", "Sort", "Aggregate"}, inner.Kind) {
				inner = inner.Steps[0]
			}
			if (inner.Kind == "CTE Scan" || inner.Kind == "Function Scan") && inner.Alias != few {
				out = append(out, inner.Alias)
			}
		}
		out = append(out, x.paired()...)
	}
	return out
}

// few is the alias of a set with only a few rows: the platforms' limits.
const few = "l"

// bounded lists the tables that may be read completely because they have one row per shard or
// process. The sender reads claimed posts one by one and must not read any table completely.
var bounded = []string{"shard", "node by node_pkey"}

// Open returns a new database and a connection to it as its owner.
func Open(t *testing.T) (*pg.DB, *pgx.Conn) {
	t.Helper()
	address := dbtest.URL(t)
	owner, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close(context.WithoutCancel(t.Context())) })
	return dbtest.OpenURL(t, address), owner
}

// NoTableRead fails the test if the plan of a statement reads a whole table. Each statement is
// planned with its role.
//
// A connection plans a statement once, perhaps while tables are empty or nothing is due, and the
// plan must still be good after that has changed. This depends on the settings of the roles,
// without which a table may be scanned, and on the form of the statements, without which the
// planner chooses between two indexes by statistics.
func NoTableRead(t *testing.T, statements map[pg.Role][]string) {
	t.Helper()
	db, owner := Open(t)
	leads := map[string]string{} // the first column of each index
	rows, err := owner.Query(
		t.Context(), "select indexrelid::regclass::text, pg_get_indexdef(indexrelid, 1, true) from pg_index",
	)
	if err != nil {
		t.Fatal(err)
	}
	var index, column string
	if _, err := pgx.ForEachRow(
		rows, []any{&index, &column}, func() error { leads[index] = column; return nil },
	); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{"new", "analyzed while empty", "full without due posts"} {
		if state == "full without due posts" {
			Fill(t, owner.Config().Database)
		}
		if state != "new" {
			Vacuum(t, owner)
		}
		for role, all := range statements {
			c, err := db.Pool(role).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i, sql := range all {
				name, _, _ := strings.Cut(strings.TrimPrefix(sql, "-- "), "\n")
				way := Plan(t, c.Conn(), fmt.Sprintf("%s %d", state, i), sql)
				if pairs := way.paired(); len(pairs) > 0 {
					t.Errorf("%s, planned when all is %s, compares all its rows with all of %v", name, state, pairs)
				}
				if read := way.whole(leads); len(read) > 0 {
					read = slices.DeleteFunc(
						read, func(s string) bool { return role != pg.Sender && slices.Contains(bounded, s) },
					)
					if len(read) > 0 {
						t.Errorf("%s, planned when all is %s, reads all of %v", name, state, read)
					}
				}
			}
			c.Release()
		}
	}
}

// Kinds returns the kinds of the nodes in a plan, from the top.
func (s Step) Kinds() []string {
	out := []string{s.Kind}
	for _, x := range s.Steps {
		out = append(out, x.Kinds()...)
	}
	return out
}

// Indexes returns the indexes that a plan uses.
func (s Step) Indexes() (out []string) {
	if s.Index != "" {
		out = append(out, s.Index)
	}
	for _, x := range s.Steps {
		out = append(out, x.Indexes()...)
	}
	return out
}

// Reads returns the scans of a table in a plan.
func (s Step) Reads(table string) (out []Step) {
	if s.Table == table && strings.HasSuffix(s.Kind, "Scan") {
		out = append(out, s)
	}
	for _, x := range s.Steps {
		out = append(out, x.Reads(table)...)
	}
	return out
}

// Plan returns the generic plan of a statement.
func Plan(t *testing.T, c *pgx.Conn, name, sql string) Step {
	t.Helper()
	if _, err := c.Exec(t.Context(), `prepare "`+name+`" as `+sql); err != nil {
		t.Fatal(err)
	}
	var count int
	if err := c.QueryRow(
		t.Context(), "select cardinality(parameter_types) from pg_prepared_statements where name = $1", name,
	).Scan(&count); err != nil {
		t.Fatal(err)
	}
	var text []byte
	parameters := strings.TrimSuffix(strings.Repeat("null, ", count), ", ")
	explain := `explain (format json) execute "` + name + `"(` + parameters + ")"
	if err := c.QueryRow(t.Context(), explain, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan Step }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}

// Vacuum marks all rows as visible to all transactions, which determines the cost of an index-only
// scan, and updates the statistics.
//
// One vacuum is not enough while another test's session is logging in. That session does not belong
// to a database yet and holds back the marks in all of them. Postgres ends such a session after a
// minute.
func Vacuum(t *testing.T, owner *pgx.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for left := 1; left > 0; {
		if _, err := owner.Exec(ctx, "vacuum analyze"); err != nil {
			t.Fatal(err)
		}
		err := owner.QueryRow(ctx, `select coalesce(sum(relpages - relallvisible), 0) from pg_class
			where relkind = 'r' and relnamespace = 'public'::regnamespace`).Scan(&left)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Fill inserts 30,000 published posts in 3,000 channels of 300 organizations, with their parts,
// media and publications.
func Fill(t *testing.T, database string) {
	t.Helper()
	cfg := dbtest.Super(t).Config()
	cfg.Database = database
	super, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = super.Close(context.WithoutCancel(t.Context())) })
	for _, sql := range []string{
		`create function pg_temp.u(kind int, n int) returns uuid language sql immutable as $$ select (lpad(to_hex(kind), 8, '0') || lpad(to_hex(n), 24, '0'))::uuid $$`,
		`insert into organization (id, name) select pg_temp.u(1, n), 'an organization' from generate_series(1, 300) n`,
		`insert into channel (org_id, id, connector, name, account_id, account, grade, credential)
		 select pg_temp.u(1, 1 + n % 300), pg_temp.u(2, n), 'sandbox', 'a channel', n::text, '{}', 'A', 'sealed' from generate_series(1, 3000) n`,
		`insert into channel_queue (channel_id, org_id, shard, connector, destination) select id, org_id, 7, connector, 'example.com' from channel`,
		`insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date, release_id)
		 select c.org_id, pg_temp.u(3, n), pg_temp.u(4, n), c.id, 7, 'PUBLISHED', now() - n * interval '1 minute', now(), 'x'
		 from generate_series(1, 30000) n join channel c on c.id = pg_temp.u(2, 1 + n % 3000)`,
		`insert into part (org_id, id, post_id, position, content) select org_id, id, id, 0, 'a text' from post`,
		`insert into media (org_id, id, key, blob, name, ext, content_type, size, stored)
		 select org_id, id, lpad(account_id, 24, '0'), lpad(account_id, 24, '0'), 'a picture', 'png', 'image/png', 1, 1 from channel`,
		`insert into attachment (org_id, part_id, position, media_id)
		 select p.org_id, p.id, 0, p.channel_id from post p where p.id < pg_temp.u(3, 3000)`,
		`insert into publication (org_id, id, post_id, group_id, part_id, position, number, created_at, phase, release_id, done_at)
		 select org_id, id, id, group_id, id, 0, 1, due, 'done', 'x', now() from post`,
	} {
		if _, err := super.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}
