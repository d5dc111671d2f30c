package db_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"crier/platform/fault"
	"crier/platform/migrations"
	"crier/platform/pg/local"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

func TestAccounts_UnavailableWithoutPostgres(t *testing.T) {
	t.Parallel()
	discard := slog.New(slog.DiscardHandler)
	s, err := local.Start(t.Context(), local.Config{Dir: t.TempDir(), Log: discard})
	if err != nil {
		t.Fatal(err)
	}
	stop := func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	if err := migrations.Migrate(t.Context(), migrations.Config{URL: s.URL("crier")}, discard); err != nil {
		t.Fatal(err)
	}
	a := tenancytest.New(t, dbtest.OpenURL(t, s.URL("crier")))
	p := tenancytest.Owner(t, a, "a@example.com")
	token := tenancytest.Login(t, a, "a@example.com")
	_, key := tenancytest.NewKey(t, a, p)
	stop()
	for name, ask := range map[string]func() error{
		"CreateOwner": func() error {
			_, err := a.CreateOwner(t.Context(), registration.NewOwner{
				Email: "b@example.com", Password: tenancytest.Password, Organization: "O",
			})
			return err
		},
		"CreateOrganization": func() error { _, err := a.CreateOrganization(t.Context(), p, "another"); return err },
		"Login": func() error {
			_, err := a.Login(t.Context(), "a@example.com", tenancytest.Password, tenancytest.Here)
			return err
		},
		"Session": func() error { _, err := a.Session(t.Context(), token, "", "", tenancytest.Here); return err },
		"Logout":  func() error { return a.Logout(t.Context(), token, tenancy.Source{}) },
		"CreateKey": func() error {
			_, _, err := a.CreateKey(t.Context(), p, tenancy.NewKey{Name: "x"})
			return err
		},
		"DeleteKey": func() error { return a.DeleteKey(t.Context(), p, key.ID.String()) },
		"Authenticate": func() error {
			_, err := a.Authenticate(t.Context(), tenancy.KeyPrefix+strings.Repeat("a", tenancy.KeyLength))
			return err
		},
	} {
		var f *fault.Error
		if err := ask(); !errors.As(err, &f) || f.Kind != fault.Unavailable || f.RetryAfter <= 0 || f.Message == "" {
			t.Errorf("%s: %v, want Unavailable with a message and a RetryAfter", name, err)
		}
	}
}
