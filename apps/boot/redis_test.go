package boot

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/env"
	"crier/platform/pg"
	"crier/platform/secret"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/call"
	"crier/tests/dbtest"
	"crier/tests/faultnet"
)

// serving is a running service. accounts is the use cases of another process on the same database.
type serving struct {
	*App
	accounts *Accounts
	owner    tenancy.Principal
}

// serveWith starts a service on a separate database. settings are added to the required ones, and
// changes are applied before the start.
func serveWith(t *testing.T, settings map[string]string, changes ...func(*App)) *serving {
	t.Helper()
	key, err := secret.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	address := dbtest.URL(t)
	all := map[string]string{
		"DATABASE_URL": address, "CRIER_HOME": t.TempDir(), "PORT": "0", "ENCRYPTION_KEYS": key, "DRAIN_DELAY": "0s",
	}
	maps.Copy(all, settings)
	var cfg Config
	none := func(string) (string, bool) { return "", false }
	if err := env.Load(t.Context(), env.With(none, all), &cfg); err != nil {
		t.Fatal(err)
	}
	s := &serving{App: New(cfg, slog.New(slog.DiscardHandler))}
	for _, change := range changes {
		change(s.App)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	deps := AccountsDeps{DB: dbtest.OpenURL(t, address), Clock: clock.System{}}
	s.accounts, err = NewAccounts(AccountsConfig{}, deps)
	if err != nil {
		t.Fatal(err)
	}
	owner := registration.NewOwner{
		Email: "owner@crier.test", Name: "Owner", Password: "correct horse battery", Organization: "Organization",
	}
	s.owner, err = s.accounts.CreateOwner(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// get sends a request to the service, with the API key unless key is empty.
func (s *serving) get(t *testing.T, path, key string) call.Answer {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	a, err := call.Do(t.Context(), client, http.MethodGet, "http://"+s.Addr()+path, nil, "Authorization", key)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

type healthAnswer struct {
	Status  string            `json:"status"`
	Version string            `json:"version"`
	Checks  map[string]string `json:"checks"`
}

func (s *serving) healthAnswer(t *testing.T) (status int, answer healthAnswer) {
	t.Helper()
	a := s.get(t, "/health", "")
	if err := json.Unmarshal([]byte(a.Body), &answer); err != nil {
		t.Fatalf("%v: %v", a, err)
	}
	return a.Status, answer
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain: " + what)
		}
	}
}

func TestServe_WorksWithoutRedisAndReconnects(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	way, through := faultnet.Start(t, "redis://"+server.Addr())
	if err := way.Close(); err != nil { // nothing listens there yet
		t.Fatal(err)
	}
	s := serveWith(t, map[string]string{"REDIS_URL": through})
	eventually(t, "Redis is degraded", func() bool {
		status, answer := s.healthAnswer(t)
		if status != http.StatusOK || answer.Status != "ok" {
			t.Fatalf("/health answers %d: %+v", status, answer)
		}
		return strings.HasPrefix(answer.Checks["redis"], "degraded: ")
	})
	if _, answer := s.healthAnswer(t); answer.Checks["postgres"] != "ok" || answer.Checks["cluster"] != "ok" {
		t.Errorf("%+v", answer)
	}

	full, key, err := s.accounts.CreateKey(t.Context(), s.owner, tenancy.NewKey{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if a := s.get(t, "/public/v1/integrations", full); a.Status != http.StatusOK {
		t.Fatalf("a request is answered with %v", a)
	}
	// Another process deletes the key.
	if err := s.accounts.DeleteKey(t.Context(), s.owner, key.ID.String()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the revoked key stops working", func() bool {
		return s.get(t, "/public/v1/integrations", full).Status == http.StatusUnauthorized
	})
	_, key, err = s.Accounts.CreateKey(t.Context(), s.owner, tenancy.NewKey{Name: "another"})
	if err != nil {
		t.Fatal(err)
	}
	// This process deletes the key.
	if err := s.Accounts.DeleteKey(t.Context(), s.owner, key.ID.String()); err != nil {
		t.Errorf("a key cannot be revoked without Redis: %v", err)
	}

	if err := way.Open(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Redis is used", func() bool {
		_, answer := s.healthAnswer(t)
		return answer.Checks["redis"] == "ok"
	})
}

func TestServe_SingleProcessNeedsNoRedis(t *testing.T) {
	t.Parallel()
	s := serveWith(t, map[string]string{"HEARTBEAT_INTERVAL": "200ms"})
	if status, answer := s.healthAnswer(t); status != http.StatusOK || answer.Checks["redis"] != "ok" {
		t.Errorf("/health answers %d: %+v", status, answer)
	}
	if bucket := (storage{s.App}).bucket(); bucket != nil {
		t.Errorf("rates are shared through %v", bucket)
	}
	full, key, err := s.Accounts.CreateKey(t.Context(), s.owner, tenancy.NewKey{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if a := s.get(t, "/public/v1/integrations", full); a.Status != http.StatusOK {
		t.Fatalf("a request is answered with %v", a)
	}
	// A command or another process deletes the key.
	if err := s.accounts.DeleteKey(t.Context(), s.owner, key.ID.String()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the revoked key stops working", func() bool {
		return s.get(t, "/public/v1/integrations", full).Status == http.StatusUnauthorized
	})

	if err := s.db.WriteRole(t.Context(), pg.Clock, func(b *pgx.Batch) { // a second process
		b.Queue(`insert into node (id, home, address, roles, expires_at) values ($1, $1, '', '{edge}', now() + interval '1 hour')`, uuid.New())
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "two processes without Redis are degraded", func() bool {
		s.health.Refresh()
		answers, healthy := s.health.Check(t.Context())
		return healthy && strings.HasPrefix(answers["redis"], "degraded: REDIS_URL is not set, and 2 processes ")
	})
}

func TestHealth_BusyPoolIsNotPostgresFailure(t *testing.T) {
	t.Parallel()
	s := serveWith(t, nil)
	for _, role := range []pg.Role{pg.Tenant, pg.Gate, pg.Keys, pg.Sessions, pg.Clock, pg.Sender} {
		pool := s.db.Pool(role)
		for range pool.Config().MaxConns {
			conn, err := pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Release()
		}
	}
	s.health.Refresh()
	if answers, healthy := s.health.Check(t.Context()); !healthy || answers["postgres"] != "ok" {
		t.Errorf("with every connection in use: %v, healthy %t", answers, healthy)
	}
}
