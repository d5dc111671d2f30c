package wall

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"mime/multipart"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/pquerna/otp/totp"

	"crier/apps/boot"
	"crier/oidc"
	"crier/platform/env"
	"crier/platform/id"
	"crier/platform/secret"
	"crier/publishing"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/call"
	"crier/tests/dbtest"
	"crier/tests/sandboxtest"
)

const (
	baseURL       = "http://crier.test" // no such host: the client dials the service
	goodPassword  = "correct horse battery"
	monitorToken  = "0123456789abcdef0123456789abcdef"
	ownWords      = "words of the first organization"
	firstName     = "Firstling Works"
	customerName  = "Firstling Customer"
	invitedPerson = "invited@first.test"
)

// account is a person who has signed in.
type account struct {
	email, session string
	// as is the principal of the session.
	as tenancy.Principal
}

// fixture is a running service with a first organization and every caller. The ids in all calls
// belong to the first organization. Its callers are user, admin and owner, its key, and acting: an
// instance administrator who impersonates the owner. The others are
//
//	other      the owner of another organization
//	intruder   the same person, who names the first organization in showorg
//	removed    a former member of the first organization, and of no other
//	suspended  the owner of a suspended organization
//	unenrolled a member without a second factor, in an organization that requires one
//	instance   an instance administrator, who also owns an organization
//
// and the keys otherkey and suspendedkey of those organizations, and revokedkey, a former key of
// the first organization. agent and reader are access tokens that the user has granted: one that
// may write, and one that may only read.
type fixture struct {
	app      *boot.App
	http     *http.Client
	super    *pgx.Conn
	database string
	sandbox  string
	calls    int
	accounts map[caller]*account
	keys     map[caller]string
	expired  string // an expired session
	first    tenancy.OrgID
	people   []tenancy.PersonID // of the first organization
	// ids has the values of path parameters, by parameter or by the beginning of the path, and the
	// values in bodies, by placeholder.
	ids map[string]string
	// needles are texts of the first organization that nobody else may read.
	needles []string
}

// newWorld starts a service and creates every caller.
func newWorld(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{accounts: map[caller]*account{}, keys: map[caller]string{}, ids: map[string]string{}}
	w.start(t)
	w.addFirst(t)
	w.addOthers(t)
	w.addContent(t)
	w.addAgents(t)
	return w
}

func (w *fixture) start(t *testing.T) {
	t.Helper()
	sealing, err := secret.GenerateKey()
	must(t, err)
	database := dbtest.URL(t)
	w.sandbox = sandboxtest.Start(t)
	values := map[string]string{
		"DATABASE_URL": database, "SANDBOX_URL": w.sandbox, "ENCRYPTION_KEYS": sealing, "CRIER_HOME": t.TempDir(),
		"PORT": "0", "BASE_URL": baseURL, "API_LIMIT": "1000000", "APP_LIMIT": "1000000", "DRAIN_DELAY": "0s",
		"DRAIN_TIMEOUT": "2s", "REGISTRATION": "open", "TRUSTED_PROXIES": "127.0.0.1", "MONITOR_TOKEN": monitorToken,
		"ENTERPRISE_SECRET": monitorToken, "GITHUB_CLIENT_ID": "id", "GITHUB_CLIENT_SECRET": "secret",
		"SANDBOX_OAUTH_CLIENT_ID": "id", "SANDBOX_OAUTH_CLIENT_SECRET": "secret",
	}
	var cfg boot.Config
	must(t, env.Load(t.Context(), func(name string) (string, bool) { v, ok := values[name]; return v, ok }, &cfg))
	w.app = boot.New(cfg, slog.New(slog.DiscardHandler))
	must(t, w.app.Start(t.Context()))
	t.Cleanup(func() {
		if err := w.app.Close(); err != nil {
			t.Errorf("the service does not stop cleanly: %v", err)
		}
	})
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, w.app.Addr())
	}}
	t.Cleanup(transport.CloseIdleConnections)
	w.http = &http.Client{
		Transport: transport, Timeout: time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	w.database = database
	w.super = dbtest.SuperIn(t, database)
}

// source returns a client in a separate network, so that no call is delayed by the failures of
// another client.
func (w *fixture) source() tenancy.Source {
	w.calls++
	address := w.address()
	return tenancy.NewSource(address, address, "Wall", "")
}

func (w *fixture) address() string { return fmt.Sprintf("2001:db8:%x::1", w.calls) }

