package contract

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"crier/apps/boot"
	"crier/platform/env"
	"crier/platform/secret"
	"crier/publishing"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/call"
	"crier/tests/dbtest"
	"crier/tests/sandboxtest"
	"crier/tests/suite"
)

const (
	base     = "http://crier.test" // does not exist: clients dial the service for any host
	patience = 60 * time.Second
	password = "correct horse battery"
)

// rig is a running service with its own database and its own sandbox.
type rig struct {
	sealing  string // the encryption key
	app      *boot.App
	database string
	sandbox  string
	email    string
	owner    tenancy.Principal
	names    *atomic.Int64
	http     *http.Client
	expected *atomic.Value // a string; a logged error that contains it does not fail the test
}

func TestMain(m *testing.M) { os.Exit(suite.Run(m)) }

// common returns the service shared by tests that need no special settings and touch only their own
// organizations.
var common = suite.Once(func(t testing.TB) *rig { return start(t, nil) })

// start runs a service for one test. settings override the test defaults.
func start(t testing.TB, settings map[string]string) *rig {
	t.Helper()
	r := &rig{
		database: dbtest.URL(t), sandbox: sandboxtest.Start(t), names: &atomic.Int64{}, expected: &atomic.Value{},
		email: "owner@crier.test",
	}
	r.run(t, settings)
	owner, err := r.app.Accounts.CreateOwner(t.Context(), registration.NewOwner{
		Email: r.email, Name: "Owner", Password: password, Organization: "First",
	})
	if err != nil {
		t.Fatal(err)
	}
	r.owner = owner
	return r
}

// subject tests one subject on a service that others test too.
type subject = func(t *testing.T, r *rig)

// subjects runs the tests of several subjects on one service. Each service takes database
// connections, so not every test can have its own.
func subjects(t *testing.T, r *rig, all map[string]subject) {
	t.Helper()
	for name, test := range all {
		t.Run(name, func(t *testing.T) { test(t, r) })
	}
}

// beside runs a second service on the same database and sandbox, like another process.
func (r *rig) beside(t *testing.T, settings map[string]string) *rig {
	t.Helper()
	second := *r
	second.run(t, settings)
	return &second
}

func (r *rig) run(t testing.TB, settings map[string]string) {
	t.Helper()
	if r.sealing == "" { // the processes of one installation share it
		var err error
		r.sealing, err = secret.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
	}
	values := map[string]string{
		"DATABASE_URL": r.database, "DATABASE_MAX_CONNS": "12", "SANDBOX_URL": r.sandbox, "ENCRYPTION_KEYS": r.sealing,
		"CRIER_HOME": t.TempDir(), "PORT": "0", "BASE_URL": base, "API_LIMIT": "100000", "ACTOR_TIMEOUT": "20s",
		"SWEEP_INTERVAL": "1s", "PLATFORM_TIMEOUT": "20s",
		"DRAIN_DELAY": "0s", "DRAIN_TIMEOUT": "2s", "STOP_TIMEOUT": "20s",
		// The owner has one organization per subject.
		"ORGANIZATIONS_PER_DAY": "0", "ORGANIZATIONS_PER_PERSON": "0", "DEFAULT_PLAN_ORGANIZATIONS": "0",
	}
	maps.Copy(values, settings)
	var cfg boot.Config
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	if err := env.Load(t.Context(), lookup, &cfg); err != nil {
		t.Fatal(err)
	}
	log := slog.NewTextHandler(testLog{t: t, expected: r.expected}, &slog.HandlerOptions{Level: slog.LevelError})
	r.app = boot.New(cfg, slog.New(log))
	if err := r.app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.app.Close(); err != nil {
			t.Errorf("the service does not stop cleanly: %v", err)
		}
	})
	r.http = dialing(t, r.app.Addr())
}

// testLog fails the test if the service logs an error, unless it contains the text in rig.expected.
type testLog struct {
	t        testing.TB
	expected *atomic.Value
}

func (l testLog) Write(line []byte) (int, error) {
	if meant, ok := l.expected.Load().(string); !ok || !strings.Contains(string(line), meant) {
		l.t.Errorf("the service logged: %s", line)
	}
	return len(line), nil
}

func dialing(t testing.TB, address string) *http.Client {
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	noRedirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, Timeout: patience, CheckRedirect: noRedirect}
}

// org is one organization with its API key.
type org struct {
	*rig
	prefix string
	key    string
	who    tenancy.Principal
}

// asOperator returns a principal that can create a key without another proof, because it has no
// session.
func asOperator(p tenancy.Principal) tenancy.Principal {
	p.Via = tenancy.ViaInstance
	return p
}

