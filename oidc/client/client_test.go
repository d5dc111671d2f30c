package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/oidc"
	"crier/oidc/client"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/outbound"
	"crier/platform/pg"
	"crier/tenancy"
	tenancydb "crier/tenancy/db"
	"crier/tests/dbtest"
	"crier/tests/tenant"
)

var here = tenancy.Source{Client: "203.0.113.9", Site: "203.0.113.9"}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// rig is a Clients on a database of its own, with a clock that the test moves.
type rig struct {
	*client.Clients
	db  *pg.DB
	now atomic.Int64
}

func newRig(t *testing.T, fetch http.RoundTripper) *rig {
	t.Helper()
	r := &rig{db: dbtest.Open(t)}
	begin := time.Now()
	now := clock.Func(func() time.Time { return begin.Add(time.Duration(r.now.Load())) })
	d, err := tenancydb.New(r.db, now)
	must(t, err)
	d.ClockInjected = true
	r.Clients = client.New(client.Deps{DB: d, Clock: now, Fetch: fetch})
	return r
}

func wantCode(t *testing.T, what string, err error, want oidc.Code) {
	t.Helper()
	var got *oidc.Error
	if !errors.As(err, &got) || got.Code != want || got.Message == "" {
		t.Errorf("%s: got %v, want %s", what, err, want)
	}
}

// count returns the number of clients.
func (r *rig) count(t *testing.T) (n int) {
	t.Helper()
	must(t, r.db.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
		return tx.QueryRow(t.Context(), `select count(*) from oauth_client`).Scan(&n)
	}))
	return n
}

func TestRegister_SamePublicMetadataIsOneClient(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	m := oidc.Metadata{Name: "Agent", Auth: "none", RedirectURIs: []string{"http://localhost:1/cb"}}
	first, err := r.Register(t.Context(), m, here)
	must(t, err)
	m.RedirectURIs = []string{"http://localhost:2/cb"}
	second, err := r.Register(t.Context(), m, tenancy.Source{Site: "198.51.100.1"})
	must(t, err)
	if first.ClientID != second.ClientID || !strings.HasPrefix(first.ClientID, oidc.ClientPrefix) || first.Secret != "" ||
		!slices.Equal(second.RedirectURIs, m.RedirectURIs) || second.IssuedAt.IsZero() {
		t.Errorf("got %+v and %+v, want one client", first, second)
	}
	found, err := r.Find(t.Context(), first.ClientID, here)
	if err != nil || found.Name != "Agent" || !found.Public() || !found.MatchRedirect("http://localhost:3/cb") || found.Kind != oidc.ClientRegistered {
		t.Errorf("got %+v, %v", found, err)
	}
	m.Name = "Another"
	if third, err := r.Register(t.Context(), m, here); err != nil || third.ClientID == first.ClientID {
		t.Errorf("other metadata: got %+v, %v; want another client", third, err)
	}
}

func TestAuthenticate(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	m := oidc.Metadata{Name: "Agent", RedirectURIs: []string{"https://client.example/cb"}}
	first, err := r.Register(t.Context(), m, here)
	must(t, err)
	second, err := r.Register(t.Context(), m, here)
	must(t, err)
	m.Auth = "none"
	public, err := r.Register(t.Context(), m, here)
	must(t, err)
	if first.ClientID == second.ClientID || first.Secret == second.Secret || !strings.HasPrefix(first.Secret, oidc.SecretPrefix) {
		t.Errorf("got %+v and %+v, want two clients with secrets", first, second)
	}
	for _, c := range []struct {
		id, secret string
		ok         bool
	}{
		{id: first.ClientID, secret: first.Secret, ok: true},
		{id: public.ClientID, secret: "", ok: true},
		{id: first.ClientID, secret: second.Secret},
		{id: first.ClientID, secret: ""},
		{id: public.ClientID, secret: first.Secret},
		{id: "unknown", secret: ""},
		{id: "", secret: ""},
		{id: oidc.ClientPrefix + strings.Repeat("x", 43), secret: ""},
		{id: oidc.ClientPrefix + strings.Repeat("\x00", 43), secret: ""},
		{id: strings.Repeat("x", 5000), secret: ""},
	} {
		_, err := r.Authenticate(t.Context(), c.id, c.secret)
		if c.ok && err != nil {
			t.Errorf("%q with %q: %v", c.id, c.secret, err)
		}
		if !c.ok {
			wantCode(t, c.id, err, oidc.InvalidClient)
		}
	}
}

