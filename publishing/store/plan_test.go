package store

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

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

// whole returns what a plan reads completely, or completely for one organization.
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

// paired returns the results of subqueries whose rows a nested loop compares with all rows of another one: with 512
// posts in a statement that is a quarter of a million comparisons, which take longer than everything else.
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

// few is the alias of rows of which there are only a few: the limits of platforms.
const few = "l"

// bounded are the tables that may be read completely: they have one row for each shard or process. The sender reads
// claimed posts one by one and may read none completely.
var bounded = []string{"shard", "node by node_pkey"}

// withOwner returns a new database, and a connection of its owner.
func withOwner(t *testing.T) (*pg.DB, *pgx.Conn) {
	t.Helper()
	address := dbtest.URL(t)
	owner, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = owner.Close(context.WithoutCancel(t.Context())) })
	return dbtest.OpenURL(t, address), owner
}

// The scheduler's statements are planned once for a connection, perhaps while tables are empty or nothing is due, and
// the plans must be good when that has changed. That needs the settings of the roles, without which a table may be
// scanned, and the form of the statements, without which the planner chooses between two indexes by statistics. The
// test fails without either.
func TestNoPlanReadsATableWhole(t *testing.T) {
	t.Parallel()
	db, owner := withOwner(t)
	leads := map[string]string{} // the first column of each index
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
			claim, giveBackClaims, holdRepair, setAsideChannel, sweep, sweepChannels, findExpire, expire, findReap, reap, findStuck, failStuck, findOrphans, failOrphans,
			finish, findUnknown, claimUnknown, findEndedSeries, setAside, picturePending, handleSave, markCommitting, savePartDone, unmarkCommitting, stoppedOrgs,
		}, pg.Sender: {loadWork, workMedia},
		pg.Retention: {
			findOldKeys, findOldEvents, findOldDeleted, findOldConnects, pruneKeys, pruneEvents, pruneDeleted, pruneConnects,
		},
	}
	for _, state := range []string{"new", "analyzed while empty", "full without due posts"} {
		if state == "full without due posts" {
			fill(t, owner.Config().Database)
		}
		if state != "new" {
			vacuum(t, owner)
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
					read = slices.DeleteFunc(read, func(s string) bool { return role != pg.Sender && slices.Contains(bounded, s) })
					if len(read) > 0 {
						t.Errorf("%s, planned when all is %s, reads all of %v", name, state, read)
					}
				}
			}
			c.Release()
		}
	}
}

// kinds returns the kinds of the nodes of a plan, from the top.
func (s step) kinds() []string {
	out := []string{s.Kind}
	for _, x := range s.Steps {
		out = append(out, x.kinds()...)
	}
	return out
}

// Any number of rows may have the same time, because all posts of a channel are deleted at once. A sort would read all
// of them for each batch.
func TestPlan_FindOldReadsInOrderOfIndex(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	db := dbtest.OpenURL(t, address)
	for _, state := range []string{"new", "full without due posts"} {
		if state != "new" {
			owner, err := pgx.Connect(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = owner.Close(context.WithoutCancel(t.Context())) }()
			fill(t, owner.Config().Database)
			vacuum(t, owner)
		}
		c, err := db.Pool(pg.Retention).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for index, sql := range map[string]string{
			"idempotency_created": findOldKeys, "post_event_at": findOldEvents, "post_deleted": findOldDeleted, "connect_state_expires": findOldConnects,
		} {
			way := plan(t, c.Conn(), state+" "+index, sql)
			if kinds := way.kinds(); !slices.Equal(kinds, []string{"Limit", "Index Scan"}) || way.Steps[0].Index != index || !strings.Contains(way.Steps[0].Cond, "ROW(") {
				t.Errorf("what is old, planned when all is %s, is found by %v with the condition %q, not in the order of %s", state, kinds, way.Steps[0].Cond, index)
			}
		}
		c.Release()
	}
}