// enter signs the account in and finds its principal in an organization; "" is the account's first
// one.
func (w *fixture) enter(t *testing.T, a *account, org string) {
	t.Helper()
	in, err := w.app.Accounts.Login(t.Context(), a.email, goodPassword, w.source())
	must(t, err)
	if in.Step == tenancy.StepDone {
		w.use(t, a, in.Session, org)
	}
}

func (w *fixture) use(t *testing.T, a *account, session, org string) {
	t.Helper()
	p, err := w.app.Accounts.Session(t.Context(), session, org, "", w.source())
	must(t, err)
	a.session, a.as = session, p
}

// owner creates the owner of a new organization.
func (w *fixture) owner(t *testing.T, email, organization string, instance bool) *account {
	t.Helper()
	_, err := w.app.Accounts.CreateOwner(t.Context(), registration.NewOwner{
		Email: email, Name: "Name of " + email, Password: goodPassword, Organization: organization, Instance: instance,
	})
	must(t, err)
	a := &account{email: email}
	w.enter(t, a, "")
	return a
}

// member registers a person with an invitation of the owner.
func (w *fixture) member(t *testing.T, owner *account, email string, role tenancy.Role) *account {
	t.Helper()
	_, link, err := w.app.Accounts.Invite(t.Context(), owner.as, tenancy.NewInvitation{Role: role})
	must(t, err)
	in, err := w.app.Accounts.Register(t.Context(), tenancy.Registration{
		Email: email, Name: "Name of " + email, Password: goodPassword, Invitation: link, From: w.source(),
	})
	must(t, err)
	a := &account{email: email}
	w.use(t, a, in.Session, in.Org.String())
	return a
}

// key creates a key and returns the full key and its id.
func (w *fixture) key(t *testing.T, owner *account, name string) (full, id string) {
	t.Helper()
	full, k, err := w.app.Accounts.CreateKey(t.Context(), owner.as, tenancy.NewKey{Name: name})
	must(t, err)
	return full, k.ID.String()
}

// addFirst creates the people and keys of the first organization.
func (w *fixture) addFirst(t *testing.T) {
	t.Helper()
	accounts := w.app.Accounts
	owner := w.owner(t, "owner@first.test", firstName, false)
	w.first = owner.as.Org
	target := w.member(t, owner, "target@first.test", tenancy.RoleUser)
	removed := w.member(t, owner, "removed@former.test", tenancy.RoleUser)
	w.accounts["owner"], w.accounts["removed"] = owner, removed
	w.accounts["user"] = w.member(t, owner, "user@first.test", tenancy.RoleUser)
	w.accounts["admin"] = w.member(t, owner, "admin@first.test", tenancy.RoleAdmin)
	_, err := accounts.RemoveMember(t.Context(), owner.as, removed.as.Person.String(), false)
	must(t, err)
	for _, a := range []*account{owner, target, w.accounts["user"], w.accounts["admin"]} {
		w.people = append(w.people, a.as.Person)
	}
	in, err := accounts.Login(t.Context(), "user@first.test", goodPassword, w.source())
	must(t, err)
	w.expired = in.Session
	w.exec(t, `update session set expires_at = now() - interval '1 second' where hash = $1`, secret.HashToken(in.Session))
	var ids [4]string
	w.keys["key"], ids[0] = w.key(t, owner, "firstling key")
	_, w.ids["/settings/api-keys/"] = w.key(t, owner, "firstling spare key")
	_, w.ids["$ROTATED"] = w.key(t, owner, "firstling rotated key")
	w.keys["revokedkey"], ids[1] = w.key(t, owner, "firstling revoked key")
	must(t, accounts.DeleteKey(t.Context(), owner.as, ids[1]))
	invitation, _, err := accounts.Invite(t.Context(), owner.as, tenancy.NewInvitation{Email: invitedPerson, Role: tenancy.RoleUser})
	must(t, err)
	w.ids["/settings/invitations/"], w.ids["/settings/team/"] = invitation.ID.String(), target.as.Person.String()
	w.ids["/user/identities/"] = id.New[tenancy.IdentityTag]().String()
	w.exec(t, "insert into identity (id, issuer, subject, person_id, provider) values ($1, 'https://idp.test', 'owner', $2, 'GENERIC')",
		w.ids["/user/identities/"], owner.as.Person)
	w.ids["$ORG"] = w.first.String()
	w.ids["$MEMBERSHIP"] = tenancy.FormatMembership(w.first, owner.as.Person)
	w.needles = append(w.needles, firstName, customerName, ownWords, "firstling", "@first.test", ids[0],
		w.keys["key"][:len(tenancy.KeyPrefix)+4])
}

