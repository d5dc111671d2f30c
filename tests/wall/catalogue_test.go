package wall

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"crier/tests/dbtest"
)

// shared maps each table whose rows several organizations may see to the condition of the tenants'
// policy, which allows only reading.
var shared = map[string]string{
	"person": "(exists ( select 1 from member m where (m.person_id = person.id)))",
}

// globals maps each table that belongs to no organization to the reason.
var globals = map[string]string{
	"session":           "a session is a person's, who chooses the organization per request; only the gate reads it",
	"device":            "a browser is a person's; only the gate reads it",
	"confirmation":      "a registration has no organization yet, and an address or a password is a person's; only the gate reads it",
	"confirmation_link": "as confirmation",
	"mfa":               "a second factor is a person's; only the gate reads it",
	"recovery_code":     "as mfa",
	"impersonation":     "a session is a person's, also when it acts as another; only the gate reads it",
	"sign_in_step":      "a sign-in is a person's; only the gate reads it",
	"sign_in_state":     "a sign-in that has no person yet; only the gate reads it",
	"identity":          "an account at a provider is a person's; only the gate reads it",
	"identity_claim":    "of somebody who has no account yet; only the gate reads it",
	"used_request":      "ids of signed requests to the instance, no tenant data",
	"oauth_client":      "a client belongs to no organization, or may be approved in others; only the gate reads it",
	"device_code":       "a log-in whose person and organization are not known yet; only the gate reads it",
	"mail":              "a mail is to an address, which may be nobody's; only the gate reads it",
	"instance_event":    "what the operator of the instance did; only the gate reads it",
	"node":              "processes, no tenant data",
	"shard":             "who schedules what, no tenant data",
	"goose_db_version":  "applied migrations",
}

// unscoped maps each unique key of a tenant table that does not begin with the organization to the
// reason.
var unscoped = map[string]string{
	"api_key_hash_key":         "found before the organization is known",
	"connect_state_hash_key":   "found before the organization is known",
	"invitation_link_hash_key": "found before the organization is known",
	"upload_address_hash_key":  "found before the organization is known",
	"media_key_key":            "found before the organization is known: the key is a file's address",
	"approval_token_hash_key":  "found before the organization is known",
	"oauth_code_hash_key":      "found before the organization is known",
	"oauth_code_request_key":   "a consent page is used once, whichever organization the person chooses",
	"oauth_token_hash_key":     "found before the organization is known",
	"oauth_grant_client_fkey":  "clients belong to no organization",
	"oauth_app_client_fkey":    "clients belong to no organization",
	"channel_id_key":           "ids are unique everywhere; channel_queue refers to it",
	"channel_queue_pkey":       "one row a channel, whose id is unique everywhere",
	"post_id_key":              "ids are unique everywhere; the scheduler works by id across organizations",
	"part_pkey":                "ids are unique everywhere; the scheduler works by id across organizations",
	"part_position_key":        "post ids are unique everywhere; the scheduler works by id across organizations",
	"attachment_pkey":          "part ids are unique everywhere; the scheduler works by id across organizations",
	"media_pkey":               "ids are unique everywhere; the scheduler works by id across organizations",
	"post_event_pkey":          "post ids are unique everywhere; a timeline is read by its posts",
	"publication_once":         "post ids are unique everywhere; the claim writes across organizations",
	"post_one_per_channel":     "channel ids are unique everywhere; the scheduler's backstop",
	"organization_pkey":        "the organization itself",
}

// narrowed maps each tenant table with a policy for narrowed transactions to what its condition
// must contain.
var narrowed = map[string]string{
	"channel": "app.customers", "customer": "narrowed_customers()",
	"post": "narrowed_channels()", "series": "narrowed_channels()", "channel_queue": "narrowed_channels()",
	"incident_event": "narrowed_channels()", "notification": "narrowed_channels()", "notification_posts": "narrowed_channels()",
	"insight": "narrowed_channels()", "connect_state": "narrowed_channels()", "pause": "narrowed_channels()",
	"part": "narrowed_post(post_id)", "publication": "narrowed_post(post_id)", "post_event": "narrowed_post(post_id)",
	"approval": "narrowed_post(post_id)", "webhook_event": "narrowed_post(post_id)", "webhook_delivery": "narrowed_post(post_id)",
	"attachment": "narrowed_part(part_id)", "insight_day": "narrowed_insight(subject)",
	"audit": "app.channels",
}

