package wall

import (
	"os"
	"strings"
	"testing"

	"crier/tests/dbtest"
)

// TestGrantsAreTheListedOnes makes a new grant a visible change: testdata/grants.txt is what every role may do.
func TestGrantsAreTheListedOnes(t *testing.T) {
	t.Parallel()
	c := connect(t, dbtest.URL(t))
	rows, err := strings2(t.Context(), c, `
		select grantee, case table_schema when 'public' then '' else table_schema || '.' end || table_name, lower(privilege_type), string_agg(column_name, ' ' order by column_name)
		from information_schema.column_privileges
		where table_schema in ('public', 'jobs') and grantee like 'crier\_%'
		group by 1, 2, 3 union all
		select grantee, case table_schema when 'public' then '' else table_schema || '.' end || table_name, lower(privilege_type), '' from information_schema.role_table_grants
		where table_schema in ('public', 'jobs') and grantee like 'crier\_%' and privilege_type in ('DELETE', 'TRUNCATE', 'TRIGGER')
		order by 1, 2, 3`)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range rows {
		b.WriteString(strings.TrimSpace(strings.Join(r, " ")) + "\n")
	}
	const file = "testdata/grants.txt"
	want, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	if string(want) != b.String() {
		got, err := os.CreateTemp("", "crier-grants-*.txt")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := got.WriteString(b.String()); err != nil {
			t.Fatal(err)
		}
		if err := got.Close(); err != nil {
			t.Fatal(err)
		}
		t.Errorf("the grants are not those of %s: look at the difference to %s, and copy it over if every line is meant", file, got.Name())
	}
	secrets := map[string]string{
		"crier_clock":     "content alt credential settings hash password_hash email body",
		"crier_gate":      "content alt credential settings body",
		"crier_sender":    "hash password_hash email body",
		"crier_retention": "content alt credential settings request_hash password_hash email release_id release_url",
	}
	for _, r := range rows {
		for _, column := range strings.Fields(r[3]) {
			if strings.Contains(" "+secrets[r[0]]+" ", " "+column+" ") {
				t.Errorf("%s may %s %s.%s", r[0], r[2], r[1], column)
			}
		}
	}
}

// TestRetentionChangesNothing: it locks rows before it deletes them, for which it needs the right to update them.
func TestRetentionChangesNothing(t *testing.T) {
	t.Parallel()
	rows, err := strings2(t.Context(), connect(t, dbtest.URL(t)), `
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

// TestNoFunctionActsForItsOwner: whatever runs with the rights of its owner reaches through the wall.
func TestNoFunctionActsForItsOwner(t *testing.T) {
	t.Parallel()
	rows, err := strings2(t.Context(), connect(t, dbtest.URL(t)), `
		select p.proname::text, p.proowner::regrole::text, coalesce(p.proconfig::text, '') from pg_proc p where p.prosecdef and p.pronamespace = 'public'::regnamespace`)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 0 {
		t.Errorf("%q run with the rights of their owner", rows)
	}
	may, err := strings2(t.Context(), connect(t, dbtest.URL(t)), `select r.rolname::text from pg_roles r where r.rolname like 'crier\_%' and has_schema_privilege(r.rolname, 'public', 'create')`)
	if err != nil || len(may) != 0 {
		t.Errorf("%q may make things: %v", may, err)
	}
}
