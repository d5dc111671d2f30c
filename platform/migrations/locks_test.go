package migrations_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"crier/platform/migrations"
	"crier/tests/dbtest"
)

// hotTables are the tables that every publication uses. A long lock on one of them stops the
// service.
var hotTables = []string{"channel_queue", "post", "publication"}

// someRows inserts an organization with a channel, its queue, and posts with a publication each.
const someRows = `
begin;
set local role crier_tenant;
set local app.org_id = '00000000-0000-0000-0000-000000000001';
insert into organization (id, name) select current_setting('app.org_id')::uuid, 'one';
insert into channel (org_id, id, connector, name, account_id, grade)
  select id, id, 'sandbox', 'c', 'a', 'A' from organization;
insert into channel_queue (channel_id, org_id, shard, connector) select id, org_id, 1, connector from channel;
insert into post (org_id, id, group_id, channel_id, shard, state, due, publish_date)
  select org_id, gen_random_uuid(), gen_random_uuid(), id, 1, 'QUEUE', now(), now()
  from channel, generate_series(1, 100);
insert into publication (org_id, id, post_id, group_id, part_id, position, created_at)
  select org_id, id, id, group_id, id, 0, due from post;
commit`

// observation records what a migration did to the hot tables. A trigger runs it at the end of the
// migration's transaction, when goose inserts the version: the locks held, the files of the tables
// and their indexes, and the numbers of scans and of changed rows.
const observation = `
create table observed (version bigint, name text, file oid, indexes jsonb, locks text[], reads bigint, writes bigint);
create function observe(version bigint) returns void language sql as $$
  insert into observed select $1, c.relname, pg_relation_filenode(c.oid),
    (select jsonb_object_agg(i.indexrelid::regclass, pg_relation_filenode(i.indexrelid)::text)
      from pg_index i where i.indrelid = c.oid),
    array(select l.mode from pg_locks l where l.pid = pg_backend_pid() and l.relation = c.oid and l.granted),
    coalesce(s.seq_scan + s.idx_scan, 0), coalesce(s.n_tup_ins + s.n_tup_upd + s.n_tup_del, 0)
  from pg_class c left join pg_stat_xact_user_tables s on s.relid = c.oid
  where c.oid in ('channel_queue'::regclass, 'post'::regclass, 'publication'::regclass)
$$;
create function observe() returns trigger language plpgsql as $$
  begin perform observe(new.version_id); return null; end
$$;
create trigger observe after insert on goose_db_version for each row execute function observe();
select observe(max(version_id)) from goose_db_version`

// seen is a row of the table observed.
type seen struct {
	Version int64
	Name    string
	File    uint32
	Indexes map[string]string
	Locks   []string
	Reads   int64
	Writes  int64
}

// strong are the locks that statements of a running service wait for: all above SHARE UPDATE
// EXCLUSIVE.
var strong = []string{"ShareLock", "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock"}

// refusals applies the missing migrations to a database, one at a time. It returns a message for
// each one that reads, writes, rewrites or indexes a hot table while it holds a strong lock on one.
func refusals(t *testing.T, url string, all map[string]string) (out []string) {
	t.Helper()
	owner := session(t, url)
	exec(t, owner, someRows)
	exec(t, owner, observation)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		before := lastSeen(t, owner)
		migrate(t, migrations.Config{URL: url, Files: upTo(all, name)})
		after := lastSeen(t, owner)
		if after["post"].Version == before["post"].Version {
			continue // the database already had it
		}
		for _, what := range violations(before, after) {
			out = append(out, name+" "+what)
		}
	}
	return out
}

// violations returns a message for each hot table that a migration misused between two
// observations.
func violations(before, after map[string]seen) (out []string) {
	var locked []string
	for _, name := range hotTables {
		for _, lock := range after[name].Locks {
			if slices.Contains(strong, lock) {
				locked = append(locked, name+" in "+lock)
			}
		}
	}
	if len(locked) == 0 {
		return nil
	}
	for _, name := range hotTables {
		was, is := before[name], after[name]
		var done []string
		if was.File != is.File {
			done = append(done, "rewrites")
		}
		for index, file := range is.Indexes {
			if was.Indexes[index] != file && was.File == is.File {
				done = append(done, "indexes")
				break
			}
		}
		if is.Reads > 0 {
			done = append(done, "reads")
		}
		if is.Writes > 0 {
			done = append(done, "writes")
		}
		if len(done) > 0 {
			out = append(out, fmt.Sprintf("%s %s while it holds %s",
				strings.Join(done, " and "), name, strings.Join(locked, ", ")))
		}
	}
	return out
}

func lastSeen(t *testing.T, c *pgx.Conn) map[string]seen {
	t.Helper()
	rows, err := c.Query(t.Context(), "select * from observed where version = (select max(version) from observed)")
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[seen])
	if err != nil || len(all) != len(hotTables) {
		t.Fatalf("got %d observations, %v, want %d", len(all), err, len(hotTables))
	}
	out := map[string]seen{}
	for _, s := range all {
		out[s.Name] = s
	}
	return out
}