// addAgents lets three clients act for the user. The third is revoked by the calls.
func (w *fixture) addAgents(t *testing.T) {
	t.Helper()
	both := oidc.Scopes{oidc.ScopeRead, oidc.ScopeWrite}
	w.keys["agent"], _ = w.agent(t, w.accounts["user"], "agent", both)
	w.keys["reader"], _ = w.agent(t, w.accounts["user"], "reader", both[:1])
	_, w.ids["/user/approved-apps/"] = w.agent(t, w.accounts["user"], "revoked by the user", both)
	_, w.ids["/settings/agents/"] = w.agent(t, w.accounts["user"], "revoked by administrators", both)
}

// agent lets a new client act for a person. It returns the access token and the id of the grant.
func (w *fixture) agent(t *testing.T, person *account, name string, scopes oidc.Scopes) (token, grant string) {
	t.Helper()
	const callback, verifier = "https://agent.test/callback", "a-verifier-of-at-least-43-characters-as-rfc-7636-asks"
	sum := sha256.Sum256([]byte(verifier))
	c, err := w.app.OAuth.Clients.Register(t.Context(), oidc.Metadata{
		Name: name, RedirectURIs: []string{callback}, Auth: string(oidc.AuthNone),
	}, w.source())
	must(t, err)
	code, err := w.app.OAuth.Grants.Approve(t.Context(), person.as, oidc.Consent{
		Request: oidc.AuthorizationRequest{
			Client: c.Client, RedirectURI: callback, RedirectSent: true, Scopes: scopes,
			Challenge: base64.RawURLEncoding.EncodeToString(sum[:]),
		},
		Token: name, Scopes: scopes,
	})
	must(t, err)
	tokens, err := w.app.OAuth.Grants.Exchange(t.Context(), c.Client, oidc.CodeRequest{
		Code: code, RedirectURI: callback, Verifier: verifier,
	})
	must(t, err)
	granted, err := w.app.OAuth.Grants.List(t.Context(), person.as)
	must(t, err)
	return tokens.Access, granted[0].ID.String()
}

// addOthers creates all other callers.
func (w *fixture) addOthers(t *testing.T) {
	t.Helper()
	accounts := w.app.Accounts
	other := w.owner(t, "owner@other.test", "Other Works", false)
	suspended := w.owner(t, "owner@suspended.test", "Suspended Works", false)
	careful := w.owner(t, "owner@careful.test", "Careful Works", false)
	instance := w.owner(t, "instance@crier.test", "Operators", true)
	w.accounts["other"], w.accounts["intruder"], w.accounts["suspended"] = other, other, suspended
	w.accounts["instance"], w.accounts["acting"] = instance, instance
	w.keys["otherkey"], _ = w.key(t, other, "other key")
	w.keys["suspendedkey"], _ = w.key(t, suspended, "suspended key")
	must(t, accounts.Suspend(t.Context(), suspended.as.Org.String(), true))

	w.accounts["unenrolled"] = w.member(t, careful, "user@careful.test", tenancy.RoleAdmin)
	begun, err := accounts.BeginMFA(t.Context(), careful.as, tenancy.Proof{Password: goodPassword})
	must(t, err)
	code, err := totp.GenerateCode(begun.Text, time.Now())
	must(t, err)
	_, err = accounts.ConfirmMFA(t.Context(), careful.as, code)
	must(t, err)
	must(t, accounts.SetMFAPolicy(t.Context(), careful.as, true))
}

