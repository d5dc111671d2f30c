package service_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/migrations"
	"crier/platform/pg"
	"crier/platform/pg/local"
	"crier/tenancy"
	tenancyservice "crier/tenancy/service"
	"crier/tests/dbtest"
)

const password = "correct horse"

// here is where the requests of the tests come from.
var here = tenancy.Source{Client: "203.0.113.9", Site: "203.0.113.9"}

// accountsOf returns the accounts of an instance that takes all registrations.
func accountsOf(t *testing.T, d tenancyservice.Deps) *tenancyservice.Accounts {
	t.Helper()
	a, err := tenancyservice.New(tenancyservice.Config{
		Registration: tenancyservice.RegisterOpen, DeleteGrace: time.Hour, BaseURL: "https://crier.test",
		FrontendURL: "https://crier.test",
	}, d)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func accounts(t *testing.T, db *pg.DB) *tenancyservice.Accounts {
	t.Helper()
	return accountsOf(t, tenancyservice.Deps{DB: db, Clock: clock.System{}})
}

func owner(t *testing.T, a *tenancyservice.Accounts, email string) tenancy.Principal {
	t.Helper()
	p, err := a.CreateOwner(t.Context(), tenancyservice.NewOwner{Email: email, Name: "N", Password: password, Organization: "O"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func login(t *testing.T, a *tenancyservice.Accounts, email string) string {
	t.Helper()
	signIn, err := a.Login(t.Context(), email, password, here)
	if err != nil {
		t.Fatal(err)
	}
	return signIn.Session
}

// newKey returns a new API key of the principal's organization, in full and with its id.
func newKey(t *testing.T, a *tenancyservice.Accounts, p tenancy.Principal) (string, tenancy.APIKey) {
	t.Helper()
	full, key, err := a.CreateKey(t.Context(), p, tenancy.NewKey{Name: "k"})
	if err != nil {
		t.Fatal(err)
	}
	return full, key
}

// another returns the owner of a further organization of the principal's person.
func another(t *testing.T, a *tenancyservice.Accounts, p tenancy.Principal, name string) tenancy.Principal {
	t.Helper()
	o, err := a.CreateOrganization(t.Context(), p, name)
	if err != nil {
		t.Fatal(err)
	}
	p.Org = o.ID
	return p
}

// hasField reports whether an error names the member of the input.
func hasField(err error, name string) bool {
	var f *fault.Error
	return errors.As(err, &f) && slices.ContainsFunc(f.Fields, func(x fault.Field) bool { return x.Name == name })
}

func TestAccounts_TextsThatCannotBeStoredAreInvalid(t *testing.T) {
	t.Parallel()
	a := accounts(t, dbtest.Open(t))
	p := owner(t, a, "a@example.com")
	for name, bad := range map[string]string{"NUL": "a\x00b@example.com", "no UTF-8": "a\xff@example.com"} {
		whole := tenancyservice.NewOwner{Email: "b@example.com", Name: "N", Password: password, Organization: "O"}
		asEmail, asName, asOrganization := whole, whole, whole
		asEmail.Email, asName.Name, asOrganization.Organization = bad, bad, bad
		for field, n := range map[string]tenancyservice.NewOwner{"email": asEmail, "name": asName, "organization": asOrganization} {
			if _, err := a.CreateOwner(t.Context(), n); !fault.Is(err, fault.Invalid) || !hasField(err, field) {
				t.Errorf("an owner with %s in the %s: %v, want Invalid with this field", name, field, err)
			}
		}
		if _, err := a.CreateOrganization(t.Context(), p, bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("an organization with %s: %v, want Invalid", name, err)
		}
		if _, _, err := a.CreateKey(t.Context(), p, tenancy.NewKey{Name: bad}); !fault.Is(err, fault.Invalid) {
			t.Errorf("a key with %s: %v, want Invalid", name, err)
		}
		_, wrong := a.Login(t.Context(), "nobody@example.com", password, here)
		if _, err := a.Login(t.Context(), bad, password, here); !fault.Is(err, fault.Invalid) || err.Error() != wrong.Error() {
			t.Errorf("a log-in with %s: %v, want the error of an unknown address: %v", name, err, wrong)
		}
	}
	owner(t, a, "b@example.com") // the refused owners were not stored
}

func TestSession_UnknownChoiceIsTheFirstOrganization(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	a := accounts(t, db)
	first, other := owner(t, a, "a@example.com"), owner(t, a, "b@example.com")
	second, third := another(t, a, first, "second"), another(t, a, first, "third")
	disable(t, db, third)
	token := login(t, a, "a@example.com")
	for name, c := range map[string]struct {
		chosen string
		want   tenancy.OrgID
	}{
		"no choice":                   {chosen: "", want: first.Org},
		"the first":                   {chosen: first.Org.String(), want: first.Org},
		"another of the person's":     {chosen: second.Org.String(), want: second.Org},
		"one where they are disabled": {chosen: third.Org.String(), want: first.Org},
		"one of another person":       {chosen: other.Org.String(), want: first.Org},
		"one that does not exist":     {chosen: id.New[tenancy.OrgTag]().String(), want: first.Org},
		"no id":                       {chosen: "undefined", want: first.Org},
		"NUL":                         {chosen: "\x00", want: first.Org},
	} {
		if p, err := a.Session(t.Context(), token, c.chosen, "", here); err != nil || p.Org != c.want || p.Person != first.Person {
			t.Errorf("%s: got %+v, %v, want the organization %s", name, p, err, c.want)
		}
	}
	if _, err := a.Session(t.Context(), "no session", second.Org.String(), "", here); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("an unknown session: %v, want Unauthenticated", err)
	}
	disable(t, db, first)
	if p, err := a.Session(t.Context(), token, first.Org.String(), "", here); err != nil || p.Org != second.Org {
		t.Errorf("disabled in the first: got %+v, %v, want the organization %s", p, err, second.Org)
	}
	disable(t, db, second)
	p, err := a.Session(t.Context(), token, second.Org.String(), "", here)
	if err != nil || !p.Org.IsZero() || p.Role != "" || p.Access != tenancy.AccessNone || p.Person != first.Person {
		t.Errorf("disabled in all: got %+v, %v, want the person without an organization and its access", p, err)
	}
}

func disable(t *testing.T, db *pg.DB, p tenancy.Principal) {
	t.Helper()
	err := db.WriteOrg(t.Context(), p.Org.UUID(), func(b *pgx.Batch) { b.Queue("update member set disabled = true where person_id = $1", p.Person) })
	if err != nil {
		t.Fatal(err)
	}
}

func TestSession_EndsWhenItIsNotUsed(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a := accountsOf(t, tenancyservice.Deps{DB: db, Clock: clock.Func(func() time.Time { return at })})
	p := owner(t, a, "a@example.com")
	token := login(t, a, "a@example.com")
	for range 3 { // each use extends the session
		at = at.Add(tenancy.SessionIdle - time.Minute)
		if got, err := a.Session(t.Context(), token, "", "", here); err != nil || got.Org != p.Org {
			t.Fatalf("got %+v, %v, want the organization %s", got, err, p.Org)
		}
	}
	at = at.Add(tenancy.SessionIdle + time.Minute)
	if _, err := a.Session(t.Context(), token, "", "", here); !fault.Is(err, fault.Unauthenticated) {
		t.Fatalf("an unused session: %v, want Unauthenticated", err)
	}
	token = login(t, a, "a@example.com")
	if err := a.Logout(t.Context(), token, tenancy.Source{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Session(t.Context(), token, "", "", here); !fault.Is(err, fault.Unauthenticated) {
		t.Fatalf("after Logout: %v, want Unauthenticated", err)
	}
}

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
	a := accounts(t, dbtest.OpenURL(t, s.URL("crier")))
	p := owner(t, a, "a@example.com")
	token := login(t, a, "a@example.com")
	_, key := newKey(t, a, p)
	stop()
	for name, ask := range map[string]func() error{
		"CreateOwner": func() error {
			_, err := a.CreateOwner(t.Context(), tenancyservice.NewOwner{
				Email: "b@example.com", Password: password, Organization: "O",
			})
			return err
		},
		"CreateOrganization": func() error { _, err := a.CreateOrganization(t.Context(), p, "another"); return err },
		"Login":              func() error { _, err := a.Login(t.Context(), "a@example.com", password, here); return err },
		"Session":            func() error { _, err := a.Session(t.Context(), token, "", "", here); return err },
		"Logout":             func() error { return a.Logout(t.Context(), token, tenancy.Source{}) },
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

func TestUpdateOrganization_StoresValidZones(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	a := accounts(t, db)
	p := owner(t, a, "zone@example.com")
	stored := func() (zone string) {
		t.Helper()
		if err := db.InOrg(t.Context(), p.Org.UUID(), func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "select timezone from organization").Scan(&zone)
		}); err != nil {
			t.Fatal(err)
		}
		return zone
	}
	for asked, want := range map[tenancy.ZoneRequest]string{
		{Name: "Europe/Berlin"}: "Europe/Berlin", {Minutes: 330, IsOffset: true}: "+05:30", {IsOffset: true}: "UTC",
	} {
		o, err := a.UpdateOrganization(t.Context(), p, tenancy.OrganizationChange{Timezone: &asked})
		if err != nil {
			t.Fatal(err)
		}
		if o.Timezone != want || stored() != want || o.Name != "O" {
			t.Errorf("%+v is answered with %+v and stored as %s, want %s and the rest as it was", asked, o, stored(), want)
		}
	}
	unknown := p
	unknown.Org = id.New[tenancy.OrgTag]()
	for name, c := range map[string]struct {
		who    tenancy.Principal
		change tenancy.OrganizationChange
		want   fault.Kind
	}{
		"nothing":         {who: p, change: tenancy.OrganizationChange{}, want: fault.Invalid},
		"an empty zone":   {who: p, change: tenancy.OrganizationChange{Timezone: &tenancy.ZoneRequest{}}, want: fault.Invalid},
		"no organization": {who: unknown, change: tenancy.OrganizationChange{Timezone: &tenancy.ZoneRequest{Name: "UTC"}}, want: fault.NotFound},
	} {
		if _, err := a.UpdateOrganization(t.Context(), c.who, c.change); fault.KindOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}
