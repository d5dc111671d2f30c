package wall

import (
	"os"
	"slices"
	"strings"
	"testing"

	"crier/tests/dbtest"
)

// TestRights_EqualTheList makes a new grant or policy a visible change: testdata/rights.txt lists
// what each role may do, then the policies of each role with their conditions.
func TestRights_EqualTheList(t *testing.T) {
	t.Parallel()
	c := connect(t, dbtest.URL(t))
	grants, err := textRows(t.Context(), c, `
		select grantee, case table_schema when 'public' then '' else table_schema || '.' end || table_name, lower(privilege_type), string_agg(column_name, ' ' order by column_name)
		from information_schema.column_privileges
		where table_schema in ('public', 'jobs') and (grantee like 'crier\_%' or grantee = 'PUBLIC')
		group by 1, 2, 3 union all
		select grantee, case table_schema when 'public' then '' else table_schema || '.' end || table_name, lower(privilege_type), '' from information_schema.role_table_grants
		where table_schema in ('public', 'jobs') and (grantee like 'crier\_%' or grantee = 'PUBLIC') and privilege_type in ('DELETE', 'TRUNCATE', 'TRIGGER')
		union all
		select coalesce(r.rolname, 'PUBLIC'), 'sequence ' || c.relname, lower(a.privilege_type), ''
		from pg_class c, aclexplode(c.relacl) a left join pg_roles r on r.oid = a.grantee
		where c.relkind = 'S' and c.relnamespace in ('public'::regnamespace, 'jobs'::regnamespace) and a.grantee <> c.relowner
		order by 1, 2, 3`)
	must(t, err)
	policies, err := textRows(t.Context(), c, `
		select array_to_string(roles, ','), case schemaname when 'public' then '' else schemaname || '.' end || tablename,
		  policyname::text, lower(cmd), lower(permissive),
		  'using ' || regexp_replace(coalesce(qual, '-'), '\s+', ' ', 'g'),
		  'check ' || regexp_replace(coalesce(with_check, '-'), '\s+', ' ', 'g')
		from pg_policies where schemaname in ('public', 'jobs') order by 1, 2, 3`)
	must(t, err)
	equalList(t, slices.Concat(grants, policies), "testdata/rights.txt")
	secrets := map[string]string{
		"crier_clock":     "content alt credential settings hash password_hash email body",
		"crier_gate":      "content alt credential settings body",
		"crier_sender":    "hash password_hash email body",
		"crier_tenant":    "password_hash secret verifier instance_admin",
		"crier_retention": "content alt credential settings request_hash password_hash email release_id release_url",
	}
	for _, r := range grants {
		for _, column := range strings.Fields(r[3]) {
			if strings.Contains(" "+secrets[r[0]]+" ", " "+column+" ") {
				t.Errorf("%s may %s %s.%s", r[0], r[2], r[1], column)
			}
		}
	}
}

// equalList compares rows with the lines of a file.
func equalList(t *testing.T, rows [][]string, file string) {
	t.Helper()
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(strings.TrimSpace(strings.Join(r, " ")) + "\n")
	}
	want, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if string(want) == b.String() {
		return
	}
	got, err := os.CreateTemp("", "crier-wall-*.txt")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := got.WriteString(b.String()); err != nil {
		t.Fatal(err)
	}
	if err := got.Close(); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s is not what the database has: compare it with %s, and copy that over if every line is intended",
		file, got.Name())
}

// TestRetentionRole_CannotUpdate: the role locks rows before it deletes them, and therefore needs
// the privilege to update them.
func TestRetentionRole_CannotUpdate(t *testing.T) {
	t.Parallel()
	rows, err := textRows(t.Context(), connect(t, dbtest.URL(t)), `
		select tablename::text, cmd, coalesce(with_check, '') from pg_policies where 'crier_retention' = any (roles) and cmd not in ('SELECT', 'DELETE')`)
	if err != nil || len(rows) == 0 {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r[1] != "UPDATE" || r[2] != "false" {
			t.Errorf("a policy on %s for %s lets the retention role write: %q", r[0], r[1], r[2])
		}
	}
}

// TestFunctions_RunWithCallersRights: a function with its owner's rights would bypass row level
// security.
func TestFunctions_RunWithCallersRights(t *testing.T) {
	t.Parallel()
	rows, err := textRows(t.Context(), connect(t, dbtest.URL(t)), `
		select p.proname::text, p.proowner::regrole::text, coalesce(p.proconfig::text, '') from pg_proc p where p.prosecdef and p.pronamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 0 {
		t.Errorf("got functions %q with the rights of their owner, want none", rows)
	}
	may, err := textRows(t.Context(), connect(t, dbtest.URL(t)), `select r.rolname::text from pg_roles r where r.rolname like 'crier\_%' and has_schema_privilege(r.rolname, 'public', 'create')`)
	if err != nil || len(may) != 0 {
		t.Errorf("got roles %q that may create objects, %v, want none", may, err)
	}
}