// organization creates an organization.
func (r *rig) organization(t *testing.T) org {
	t.Helper()
	made, err := r.app.Accounts.CreateOrganization(t.Context(), r.owner, "Organization")
	if err != nil {
		t.Fatal(err)
	}
	who := tenancy.Principal{
		Org: made.ID, Person: r.owner.Person, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaSession, Name: r.email,
	}
	key, _, err := r.app.Accounts.CreateKey(t.Context(), asOperator(who), tenancy.NewKey{Name: "tests"})
	if err != nil {
		t.Fatal(err)
	}
	return org{rig: r, prefix: "/public/v1", key: key, who: who}
}

// channel is a connected sandbox account.
type channel struct {
	id      string
	account string
}

// channel connects a new sandbox account.
func (o org) channel(t *testing.T, grade string) channel {
	t.Helper()
	account := fmt.Sprintf("account-%d", o.names.Add(1))
	state, err := o.app.Channels.Begin(t.Context(), o.who, publishing.BeginConnect{Connector: "sandbox"})
	if err != nil {
		t.Fatal(err)
	}
	connected, err := o.app.Channels.Finish(t.Context(), publishing.FinishConnect{
		Connector: "sandbox", State: state, Fields: sandboxForm(o.sandbox, account, grade),
	})
	if err != nil {
		t.Fatal(err)
	}
	return channel{id: connected.Channel.ID.String(), account: account}
}

// code returns the code that the connect form of the sandbox sends.
func code(t *testing.T, service, account, grade string) string {
	t.Helper()
	return base64.StdEncoding.EncodeToString(encode(t, sandboxForm(service, account, grade)))
}

// sandboxForm returns the fields of the sandbox's connect form.
func sandboxForm(service, account, grade string) map[string]string {
	return map[string]string{"service": service, "name": account, "password": password, "grade": grade}
}

type m = map[string]any

func encode(t *testing.T, v any) []byte {
	t.Helper()
	if raw, ok := v.(string); ok {
		return []byte(raw)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// do sends one request. Headers are pairs of names and values. Strings are sent as they are, other
// bodies as JSON.
func (o org) do(t *testing.T, method, path string, body any, headers ...string) answer {
	t.Helper()
	a, err := o.attempt(t.Context(), method, path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// attempt is like do but returns errors, for goroutines that must not end the test.
func (o org) attempt(ctx context.Context, method, path string, body any, headers ...string) (answer, error) {
	headers = append([]string{"Authorization", o.key}, headers...)
	a, err := call.Do(ctx, o.http, method, base+o.prefix+path, body, headers...)
	return answer{Answer: a}, err
}

func (o org) get(t *testing.T, path string) answer {
	t.Helper()
	return o.do(t, http.MethodGet, path, nil)
}

// count returns the number of posts of the organization.
func (o org) count(t *testing.T) string {
	t.Helper()
	return o.get(t, "/posts?page=0").want(t, http.StatusOK).Header.Get("X-Total-Count")
}

// part returns one part of a post.
func part(text string, media ...any) m { return m{"content": text, "image": media} }

// entry returns the entry of one channel in a request.
func entry(channel string, parts ...m) m {
	return m{"integration": m{"id": channel}, "value": parts}
}

// request returns a body of POST /posts.
func request(kind string, date time.Time, entries ...m) m {
	return m{"type": kind, "date": date.UTC().Format(time.RFC3339), "shortLink": false, "tags": []any{}, "posts": entries}
}

// now returns a body that publishes at once.
func now(channel string, parts ...m) m { return request("now", time.Now(), entry(channel, parts...)) }

// later returns a body that schedules a post for the next day.
func later(channel string, parts ...m) m {
	return request("schedule", tomorrow(), entry(channel, parts...))
}

func tomorrow() time.Time { return time.Now().Add(24 * time.Hour).Truncate(time.Second) }

// wantCount ends the test unless the organization has this number of posts.
func (o org) wantCount(t *testing.T, want int) {
	t.Helper()
	if got := o.count(t); got != strconv.Itoa(want) {
		t.Fatalf("the organization has %s posts, want %d", got, want)
	}
}

// wantState ends the test unless the post has this state, and returns its record.
func (o org) wantState(t *testing.T, post, want string) record {
	t.Helper()
	got := o.post(t, post)
	if got.State != want {
		t.Fatalf("the post has the state %s, want %s: %+v", got.State, want, got)
	}
	return got
}

// eventually waits until ok returns true. If that takes too long, it ends the test with the value
// of state.
func eventually(t *testing.T, what string, ok func() bool, state func() any) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if ok() {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s; got %v", what, state())
		}
	}
}

// reaches waits until a post is in the given state, and returns its record.
func (o org) reaches(t *testing.T, post, state string) (got record) {
	t.Helper()
	eventually(t, "state "+state, func() bool {
		got = o.post(t, post)
		return got.State == state
	}, func() any { return fmt.Sprint(got.State, " ", got.Posts, " ", got.Timeline) })
	return got
}
