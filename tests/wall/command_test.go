package wall

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/apps/edge"
	"crier/platform/clock"
	"crier/tests/call"
	"crier/tests/dbtest"
)

// loss is a permission that a caller loses between the guard of a request and the transaction of
// the command.
type loss struct {
	name string
	// lock takes the lock that the removing statement holds; a confirmed command waits for this
	// lock. $1 is the first organization, $2 the caller's person, $3 the session or the key.
	lock string
	// take removes the permission, and restore gives it back.
	take, restore string
	status        int
}

const authority = `select pg_advisory_xact_lock(hashtextextended('crier.authority ' || $1::uuid, 0)), $2::uuid, $3::uuid`

// losses are keyed by the kind of credential.
var losses = map[string][]loss{
	"session": {
		{
			name: "removed", lock: authority, status: 403,
			take:    `with x as (select $1::uuid, $3::uuid) delete from member where org_id = $1 and person_id = $2`,
			restore: `with x as (select $3::uuid) insert into member (org_id, person_id, role) values ($1, $2, $4)`,
		},
		{
			name: "demoted", lock: authority, status: 403,
			take:    `with x as (select $3::uuid) update member set role = 'USER' where org_id = $1 and person_id = $2`,
			restore: `with x as (select $3::uuid) update member set role = $4 where org_id = $1 and person_id = $2`,
		},
		{
			name: "suspended", lock: authority, status: 403,
			take:    `with x as (select $2::uuid, $3::uuid) update organization set suspended_at = now() where id = $1`,
			restore: `with x as (select $2::uuid, $3::uuid, $4::text) update organization set suspended_at = null where id = $1`,
		},
		{
			name: "session ended", lock: `select 1, $1::uuid, $2::uuid from session where id = $3 for update`, status: 401,
			take:    `with x as (select $1::uuid) update session set expires_at = '2000-01-01' where id = $3 and person_id = $2`,
			restore: `with x as (select $1::uuid, $4::text) update session set expires_at = now() + interval '1 day' where id = $3 and person_id = $2`,
		},
		{
			name: "organization deleted", lock: authority, status: 403,
			take:    `with x as (select $2::uuid, $3::uuid) update organization set deleted_at = now() where id = $1`,
			restore: `with x as (select $2::uuid, $3::uuid, $4::text) update organization set deleted_at = null where id = $1`,
		},
	},
	"key": {
		{
			name: "key revoked", lock: authority, status: 401,
			take:    `with x as (select $2::uuid) update api_key set expires_at = '2000-01-01' where org_id = $1 and id = $3`,
			restore: `with x as (select $2::uuid, $4::text) update api_key set expires_at = null where org_id = $1 and id = $3`,
		},
		{
			name: "suspended", lock: authority, status: 403,
			take:    `with x as (select $2::uuid, $3::uuid) update organization set suspended_at = now() where id = $1`,
			restore: `with x as (select $2::uuid, $3::uuid, $4::text) update organization set suspended_at = null where id = $1`,
		},
	},
}

// unconfirmed maps each command of members and keys whose transaction does not begin with a
// confirmation to the reason.
var unconfirmed = map[string]string{
	"POST /integrations/function":               "it asks the platform and stores nothing",
	"POST /integrations/provider/{id}/connect":  "it ends a connect, whose state is looked up with the access of who began it",
	"POST /posts/check":                         "it stores nothing",
	"POST /user/t":                              "it counts a metric",
	"POST /webhooks/send":                       "it calls a URL and stores nothing",
	"DELETE /public/v1/posts/group/{group}":     "a key writes posts, see inOrgAs of publishing",
	"DELETE /public/v1/posts/{id}":              "as above",
	"POST /public/v1/posts":                     "as above",
	"PUT /public/v1/posts/{id}/settings":        "as above",
	"PUT /public/v1/posts/{id}/status":          "as above",
	"POST /public/v1/posts/check":               "it stores nothing",
	"POST /public/v1/integration-trigger/{id}":  "it asks the platform and stores nothing",
	"POST /public/v1/upload":                    "it stores a file that nothing uses",
	"POST /public/v1/upload-from-url":           "as above",
	"POST /public/v1/connectors/{id}/authorize": "it begins a connect, which ends with the key",
}

// commandBodies are request bodies that let a command reach its transaction, for routes whose
// entries in bodies do not.
var commandBodies = map[string]string{
	"POST /settings/delete-organization":          `{"confirm":"DELETE","password":"` + goodPassword + `"}`,
	"POST /public/v1/posts/{id}/request-approval": `{}`,
	"POST /webhooks/{id}/rotate-secret":           `{}`,
	"POST /public/v1/webhooks/{id}/rotate-secret": `{}`,
}

// commands returns the commands of members and keys: the unsafe routes that change an
// organization's data.
func commands() (out []edge.Route) {
	for _, r := range edge.Routes() {
		credential := slices.Contains([]edge.Credential{"session", "joined", "admin", "owner", "api key"}, r.Credential)
		if credential && r.State == edge.Built && r.Method != http.MethodGet && !strings.HasPrefix(r.Path, "/api/") {
			out = append(out, r)
		}
	}
	return out
}

// commander is the caller of a command.
type commander struct {
	headers []string
	// args are the arguments of a loss's statements.
	args []any
	role string
	kind string
}

func (w *fixture) commander(t *testing.T, r edge.Route) commander {
	t.Helper()
	if r.Credential == "api key" {
		a, err := w.app.Accounts.Authenticate(t.Context(), w.keys["key"])
		must(t, err)
		return commander{headers: w.headers("key"), args: []any{w.first, a.Person, a.Key}, kind: "key"}
	}
	who := caller("admin")
	if r.Credential == "owner" {
		who = "owner"
	}
	as := w.accounts[who].as
	return commander{
		headers: w.headers(who), args: []any{w.first, as.Person, as.Session}, kind: "session", role: string(as.Role),
	}
}