// whole maps each tenant table that a narrowed transaction sees whole to the reason.
var whole = map[string]string{
	"organization":      "shows no channel",
	"member":            "shows no channel",
	"invitation":        "shows no channel",
	"invitation_link":   "shows no channel",
	"api_key":           "shows no channel",
	"platform_app":      "shows no channel",
	"media":             "the library of the whole organization",
	"derived_picture":   "as media",
	"upload_address":    "shows no channel",
	"tag":               "labels of the whole organization",
	"idempotency":       "keys are unique in the organization; post.Create checks what it shows",
	"slot_hold":         "no two calls get the same slot; never shown",
	"republished":       "counts for the plan; never shown",
	"webhook":           "the triggers on post must see every endpoint; agents may not read endpoints",
	"webhook_old_key":   "secrets; never shown",
	"notification_read": "a time",
	"notification_seen": "ids of notifications that the person has seen",
	"oauth_app":         "shows no channel; agents may not read it",
	"oauth_grant":       "agents may not read grants",
	"oauth_grant_day":   "counts posts for the limit of a grant; never shown",
	"oauth_code":        "secrets; never shown",
	"oauth_family":      "secrets; never shown",
	"oauth_token":       "secrets; never shown",
}

const setting = `nullif(current_setting('app.org_id'::text, true), ''::text)`

// querier is a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// tenantTables maps each table whose rows belong to one organization to the column that holds the
// organization: every table with a column org_id that is neither in shared nor in globals.
func tenantTables(ctx context.Context, c querier) (map[string]string, error) {
	rows, err := textRows(ctx, c, `select c.relname::text from pg_class c join pg_attribute a on a.attrelid = c.oid
		where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace and a.attname = 'org_id'`)
	out := map[string]string{"organization": "id"}
	for _, r := range rows {
		if shared[r[0]] == "" && globals[r[0]] == "" {
			out[r[0]] = "org_id"
		}
	}
	return out, err
}

// wallFaults returns a message for each fault in the row level security of a database.
func wallFaults(ctx context.Context, c *pgx.Conn) (out []string, err error) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	tenants, err := tenantTables(ctx, c)
	if err != nil {
		return nil, err
	}
	tables, err := textRows(ctx, c, `select relname, relrowsecurity::text, relforcerowsecurity::text
		from pg_class where relkind in ('r', 'p') and relnamespace = 'public'::regnamespace order by 1`)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		column, tenant := tenants[t[0]]
		condition, some := shared[t[0]]
		_, global := globals[t[0]]
		switch {
		case tenant:
			err = policies(ctx, c, t[0], column, add)
		case some:
			err = readPolicy(ctx, c, t[0], condition, add)
		case !global:
			add("table %s is in no list", t[0])
		}
		if err != nil {
			return nil, err
		}
		if !global && (t[1] != "true" || t[2] != "true") {
			add("table %s does not force row level security", t[0])
		}
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(shared)), slices.Collect(maps.Keys(globals))) {
		if !slices.ContainsFunc(tables, func(t []string) bool { return t[0] == name }) {
			add("table %s is listed but does not exist", name)
		}
	}
	return out, keys(ctx, c, tenants, add)
}

// readPolicy reports each fault in the policy of a table in shared.
func readPolicy(ctx context.Context, c *pgx.Conn, table, condition string, add func(string, ...any)) error {
	rows, err := textRows(ctx, c, `select regexp_replace(lower(coalesce(qual, '')), '\s+', ' ', 'g'), cmd from pg_policies
		where schemaname = 'public' and tablename = $1 and roles && '{crier_tenant,public}'`, table)
	if err != nil {
		return err
	}
	if len(rows) != 1 {
		add("table %s has %d policies for tenants, not one", table, len(rows))
		return nil
	}
	if rows[0][0] != condition || rows[0][1] != "SELECT" {
		add("the tenants' policy of %s is not the wall's: %s for %s", table, rows[0][0], rows[0][1])
	}
	return nil
}

