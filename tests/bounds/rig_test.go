package bounds

import (
	"context"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"crier/apps/boot"
	"crier/apps/edge"
	"crier/platform/env"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/call"
	"crier/tests/dbtest"
	"crier/tests/sandboxtest"
)

const (
	base     = "http://crier.test" // this host does not exist: the client dials the service
	deadline = 3 * time.Second     // for a request
	password = "correct horse battery"
)

// rig is a running service with one organization that has an API key, and one session.
type rig struct {
	address  string
	database string
	key      string
	session  string
	http     *http.Client
	app      *boot.App
	owner    tenancy.Principal
	sandbox  string
}

// start runs a service. The settings override the defaults of these tests.
func start(t *testing.T, settings ...map[string]string) *rig {
	t.Helper()
	sealing, err := secret.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{database: dbtest.URL(t), sandbox: sandboxtest.Start(t)}
	values := map[string]string{
		"DATABASE_URL": r.database, "SANDBOX_URL": r.sandbox, "ENCRYPTION_KEYS": sealing, "CRIER_HOME": t.TempDir(), "PORT": "0", "BASE_URL": base,
		"API_LIMIT": "1000000", "APP_LIMIT": "1000000", "REQUEST_TIMEOUT": deadline.String(), "UPLOAD_TIMEOUT": "20s", "DRAIN_DELAY": "0s", "DRAIN_TIMEOUT": "2s",
	}
	for _, own := range settings {
		maps.Copy(values, own)
	}
	var cfg boot.Config
	if err := env.Load(t.Context(), func(name string) (string, bool) { v, ok := values[name]; return v, ok }, &cfg); err != nil {
		t.Fatal(err)
	}
	app := boot.New(cfg, slog.New(slog.DiscardHandler))
	if err := app.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := app.Close(); err != nil {
			t.Errorf("the service does not stop cleanly: %v", err)
		}
	})
	r.app, r.address = app, app.Addr()
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, r.address)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	r.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r.owner, err = app.Accounts.CreateOwner(t.Context(), registration.NewOwner{
		Email: "owner@crier.test", Name: "Owner", Password: password, Organization: "First",
	})
	if err != nil {
		t.Fatal(err)
	}
	r.key, _, err = app.Accounts.CreateKey(t.Context(), r.owner, tenancy.NewKey{Name: "tests"})
	if err != nil {
		t.Fatal(err)
	}
	signIn, err := app.Accounts.Login(t.Context(), "owner@crier.test", password, tenancy.Source{
		Client: "203.0.113.9", Site: "203.0.113.9",
	})
	if err != nil {
		t.Fatal(err)
	}
	r.session = signIn.Session
	return r
}

var parameter = regexp.MustCompile(`\{\w+\}|\*`)

// filled returns a path with its parameters filled in.
func filled(path string) string { return parameter.ReplaceAllString(path, "x1") }

// do sends one request with the API key and the session.
func (r *rig) do(t *testing.T, route edge.Route, body string, headers ...string) call.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	headers = append([]string{"Authorization", r.key, "auth", r.session, "Content-Type", "application/json"}, headers...)
	a, err := call.Do(ctx, r.http, route.Method, base+filled(route.Path), body, headers...)
	if err != nil {
		t.Fatalf("%s: got the error %v, want an answer", route, err)
	}
	return a
}

// rows returns the number of rows in the organizations' tables.
func (r *rig) rows(t *testing.T) (n int) {
	t.Helper()
	conn := dbtest.SuperIn(t, r.database)
	for _, table := range []string{"post", "part", "attachment", "post_event", "media", "channel", "idempotency", "series", "connect_state"} {
		var one int
		if err := conn.QueryRow(t.Context(), "select count(*) from "+table).Scan(&one); err != nil {
			t.Fatal(err)
		}
		n += one
	}
	return n
}

// list returns a JSON array that repeats one element, with about the given number of bytes.
func list(element string, bytes int) string {
	n := max(1, bytes/(len(element)+1))
	return "[" + strings.Repeat(element+",", n-1) + element + "]"
}