// lose sends a command and removes a permission after the guard has let the command pass. It
// returns the response and what the command changed. waited is false if the command ended without
// checking the permission.
func (w *fixture) lose(t *testing.T, held *pgx.Conn, send func() (call.Answer, error), c commander, l loss) (
	a call.Answer, changed string, waited bool) {
	t.Helper()
	_, err := held.Exec(t.Context(), "begin")
	must(t, err)
	_, err = held.Exec(t.Context(), l.lock, c.args...)
	must(t, err)
	type result struct {
		call.Answer
		err error
	}
	answered := make(chan result, 1)
	go func() {
		a, err := send()
		answered <- result{Answer: a, err: err}
	}()
	var got result
	ended := false
	for !ended && !w.waitsFor(t, held) {
		select {
		case got = <-answered:
			ended = true
		default:
			must(t, clock.Sleep(t.Context(), time.Millisecond))
		}
	}
	_, err = held.Exec(t.Context(), l.take, c.args...)
	must(t, err)
	before := w.rowsOf(t, held)
	_, err = held.Exec(t.Context(), "commit")
	must(t, err)
	if !ended {
		got = <-answered
	}
	must(t, got.err)
	after := w.rows(t)
	if after != before {
		changed = difference(before, after)
	}
	w.exec(t, l.restore, append(slices.Clone(c.args), c.role)...)
	return got.Answer, changed, !ended
}

// waitsFor reports whether another connection waits for a lock that held holds.
func (w *fixture) waitsFor(t *testing.T, held *pgx.Conn) (waits bool) {
	t.Helper()
	must(t, w.super.QueryRow(t.Context(), `select exists (select from pg_stat_activity
		where datname = current_database() and $1 = any (pg_blocking_pids(pid)))`, held.PgConn().PID()).Scan(&waits))
	return waits
}

// refusal returns what is wrong with the response to a command whose caller has lost a permission.
func refusal(r edge.Route, l loss, a call.Answer, changed string, waited bool) (wrong []string) {
	if !waited {
		wrong = append(wrong, fmt.Sprintf("%s, %s: its transaction does not begin with a confirmation: %v", r, l.name, a))
	}
	if a.Status != l.status {
		wrong = append(wrong, fmt.Sprintf("%s, %s: got %v, want %d", r, l.name, a, l.status))
	}
	if changed != "" {
		wrong = append(wrong, fmt.Sprintf("%s, %s: it has changed %s", r, l.name, changed))
	}
	return wrong
}

// commandOf returns a function that sends the command of a route.
func (w *fixture) commandOf(t *testing.T, table permissionTable, r edge.Route, c commander) func() (call.Answer, error) {
	t.Helper()
	w.calls++
	path, body := w.path(table, r), w.body(table, r, "admin")
	if text, ok := commandBodies[r.String()]; ok {
		body = text
	}
	ctx := context.WithoutCancel(t.Context())
	return func() (call.Answer, error) {
		return call.Do(ctx, w.http, r.Method, baseURL+path, body, c.headers...)
	}
}

// awaitSync waits for the job that compares the suspensions of organizations at the start. It could
// suspend an organization that the test has suspended for a moment, and the change would be
// attributed to the command. The next run is ten minutes later.
func awaitSync(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for ended := false; !ended; {
		must(t, conn.QueryRow(t.Context(),
			`select exists (select from jobs.river_job where kind = 'sync-publishing' and state = 'completed')`).Scan(&ended))
	}
}

// TestCommands_AreConfirmedInTheirTransaction sends every command of members and keys, and removes
// the permission between the guard and the transaction. The command must write nothing.
func TestCommands_AreConfirmedInTheirTransaction(t *testing.T) {
	t.Parallel()
	table, w := readPermissions(t), newWorld(t)
	held := dbtest.SuperIn(t, w.database)
	awaitSync(t, held)
	count := 0
	for _, r := range commands() {
		if unconfirmed[r.String()] != "" {
			continue
		}
		c := w.commander(t, r)
		for _, l := range losses[c.kind] {
			a, changed, waited := w.lose(t, held, w.commandOf(t, table, r, c), c, l)
			for _, wrong := range refusal(r, l, a, changed, waited) {
				t.Error(wrong)
			}
			count++
		}
	}
	for name := range unconfirmed {
		if !slices.ContainsFunc(commands(), func(r edge.Route) bool { return r.String() == name }) {
			t.Errorf("%s has a reason and is no command", name)
		}
	}
	t.Logf("%d commands, %d losses", len(commands())-len(unconfirmed), count)
}

// TestCommands_MissingConfirmationIsReported sends a command that confirms nothing.
func TestCommands_MissingConfirmationIsReported(t *testing.T) {
	t.Parallel()
	table, w := readPermissions(t), newWorld(t)
	held := dbtest.SuperIn(t, w.database)
	r := routeOf(t, "PUT /public/v1/posts/{id}/status")
	c := w.commander(t, r)
	for _, l := range losses["key"] {
		a, changed, waited := w.lose(t, held, w.commandOf(t, table, r, c), c, l)
		wrong := refusal(r, l, a, changed, waited)
		wantSurprise(t, wrong, r.String()+", "+l.name+": its transaction does not begin with a confirmation")
		wantSurprise(t, wrong, r.String()+", "+l.name+": got 2")
	}
}