func TestRegister_Floods(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	refused := 0
	for range 200 {
		_, err := r.Register(t.Context(), oidc.Metadata{RedirectURIs: []string{"https://client.example/cb"}}, here)
		if fault.Is(err, fault.RateLimited) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if refused != 80 {
		t.Errorf("%d of 200 registrations were refused, want 80", refused)
	}
	if _, err := r.Register(t.Context(), oidc.Metadata{RedirectURIs: []string{"https://client.example/cb"}}, tenancy.Source{Site: "198.51.100.1"}); err != nil {
		t.Errorf("another network: %v", err)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	r := newRig(t, documents{"/a.json": valid})
	register := func(name string) oidc.Registration {
		out, err := r.Register(t.Context(), oidc.Metadata{Name: name, Auth: "none", RedirectURIs: []string{"https://client.example/cb"}}, here)
		must(t, err)
		return out
	}
	register("forgotten")
	repeated, approved := register("repeated"), register("approved")
	must(t, r.approve(t, approved.ID))
	document, err := r.Find(t.Context(), "https://client.example/a.json", here)
	must(t, err)
	r.now.Store(int64(29 * 24 * time.Hour))
	register("repeated")
	if n, err := r.Prune(t.Context()); err != nil || n != 1 {
		t.Errorf("after 29 days: got %d, %v; want the unused document", n, err)
	}
	r.now.Store(int64(31 * 24 * time.Hour))
	if n, err := r.Prune(t.Context()); err != nil || n != 1 {
		t.Errorf("after 31 days: got %d, %v; want the forgotten client", n, err)
	}
	for _, kept := range []oidc.Client{repeated.Client, approved.Client} {
		if _, err := r.Find(t.Context(), kept.ClientID, here); err != nil {
			t.Errorf("%s: %v", kept.Name, err)
		}
	}
	if again, err := r.Find(t.Context(), document.ClientID, here); err != nil || again.ID == document.ID {
		t.Errorf("the document: got %+v, %v; want it fetched anew", again, err)
	}
}

// approve marks a client as approved.
func (r *rig) approve(t *testing.T, c tenancy.AgentID) error {
	t.Helper()
	d, err := tenancydb.New(r.db, clock.System{})
	must(t, err)
	return d.InGate(t.Context(), "test", func(tx *tenancydb.GateTx) error { return r.MarkApproved(t.Context(), tx, c) })
}

// documents is a server of documents by path.
type documents map[string]func(address string) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (d documents) RoundTrip(req *http.Request) (*http.Response, error) {
	serve, ok := d[req.URL.Path]
	if !ok {
		return respond(404, "text/html", "none"), nil
	}
	return serve(req.URL.String())
}

func respond(status int, kind, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(strings.NewReader(body)),
	}
}

func valid(address string) (*http.Response, error) {
	raw, err := json.Marshal(oidc.Metadata{ClientID: address, Name: "Document", RedirectURIs: []string{"https://client.example/cb"}})
	return respond(200, "application/json; charset=utf-8", string(raw)), err
}

func TestFind_FetchesDocumentOncePerDay(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int32
	works := atomic.Bool{}
	works.Store(true)
	r := newRig(t, documents{"/a.json": func(address string) (*http.Response, error) {
		fetched.Add(1)
		if !works.Load() {
			return nil, errors.New("away")
		}
		return valid(address)
	}})
	const address = "https://client.example/a.json"
	first, err := r.Find(t.Context(), address, here)
	if err != nil || first.Name != "Document" || first.Kind != oidc.ClientDocument || !first.Public() || first.ClientID != address {
		t.Fatalf("got %+v, %v", first, err)
	}
	works.Store(false)
	r.now.Store(int64(24*time.Hour - time.Minute))
	if again, err := r.Find(t.Context(), address, here); err != nil || again.ID != first.ID || fetched.Load() != 1 {
		t.Errorf("within a day: got %+v, %v after %d fetches; want the stored client", again, err, fetched.Load())
	}
	r.now.Store(int64(24 * time.Hour))
	_, err = r.Find(t.Context(), address, here)
	wantCode(t, "after a day, if the document cannot be fetched", err, oidc.InvalidClient)
	works.Store(true)
	if again, err := r.Find(t.Context(), address, here); err != nil || again.ID != first.ID || fetched.Load() != 3 {
		t.Errorf("once it can: got %+v, %v after %d fetches; want the same client", again, err, fetched.Load())
	}
}

func TestFind_RefusesBadDocuments(t *testing.T) {
	t.Parallel()
	r := newRig(t, documents{
		"/redirect.json": func(string) (*http.Response, error) {
			resp := respond(302, "application/json", "{}")
			resp.Header.Set("Location", "https://client.example/a.json")
			return resp, nil
		},
		"/huge.json": func(address string) (*http.Response, error) {
			return respond(200, "application/json", `{"client_id":"`+address+`","client_name":"`+strings.Repeat("x", oidc.MaxDocument)+`"}`), nil
		},
		"/other.json": func(string) (*http.Response, error) { return valid("https://client.example/a.json") },
		"/html.json":  func(string) (*http.Response, error) { return respond(200, "text/html", "{}"), nil },
		"/text.json":  func(string) (*http.Response, error) { return respond(200, "application/json", "hello"), nil },
		"/away.json":  func(string) (*http.Response, error) { return nil, errors.New("10.0.0.1 refused") },
		"/script.json": func(address string) (*http.Response, error) {
			return respond(200, "application/json", `{"client_id":"`+address+`","redirect_uris":["javascript:x"]}`), nil
		},
	})
	for _, path := range []string{"/none.json", "/redirect.json", "/huge.json", "/other.json", "/html.json", "/text.json", "/away.json", "/script.json"} {
		_, err := r.Find(t.Context(), "https://client.example"+path, here)
		wantCode(t, path, err, oidc.InvalidClient)
		if strings.Contains(err.Error(), "10.0.0.1") {
			t.Errorf("%s: the error reveals an address: %v", path, err)
		}
	}
	if n := r.count(t); n != 0 {
		t.Errorf("the refusals left %d clients, want none", n)
	}
}

// The transport of the service refuses private addresses, and follows no redirects.
func TestFind_RefusesPrivateAddresses(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(server.Close)
	out, err := outbound.New(outbound.Config{}, outbound.Deps{})
	must(t, err)
	r := newRig(t, out.Transport())
	for _, address := range []string{
		server.URL + "/a.json", "https://127.0.0.1/a.json", "https://10.0.0.1/a.json", "https://169.254.169.254/a.json",
		"https://[::1]/a.json", "https://localhost/a.json", "https://2130706433/a.json",
	} {
		_, err := r.Find(t.Context(), address, here)
		wantCode(t, address, err, oidc.InvalidClient)
	}
	if asked.Load() != 0 {
		t.Error("a private server was asked")
	}
}

// The fetch from a server that never responds ends after the time limit, which the transport sees.
func TestFind_LimitsTheFetch(t *testing.T) {
	t.Parallel()
	r := newRig(t, roundTrip(func(req *http.Request) (*http.Response, error) {
		if end, ok := req.Context().Deadline(); !ok || time.Until(end) > 5*time.Second {
			t.Error("the fetch has no time limit of 5 seconds")
		}
		return nil, context.DeadlineExceeded
	}))
	_, err := r.Find(t.Context(), "https://client.example/slow.json", here)
	wantCode(t, "a slow server", err, oidc.InvalidClient)
	limited := 0
	for range 40 {
		if _, err := r.Find(t.Context(), "https://client.example/slow.json", here); fault.Is(err, fault.RateLimited) {
			limited++
		}
	}
	if limited != 11 {
		t.Errorf("%d of a visitor's 41 fetches were refused, want 11", limited)
	}
	_, err = r.Find(t.Context(), "https://client.example/slow.json", tenancy.Source{Site: "198.51.100.1"})
	wantCode(t, "another visitor's fetch", err, oidc.InvalidClient)
}

// Many networks together can use up the fetches of a host, which must not keep people from clients
// whose documents were fetched before.
func TestFind_FloodOfNewDocumentsLeavesKnownOnesAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, documents{"/known.json": valid, "/new.json": valid})
	const host = "https://client.example"
	if _, err := r.Find(t.Context(), host+"/known.json", here); err != nil {
		t.Fatal(err)
	}
	limited := 0
	for i := range 700 {
		from := tenancy.Source{Site: fmt.Sprintf("198.51.100.%d", i%50)}
		if _, err := r.Find(t.Context(), fmt.Sprintf("%s/nothing/%d", host, i), from); fault.Is(err, fault.RateLimited) {
			limited++
		}
	}
	if limited == 0 {
		t.Error("no fetch of the host was refused")
	}
	visitor := tenancy.Source{Site: "203.0.113.7"}
	if _, err := r.Find(t.Context(), host+"/new.json", visitor); !fault.Is(err, fault.RateLimited) {
		t.Errorf("a new document: got %v, want RateLimited", err)
	}
	if _, err := r.Refetch(t.Context(), host+"/known.json", visitor); err != nil {
		t.Errorf("a known document: got %v, want nil", err)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestApp(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	owner, stranger := tenant.New(t, r.db), tenant.New(t, r.db)
	user := tenant.Join(t, r.db, owner.Org, tenancy.RoleUser)
	app := oidc.App{Client: oidc.Client{Name: "CLI", RedirectURIs: []string{"https://cli.example/cb"}}, Description: "d", Picture: "p"}
	if _, err := r.App(t.Context(), owner); !fault.Is(err, fault.NotFound) {
		t.Errorf("no application: %v, want NotFound", err)
	}
	if _, _, err := r.CreateApp(t.Context(), user, app); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a user: %v, want Forbidden", err)
	}
	bad := app
	bad.RedirectURIs = []string{"http://cli.example/cb"}
	if _, _, err := r.CreateApp(t.Context(), owner, bad); !fault.Is(err, fault.Invalid) {
		t.Errorf("a bad redirect URL: %v, want Invalid", err)
	}
	made, secret, err := r.CreateApp(t.Context(), owner, app)
	must(t, err)
	if _, _, err := r.CreateApp(t.Context(), owner, app); !fault.Is(err, fault.Conflict) {
		t.Errorf("a second application: %v, want Conflict", err)
	}
	if _, err := r.App(t.Context(), stranger); !fault.Is(err, fault.NotFound) {
		t.Errorf("another organization: %v, want NotFound", err)
	}
	found, err := r.Authenticate(t.Context(), made.ClientID, secret)
	if err != nil || found.Kind != oidc.ClientStatic || found.Org != owner.Org || found.LongLived {
		t.Errorf("got %+v, %v", found, err)
	}
	made.Name, made.LongLived, made.Description = "Changed", true, "other"
	if _, err := r.UpdateApp(t.Context(), owner, made); err != nil {
		t.Error(err)
	}
	got, err := r.App(t.Context(), owner)
	if err != nil || got.Name != "Changed" || !got.LongLived || got.Description != "other" || got.ClientID != made.ClientID {
		t.Errorf("got %+v, %v", got, err)
	}
	next, err := r.RotateAppSecret(t.Context(), owner)
	must(t, err)
	_, err = r.Authenticate(t.Context(), made.ClientID, secret)
	wantCode(t, "the old secret", err, oidc.InvalidClient)
	if _, err := r.Authenticate(t.Context(), made.ClientID, next); err != nil {
		t.Errorf("the new secret: %v", err)
	}
	must(t, r.DeleteApp(t.Context(), owner))
	_, err = r.Find(t.Context(), made.ClientID, here)
	wantCode(t, "the deleted application", err, oidc.InvalidClient)
	if err := r.DeleteApp(t.Context(), owner); !fault.Is(err, fault.NotFound) {
		t.Errorf("deleting it again: %v, want NotFound", err)
	}
}