func policies(ctx context.Context, c *pgx.Conn, table, column string, add func(string, ...any)) error {
	rows, err := textRows(ctx, c, `select lower(coalesce(qual, '')), lower(coalesce(with_check, '')), cmd from pg_policies
		where schemaname = 'public' and tablename = $1 and roles && '{crier_tenant,public}' and policyname <> 'narrow'`, table)
	if err != nil {
		return err
	}
	if err := narrowPolicy(ctx, c, table, add); err != nil {
		return err
	}
	if len(rows) != 1 {
		add("table %s has %d policies for tenants, not one", table, len(rows))
		return nil
	}
	for i, what := range []string{"using", "with check"} {
		if !strings.Contains(rows[0][i], setting) || !strings.HasPrefix(rows[0][i], "("+column+" = ") || strings.Contains(rows[0][i], " or ") {
			add("the tenants' policy of %s is not the wall's (%s): %s", table, what, rows[0][i])
		}
	}
	if rows[0][2] != "ALL" {
		add("the tenants' policy of %s covers only %s", table, rows[0][2])
	}
	nulls, err := textRows(ctx, c, `select attname::text from pg_attribute where attrelid = $1::regclass and attname = $2 and not attnotnull`, table, column)
	if len(nulls) > 0 {
		add("column %s.%s may be null", table, column)
	}
	return err
}

// narrowPolicy reports each fault in the policy that hides rows of a table from narrowed
// transactions.
func narrowPolicy(ctx context.Context, c *pgx.Conn, table string, add func(string, ...any)) error {
	rows, err := textRows(ctx, c, `select regexp_replace(lower(coalesce(qual, '')), '\s+', ' ', 'g'), coalesce(with_check, ''), cmd, permissive, roles::text
		from pg_policies where schemaname = 'public' and tablename = $1 and policyname = 'narrow'`, table)
	if err != nil {
		return err
	}
	condition, some := narrowed[table]
	_, none := whole[table]
	switch {
	case some == none:
		add("table %s must be in one of the lists for narrowed transactions", table)
		return nil
	case none && len(rows) > 0:
		add("table %s has a policy for narrowed transactions, and is listed as whole", table)
		return nil
	case none:
		return nil
	case len(rows) != 1:
		add("table %s has %d policies for narrowed transactions, not one", table, len(rows))
		return nil
	}
	p := rows[0]
	if p[3] != "RESTRICTIVE" || p[4] != "{crier_tenant}" || p[1] != "" || p[2] != "ALL" && table != "audit" {
		add("the policy of %s for narrowed transactions is %v", table, p[1:])
	}
	if !strings.Contains(p[0], condition) || !strings.Contains(p[0], "current_setting('app.channels'::text, true)") ||
		table != "audit" && !strings.HasSuffix(p[0], "is not null)") {
		add("the condition of %s for narrowed transactions is %s", table, p[0])
	}
	return nil
}

// keys reports unique and foreign keys of tenant tables that do not begin with the organization.
func keys(ctx context.Context, c *pgx.Conn, tenants map[string]string, add func(string, ...any)) error {
	rows, err := textRows(ctx, c, `
		select i.indexrelid::regclass::text, t.relname::text, a.attname::text from pg_index i
		join pg_class t on t.oid = i.indrelid join pg_attribute a on a.attrelid = t.oid and a.attnum = i.indkey[0]
		where i.indisunique and t.relnamespace = 'public'::regnamespace
		union all
		select k.conname::text, t.relname::text, a.attname::text from pg_constraint k
		join pg_class t on t.oid = k.conrelid join pg_class f on f.oid = k.confrelid join pg_attribute a on a.attrelid = t.oid and a.attnum = k.conkey[1]
		where k.contype = 'f' and t.relnamespace = 'public'::regnamespace and f.relname not in ('person', 'organization', 'channel')`)
	for _, r := range rows {
		column, tenant := tenants[r[1]]
		if tenant && r[2] != column && unscoped[r[0]] == "" {
			add("key %s of %s begins with %s", r[0], r[1], r[2])
		}
	}
	return err
}