// addContent creates the channels, posts, media and customer of the first organization.
func (w *fixture) addContent(t *testing.T) {
	t.Helper()
	channel, removable := w.channel(t, "one"), w.channel(t, "two")
	post, group := w.post(t, channel), w.post(t, channel)
	var groupID string
	must(t, w.super.QueryRow(t.Context(), `select group_id::text from post where id = $1`, group).Scan(&groupID))
	var customer string
	must(t, w.super.QueryRow(t.Context(),
		`insert into customer (org_id, id, name) values ($1, gen_random_uuid(), $2) returning id::text`, w.first, customerName).Scan(&customer))
	for _, beginning := range []string{"/posts/tags/", "/public/v1/tags/"} {
		var tag string
		must(t, w.super.QueryRow(t.Context(), `insert into tag (org_id, id, name, color)
			values ($1, gen_random_uuid(), $2, '#123456') returning id::text`, w.first, "firstling"+beginning).Scan(&tag))
		w.ids[beginning] = tag
	}
	for _, beginning := range []string{"/webhooks/", "/public/v1/webhooks/"} {
		w.addWebhook(t, beginning)
	}
	w.exec(t, `insert into notification (org_id, id, kind, channel_id, reason, posts, created_at, last_at, closed_at)
		values ($1, gen_random_uuid(), 'failed', $2::text::uuid, $3, 1, now(), now(), now())`, w.first, channel, ownWords)
	w.ids["$WEBHOOK"] = w.ids["/webhooks/"]
	for _, beginning := range []string{"/approvals/", "/public/v1/approvals/"} {
		w.addApproval(t, beginning, w.post(t, channel))
	}
	for _, route := range []string{"/posts/{id}/release-id", "/public/v1/posts/{id}/release-id"} {
		draft := w.post(t, channel)
		_, err := w.super.Exec(t.Context(), `update post set state = 'DRAFT' where id = $1`, draft)
		must(t, err)
		w.ids[route] = draft
	}
	medium, key, file := w.upload(t, 8)
	unused, _, _ := w.upload(t, 9)
	old, _, _ := w.upload(t, 10)
	for beginning, id := range map[string]string{
		"{key}": key, "{file}": file,
		"/": post, "/customers/": customer, "/integrations/": removable, "/integrations/social": "sandbox", "/auth/oauth/": "GITHUB", "/monitor/queue/": "publish",
		"/public/v1/integrations/": removable, "/public/v1/posts/group/": groupID, "$CHANNEL": channel,
		"/public/v1/customers/": customer, "/public/v1/find-slot/": channel, "/posts/find-slot/": channel,
		"/connect/": "sandbox-oauth", "/public/v1/social/": "sandbox-oauth", "/public/v1/connectors/": "sandbox-oauth",
		"/settings/provider-credentials/": "sandbox-oauth", "/public/v1/integration-settings/": channel,
		"/public/v1/integration-trigger/": channel, "/public/v1/analytics/": channel, "/analytics/": channel,
		"/public/v1/analytics/post/": post, "/analytics/post/": post, "/public/v1/connectors/{id}/analytics": channel,
		"$MEDIUM": medium, "/originals/": medium, "/media/": unused, "/public/v1/media/": old,
	} {
		w.ids[beginning] = id
	}
	for _, id := range w.ids {
		if len(id) > len("sandbox-oauth") && id != file {
			w.needles = append(w.needles, id)
		}
	}
	w.needles = append(w.needles, channel)
	for _, person := range w.people {
		w.needles = append(w.needles, person.String())
	}
}

// addWebhook creates a webhook and a delivery, for the routes that begin with a path. The webhook
// wants only an event that does not exist, and another process holds it, so nothing is sent between
// the calls.
func (w *fixture) addWebhook(t *testing.T, beginning string) {
	t.Helper()
	var hook, delivery string
	must(t, w.super.QueryRow(t.Context(), `with hook as (
			insert into webhook (org_id, id, name, url, signing_key, created_at, updated_at, events, last_number, running_until)
			values ($1, gen_random_uuid(), 'firstling hook', 'https://127.0.0.1/firstling', 'sealed', now(), now(), '{none}', 1,
				now() + interval '1 day')
			returning org_id, id)
		insert into webhook_delivery (org_id, id, webhook_id, number, event, body, state, created_at, ended_at)
		select org_id, gen_random_uuid(), id, 1, 'post.published', $2, 'delivered', now(), now() from hook
		returning webhook_id::text, id::text`, w.first, ownWords).Scan(&hook, &delivery))
	w.ids[beginning], w.ids[beginning+"{deliveryId}"] = hook, delivery
}

// addApproval creates another person's request for approval, for the routes that begin with a path.
func (w *fixture) addApproval(t *testing.T, beginning, post string) {
	t.Helper()
	var approval string
	must(t, w.super.QueryRow(t.Context(), `insert into approval (org_id, id, post_id, token_hash, sealed_token, note,
			requested_by, requested_at, expires_at)
		values ($1, gen_random_uuid(), $2::text::uuid, decode(md5($2::text), 'hex'), 'sealed', $3, gen_random_uuid(), now(), now() + interval '1 day')
		returning id::text`, w.first, post, ownWords).Scan(&approval))
	w.ids[beginning] = approval
}

