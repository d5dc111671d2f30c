package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
	"crier/tests/dbtest"
)

// step is a node of a plan.
type step struct {
	Kind  string `json:"Node Type"`
	Table string `json:"Relation Name"`
	Index string `json:"Index Name"`
	Cond  string `json:"Index Cond"`
	Side  string `json:"Parent Relationship"`
	Alias string `json:"Alias"`
	Steps []step `json:"Plans"`
}

// whole lists what is read from one end to the other, or for all of an organization.
func (s step) whole(leads map[string]string) (out []string) {
	of := leads[s.Index]
	if strings.HasSuffix(s.Kind, "Scan") && s.Table != "" && (!strings.Contains(s.Cond, "("+of+" ") || of == "org_id" && !strings.Contains(s.Cond, " AND ")) {
		out = append(out, strings.TrimSuffix(s.Table+" by "+s.Index, " by "))
	}
	for _, x := range s.Steps {
		out = append(out, x.whole(leads)...)
	}
	return out
}

// paired lists the results of queries that a nested loop compares row by row with as many other rows: with 512 posts in
// a statement that is a quarter of a million comparisons, which cost more than all else.
func (s step) paired() (out []string) {
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

// few is the alias of rows of which there are only a few: the platforms of an instance.
const few = "l"

// bounded is what may be read whole: it has as many rows as there are shards, channels or posts under way, whatever else there is.
var bounded = []string{"shard", "node by node_pkey", "post by post_claimed", "post by post_one_per_channel",
	"channel_queue by channel_queue_org"} // the channels of an organization whose turn it is

// The scheduler's statements are planned once for a connection, perhaps while tables are empty, and must do when they are not.
func TestNoPlanReadsATableWhole(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	db := dbtest.OpenURL(t, address)
	owner, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close(t.Context()) })
	leads := map[string]string{} // the first columns of indexes
	rows, err := owner.Query(t.Context(), "select indexrelid::regclass::text, pg_get_indexdef(indexrelid, 1, true) from pg_index")
	if err != nil {
		t.Fatal(err)
	}
	var index, column string
	if _, err := pgx.ForEachRow(rows, []any{&index, &column}, func() error { leads[index] = column; return nil }); err != nil {
		t.Fatal(err)
	}
	statements := map[pg.Role][]string{
		pg.Clock: {
			claim, giveBack, holdRepair, channelSetAside, headCount, sweep, findExpire, expire, findReap, reap, findStuck, failStuck, findOrphans, failOrphans,
			finish, findUnknown, look, seriesEnded, setAside, picturePending, handleSave, commitMark, partDone, commitUnmark,
		}, pg.Sender: {workPosts, workPublications, workMedia},
	}
	for _, state := range []string{"new", "known to be empty"} {
		if state != "new" {
			if _, err := owner.Exec(t.Context(), "vacuum analyze"); err != nil {
				t.Fatal(err)
			}
		}
		for role, all := range statements {
			c, err := db.Pool(role).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i, sql := range all {
				name, _, _ := strings.Cut(strings.TrimPrefix(sql, "-- "), "\n")
				way := plan(t, c.Conn(), fmt.Sprintf("%s %d", state, i), sql)
				if pairs := way.paired(); len(pairs) > 0 {
					t.Errorf("%s, planned when all is %s, compares all its rows with all of %v", name, state, pairs)
				}
				if read := way.whole(leads); len(read) > 0 {
					read = slices.DeleteFunc(read, func(s string) bool { return slices.Contains(bounded, s) })
					if len(read) > 0 {
						t.Errorf("%s, planned when all is %s, reads all of %v", name, state, read)
					}
				}
			}
			c.Release()
		}
	}
}

// plan is how a statement is carried out for whatever parameters.
func plan(t *testing.T, c *pgx.Conn, name, sql string) step {
	t.Helper()
	if _, err := c.Exec(t.Context(), `prepare "`+name+`" as `+sql); err != nil {
		t.Fatal(err)
	}
	var count int
	if err := c.QueryRow(t.Context(), "select cardinality(parameter_types) from pg_prepared_statements where name = $1", name).Scan(&count); err != nil {
		t.Fatal(err)
	}
	var text []byte
	if err := c.QueryRow(t.Context(), `explain (format json) execute "`+name+`"(`+strings.TrimSuffix(strings.Repeat("null, ", count), ", ")+")", pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan step }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}