// textRows returns the rows of a query with all values as text.
func textRows(ctx context.Context, c querier, sql string, args ...any) (out [][]string, err error) {
	rows, err := c.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]string, error) {
		values, err := row.Values()
		text := make([]string, len(values))
		for i, v := range values {
			text[i] = fmt.Sprint(v)
		}
		return text, err
	})
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) }) // the database is dropped anyway
	return c
}

func found(t *testing.T, c *pgx.Conn) []string {
	t.Helper()
	out, err := wallFaults(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func do(t *testing.T, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func TestTables_HaveTenantPolicies(t *testing.T) {
	t.Parallel()
	c := connect(t, dbtest.URL(t))
	for _, fault := range found(t, c) {
		t.Errorf("got a table outside of the wall: %s", fault)
	}
	var super, bypass bool
	if err := c.QueryRow(t.Context(), `select rolsuper, rolbypassrls from pg_roles where rolname = current_user`).Scan(&super, &bypass); err != nil {
		t.Fatal(err)
	}
	if super || bypass {
		t.Error("the owner of the tables bypasses row level security, so this test could not fail")
	}
}

func TestWallFaults_ReportsEachFault(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]struct{ sql, want string }{
		"a table in no list":                   {sql: `create table stray (id uuid)`, want: "table stray is in no list"},
		"a tenant table without a policy":      {sql: `drop policy tenant on post`, want: "table post has 0 policies"},
		"a tenant table without row security":  {sql: `alter table media disable row level security`, want: "table media does not force"},
		"row security not forced on the owner": {sql: `alter table media no force row level security`, want: "table media does not force"},
		"a policy that allows everything": {
			sql:  `drop policy tenant on part; create policy tenant on part to crier_tenant using (true) with check (true)`,
			want: "policy of part is not the wall's",
		},
		"a table that narrowed transactions see whole": {
			sql: `drop policy narrow on part`, want: "table part has 0 policies for narrowed transactions",
		},
		"a policy that widens": {
			sql:  `drop policy narrow on part; create policy narrow on part to crier_tenant using (true)`,
			want: "policy of part for narrowed transactions is",
		},
		"a policy that hides nothing": {
			sql:  `drop policy narrow on part; create policy narrow on part as restrictive to crier_tenant using (true)`,
			want: "condition of part for narrowed transactions is",
		},
		"a table that nobody decided about": {
			sql:  `create table stray (org_id uuid not null)`,
			want: "table stray must be in one of the lists for narrowed transactions",
		},
		"a second policy for tenants": {sql: `create policy more on part to crier_tenant using (true)`, want: "table part has 2 policies"},
		"a policy with an alternative": {sql: `drop policy tenant on part; create policy tenant on part to crier_tenant
			using (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid) or content = '')
			with check (org_id = (select nullif(current_setting('app.org_id', true), '')::uuid))`, want: "policy of part is not the wall's (using)"},
		"a policy that shows all people": {
			sql:  `drop policy tenant on person; create policy tenant on person for select to crier_tenant using (true)`,
			want: "policy of person is not the wall's",
		},
		"a policy that lets tenants write people": {
			sql: `drop policy tenant on person; create policy tenant on person to crier_tenant using (exists (
				select 1 from member m where m.person_id = person.id))`, want: "policy of person is not the wall's",
		},
		"people without row security":    {sql: `alter table person disable row level security`, want: "table person does not force"},
		"a second policy for everybody":  {sql: `create policy more on person to public using (true)`, want: "table person has 2 policies"},
		"a listed table that is missing": {sql: `drop table used_request`, want: "table used_request is listed but does not exist"},
		"a key without the organization": {sql: `create unique index by_name on customer (name)`, want: "key by_name of customer begins with name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := connect(t, dbtest.URL(t))
			do(t, c, harm.sql)
			if got := found(t, c); !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, harm.want) }) {
				t.Errorf("got %v, want %q", got, harm.want)
			}
		})
	}
}