// channel connects an account of the sandbox.
func (w *fixture) channel(t *testing.T, name string) string {
	t.Helper()
	state, err := w.app.Channels.Begin(t.Context(), w.accounts["owner"].as, publishing.BeginConnect{Connector: "sandbox"})
	must(t, err)
	made, err := w.app.Channels.Finish(t.Context(), publishing.FinishConnect{Connector: "sandbox", State: state, Fields: map[string]string{
		"service": w.sandbox, "name": "firstling-" + name, "password": goodPassword, "grade": "A",
	}})
	must(t, err)
	return made.Channel.ID.String()
}

// post schedules a post for the next day.
func (w *fixture) post(t *testing.T, channel string) string {
	t.Helper()
	a, err := call.Do(t.Context(), w.http, http.MethodPost, baseURL+"/public/v1/posts",
		strings.ReplaceAll(newPost, "$CHANNEL", channel), "Authorization", w.keys["key"])
	must(t, err)
	var out []struct {
		PostID string `json:"postId"`
	}
	must(t, a.Into(&out))
	return out[0].PostID
}

// upload stores a picture and returns its id and the last two parts of its address.
func (w *fixture) upload(t *testing.T, side int) (medium, key, file string) {
	t.Helper()
	var picture, form bytes.Buffer
	must(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, side, side))))
	fields := multipart.NewWriter(&form)
	part, err := fields.CreateFormFile("file", "picture.png")
	must(t, err)
	_, err = part.Write(picture.Bytes())
	must(t, err)
	must(t, fields.Close())
	a, err := call.Do(t.Context(), w.http, http.MethodPost, baseURL+"/public/v1/upload", form.Bytes(),
		"Authorization", w.keys["key"], "Content-Type", fields.FormDataContentType())
	must(t, err)
	var out struct {
		ID   string `json:"id"`
		Path string `json:"path"`
	}
	must(t, a.Into(&out))
	address := strings.Split(out.Path, "/")
	if len(address) < 2 {
		t.Fatalf("the upload is answered with %v, want an address", a)
	}
	return out.ID, address[len(address)-2], address[len(address)-1]
}

func (w *fixture) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := w.super.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// rows returns all rows of the first organization and of its people as text. It leaves out the
// times of last use, events that loops delete, and the records of impersonation, which are written
// even if the request is refused.
func (w *fixture) rows(t *testing.T) string {
	t.Helper()
	return w.rowsOf(t, w.super)
}

// rowsOf returns rows as a superuser connection sees them in its transaction.
func (w *fixture) rowsOf(t *testing.T, super *pgx.Conn) string {
	t.Helper()
	columns, err := super.Query(t.Context(), `
		select c.table_name::text, array_agg(c.column_name::text) from information_schema.columns c
		join information_schema.tables using (table_schema, table_name)
		where c.table_schema = 'public' and table_type = 'BASE TABLE' group by 1 order by 1`)
	must(t, err)
	type table struct {
		Name    string
		Columns []string
	}
	tables, err := pgx.CollectRows(columns, pgx.RowToStructByPos[table])
	must(t, err)
	var all strings.Builder
	for _, table := range tables {
		condition := ""
		switch {
		// Loops delete events.
		case table.Name == "impersonation", table.Name == "webhook_event", table.Name == "incident_event":
			continue
		case table.Name == "audit":
			condition = "(x.org_id = $1 or x.org_id = any ($2)) and x.action not like 'impersonation.%'"
		case table.Name == "organization":
			condition = "x.id = $1 or x.id = any ($2)"
		case table.Name == "person":
			condition = "x.id = any ($2) or x.id = $1"
		case slices.Contains(table.Columns, "org_id"):
			condition = "x.org_id = $1 or x.org_id = any ($2)"
		case slices.Contains(table.Columns, "person_id"):
			condition = "x.person_id = any ($2) or x.person_id = $1"
		default:
			continue
		}
		var text string
		must(t, super.QueryRow(t.Context(), `select coalesce(string_agg(row, e'\n' order by row), '') from
			(select (to_jsonb(x) - 'seen_at' - 'used_at')::text as row from `+table.Name+` x where `+condition+`) rows`,
			w.first, w.people).Scan(&text))
		fmt.Fprintf(&all, "%s:\n%s\n", table.Name, text)
	}
	return all.String()
}