// readMigrations returns the contents of the migrations in a folder by name.
func readMigrations(t *testing.T, folder fs.FS) map[string]string {
	t.Helper()
	names, err := fs.Glob(folder, "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal("there are no migrations", err)
	}
	out := map[string]string{}
	for _, name := range names {
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(text)
	}
	return out
}

// upTo returns the migrations up to and including last.
func upTo(all map[string]string, last string) fs.FS {
	out := maps.Clone(all)
	maps.DeleteFunc(out, func(name, _ string) bool { return name > last })
	return files(out)
}

func TestLocks_MigrationsDoNotBlockService(t *testing.T) {
	t.Parallel()
	all, url := readMigrations(t, os.DirFS(".")), dbtest.Blank(t)
	migrate(t, migrations.Config{URL: url, Files: upTo(all, "0001_baseline.sql")})
	for _, refusal := range refusals(t, url, all) {
		t.Errorf("got the refusal %q, want none", refusal)
	}
}

// sample is a migration and a part of the expected refusal.
type sample struct {
	sql          string // one transaction
	concurrently string // a later step, outside of a transaction
	after        string // another transaction
	want         string // "" if it passes
}

func checkSamples(t *testing.T, samples map[string]sample) {
	t.Helper()
	for name, c := range samples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			members := readMigrations(t, os.DirFS("."))
			maps.Copy(members, map[string]string{
				"9001_sample.sql": c.sql, "9002_sample.concurrently.sql": c.concurrently, "9003_sample.sql": c.after,
			})
			maps.DeleteFunc(members, func(_, sql string) bool { return sql == "" })
			got := refusals(t, dbtest.URL(t), members)
			if c.want == "" && len(got) > 0 || c.want != "" && !strings.Contains(strings.Join(got, "; "), c.want) {
				t.Errorf("got refusals %q, want %q", got, c.want)
			}
		})
	}
}

func TestLocks_RefusesMigrationsThatBlock(t *testing.T) {
	t.Parallel()
	checkSamples(t, map[string]sample{
		"another type of a column is refused": {
			sql:  "alter table post alter column looks type bigint",
			want: "rewrites and reads post",
		},
		"a column with a volatile default is refused": {
			sql:  "alter table post add column tag uuid default gen_random_uuid()",
			want: "rewrites and reads post",
		},
		"an index in a transaction is refused": {
			sql:  "create index post_by_method on post (creation_method)",
			want: "indexes and reads post while it holds post in ShareLock",
		},
		"an index that is built again is refused": {sql: "reindex index post_due", want: "indexes and reads post"},
		"a unique constraint is refused": {
			sql:  "alter table publication add constraint one_id unique (id)",
			want: "indexes and reads publication",
		},
		"not null that reads is refused": {sql: "alter table post alter column due set not null", want: "reads post"},
		"a check that reads is refused": {
			sql:  "alter table channel_queue add constraint named check (connector <> '')",
			want: "reads channel_queue",
		},
		"a foreign key that reads is refused": {
			sql:  "alter table publication add constraint org foreign key (org_id) references organization (id)",
			want: "reads publication while it holds publication in ShareRowExclusiveLock",
		},
		"validating in the step that locks is refused": {
			sql: `alter table post add constraint fair check (attempt >= 0) not valid;
				alter table post validate constraint fair`,
			want: "reads post",
		},
		"an update in the step that locks is refused": {
			sql: `alter table post no force row level security; update post set delay_minutes = 1;
				alter table post force row level security`,
			want: "reads and writes post",
		},
		"reading one table while another is locked is refused": {
			sql: `alter table post add column tag text;
				alter table publication add constraint sane check (position >= 0)`,
			want: "reads publication while it holds post in AccessExclusiveLock",
		},
	})
}

func TestLocks_PassesMigrationsThatDoNotBlock(t *testing.T) {
	t.Parallel()
	checkSamples(t, map[string]sample{
		"a column with a constant default passes": {sql: "alter table post add column tag text not null default 'none'"},
		"dropping a column passes":                {sql: "alter table publication drop column marked_at"},
		"constraints that are not validated pass": {
			sql: `alter table post add constraint fair check (attempt >= 0) not valid;
				alter table publication add constraint org foreign key (org_id) references organization (id) not valid`,
		},
		"validating in a step of its own passes": {
			sql:          "alter table post add constraint fair check (attempt >= 0) not valid",
			concurrently: "alter table post validate constraint fair",
		},
		"not null after a validated check passes": {
			sql:          "alter table post add constraint due_known check (due is not null) not valid",
			concurrently: "alter table post validate constraint due_known",
			after:        "alter table post alter column due set not null; alter table post drop constraint due_known",
		},
		"an index outside of a transaction passes": {
			concurrently: "create index concurrently if not exists post_by_method on post (creation_method)",
		},
		"dropping an index outside of a transaction passes": {
			concurrently: "drop index concurrently if exists post_waiting",
		},
		"a policy and a grant pass": {
			sql: "create policy gate on post for select to crier_gate using (false); grant select (id) on post to crier_gate",
		},
		"a new table with an index passes": {
			sql: `create table note (org_id uuid, post_id uuid, foreign key (org_id, post_id) references post (org_id, id));
				create index note_post on note (post_id)`,
		},
	})
}