// Each upload sums the sizes of the files of an organization, and must not read those of others. A look-up of some
// files must not read all files of the organization.
func TestPlan_StorageSumReadsIndexOnly(t *testing.T) {
	t.Parallel()
	db, owner := withOwner(t)
	fill(t, owner.Config().Database)
	vacuum(t, owner)
	c, err := db.Pool(pg.Tenant).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	// The plan for any organization, which the connection uses after some executions.
	if _, err := c.Exec(t.Context(), "set plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	for name, sql := range map[string]string{"MediaStored": mediaStored, "MediaInsert": mediaInsert} {
		reads := plan(t, c.Conn(), name, sql).reads("media")
		reads = slices.DeleteFunc(reads, func(s step) bool { return s.Index == "media_content" }) // a file with the hash
		if len(reads) != 1 || reads[0].Kind != "Index Only Scan" || reads[0].Index != "media_blob" || !strings.Contains(reads[0].Cond, "org_id = $1") {
			t.Errorf("%s reads %+v, want an index only scan of media_blob", name, reads)
		}
	}
	if indexes := plan(t, c.Conn(), "MediaFind", mediaFind).indexes(); slices.Contains(indexes, "media_org") || slices.Contains(indexes, "media_blob") || len(indexes) != 2 {
		t.Errorf("MediaFind reads by %v, want the indexes of the id and of the key", indexes)
	}
}

// An organization is purged beside all others, in many statements, and none may read what others have. What is marked as
// deleted has no index: it is read once in each purge.
func TestPlan_PurgeReadsOneOrganization(t *testing.T) {
	t.Parallel()
	db, owner := withOwner(t)
	fill(t, owner.Config().Database)
	vacuum(t, owner)
	c, err := db.Pool(pg.Tenant).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release()
	if _, err := c.Exec(t.Context(), "set plan_cache_mode = force_generic_plan"); err != nil {
		t.Fatal(err)
	}
	of := regexp.MustCompile(`\b(org_id|id|hash|media_id|part_id|after_post|group_id) `)
	for _, sql := range []string{
		findOwnedPosts, findOwnedChannels, purgePosts, purgeChannels, findOwnedPictures, findOwnedMedia, purgePictures,
		purgeMedia, ownedLeft,
	} {
		name, _, _ := strings.Cut(strings.TrimPrefix(sql, "-- "), "\n")
		way := plan(t, c.Conn(), name, sql)
		for _, table := range []string{"post", "attachment", "media", "channel"} {
			for _, s := range way.reads(table) {
				if s.Kind != "Bitmap Heap Scan" && !of.MatchString(s.Cond) {
					t.Errorf("%s reads %s by %s %s with %q, want an id or the organization", name, table, s.Kind, s.Index, s.Cond)
				}
			}
		}
	}
	if indexes := plan(t, c.Conn(), "media of an organization", findOwnedMedia).indexes(); !slices.Contains(indexes, "media_blob") {
		t.Errorf("FindOwnedMedia reads by %v, want media_blob", indexes)
	}
}

// indexes returns the indexes that a plan uses.
func (s step) indexes() (out []string) {
	if s.Index != "" {
		out = append(out, s.Index)
	}
	for _, x := range s.Steps {
		out = append(out, x.indexes()...)
	}
	return out
}

// reads returns the scans of a table.
func (s step) reads(table string) (out []step) {
	if s.Table == table && strings.HasSuffix(s.Kind, "Scan") {
		out = append(out, s)
	}
	for _, x := range s.Steps {
		out = append(out, x.reads(table)...)
	}
	return out
}

// plan returns the generic plan of a statement.
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
	parameters := strings.TrimSuffix(strings.Repeat("null, ", count), ", ")
	explain := `explain (format json) execute "` + name + `"(` + parameters + ")"
	if err := c.QueryRow(t.Context(), explain, pgx.QueryExecModeSimpleProtocol).Scan(&text); err != nil {
		t.Fatal(err)
	}
	var plans []struct{ Plan step }
	if err := json.Unmarshal(text, &plans); err != nil {
		t.Fatal(err)
	}
	return plans[0].Plan
}

// vacuum leaves all rows marked as visible to all, which decides the cost of an index only scan, and the statistics right.
// One vacuum is not enough while a session of another test logs in: it belongs to no database yet, and holds back the
// marks in all. Postgres ends such a session after a minute.
func vacuum(t *testing.T, owner *pgx.Conn) {
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

// fill inserts 30,000 published posts of 3,000 channels of 300 organizations, with their parts, media and publications.
func fill(t *testing.T, database string) {
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
