package contract

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/publishing"
	"crier/tests/oidctest"
	"crier/tests/s3test"
)

// TestOutgoing_TenantsCannotReachOperatorServices checks that a tenant's calls do not reach the
// private addresses that the service itself may call without OUTBOUND_ALLOW.
func TestOutgoing_TenantsCannotReachOperatorServices(t *testing.T) {
	t.Parallel()
	var issuer atomic.Pointer[oidctest.Provider]
	var strangers atomic.Int64 // tenants' requests to the issuer or to GitHub
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !strings.HasPrefix(q.URL.Path, "/.well-known") {
			strangers.Add(1)
		}
		issuer.Load().ServeHTTP(w, q)
	}))
	t.Cleanup(server.Close)
	issuer.Store(oidctest.New(t, server.URL, base+"/callback"))
	// The service itself may send mail.
	mail, gitHub := silentPort(t, new(atomic.Int64)), silentPort(t, &strangers)
	store, redis := s3test.Start(t), miniredis.RunT(t).Addr()
	settings := map[string]string{
		"OIDC_ISSUER": server.URL, "OIDC_CLIENT_ID": oidctest.ClientID, "OIDC_CLIENT_SECRET": oidctest.ClientSecret,
		"GITHUB_URL": "http://" + gitHub, "GITHUB_CLIENT_ID": "id", "GITHUB_CLIENT_SECRET": "secret",
		"SMTP_URL": "smtp://" + mail, "MAIL_FROM": "Crier <crier@crier.test>", "REDIS_URL": "redis://" + redis,
		"TRUSTED_PROXIES": "127.0.0.1", "APP_LIMIT": "100000",
	}
	maps.Copy(settings, s3test.Env(store))
	r := start(t, settings)
	o := r.organization(t)
	ask := o.dashboard(t)
	if a := ask(http.MethodGet, "/auth/oauth/GENERIC?redirect_uri="+url.QueryEscape(base+"/callback"), nil); a.Status != http.StatusOK || !strings.HasPrefix(a.Body, server.URL) {
		t.Errorf("the sign-in at an issuer in the private network begins with %v, want its address", a)
	}
	addresses := map[string]string{
		"the issuer": strings.TrimPrefix(server.URL, "http://"), "GitHub": gitHub, "the mail server": mail, "Redis": redis,
		"the bucket": strings.TrimPrefix(store, "http://"), "Postgres": postgresAddress(t, r.database),
		"the sandbox": strings.TrimPrefix(r.sandbox, "http://"),
	}
	for name, address := range addresses {
		for call, refused := range o.outgoing(t, ask) {
			for _, scheme := range []string{"http", "https"} {
				if answer, ok := refused(scheme + "://" + address); !ok {
					t.Errorf("%s over %s by %s is answered with %s, want a refusal", name, scheme, call, answer)
				}
			}
		}
	}
	if n := strangers.Load(); n != 0 {
		t.Errorf("addresses of the operator got %d calls of a tenant, want none", n)
	}
}

// silentPort returns the address of a listener that counts connections and closes them.
func silentPort(t *testing.T, connections *atomic.Int64) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_ = c.Close() // nothing was sent
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close() // ends the goroutine
		<-ended
	})
	return ln.Addr().String()
}

// postgresAddress returns the host of a database with the port 5432, or 127.0.0.1:5432 if the
// database is reached through a socket.
func postgresAddress(t *testing.T, database string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(database)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(cfg.Host, "/") {
		return "127.0.0.1:5432"
	}
	return net.JoinHostPort(cfg.Host, "5432")
}

// outgoing returns the calls in which a tenant can name an address. Each returns the response, and
// whether the address was refused.
func (o org) outgoing(
	t *testing.T, ask func(method, path string, body any, headers ...string) answer,
) map[string]func(address string) (string, bool) {
	connect := func(platform string, fields map[string]string) (string, bool) {
		state, err := o.app.Channels.Begin(t.Context(), o.who, publishing.BeginConnect{Connector: platform})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err = o.app.Channels.Finish(ctx, publishing.FinishConnect{Connector: platform, State: state, Fields: fields})
		return fmt.Sprint(err), fault.Is(err, fault.Invalid)
	}
	return map[string]func(string) (string, bool){
		"POST /upload-from-url": func(address string) (string, bool) {
			a := o.do(t, http.MethodPost, "/upload-from-url", m{"url": address + "/a.png"})
			return a.Body, a.Status == http.StatusBadRequest && strings.Contains(a.Body, "not public")
		},
		"GET /public/stream": func(address string) (string, bool) {
			from := fmt.Sprintf("2001:db8:%x::1", o.names.Add(1)) // a client may make 30 a minute
			a := ask(http.MethodGet, "/public/stream?url="+url.QueryEscape(address+"/a.mp4"), nil, "X-Forwarded-For", from)
			return a.Body, a.Status == http.StatusBadRequest
		},
		"POST /webhooks/send": func(address string) (string, bool) {
			a := ask(http.MethodPost, "/webhooks/send?url="+url.QueryEscape(address+"/"), m{})
			return a.Body, a.Status == http.StatusBadRequest || strings.Contains(a.Body, "not public")
		},
		"a webhook": func(address string) (string, bool) {
			a := o.do(t, http.MethodPost, "/webhooks", m{"name": "hook", "url": address + "/"})
			return a.Body, strings.HasPrefix(address, "https:") || a.Status == http.StatusBadRequest
		},
		"a channel of Bluesky": func(address string) (string, bool) {
			return connect("bluesky", map[string]string{
				"service": address, "identifier": "somebody.example.com", "password": "abcd-efgh-ijkl-mnop",
			})
		},
	}
}
