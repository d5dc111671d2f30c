package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/registration"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

func TestSession_UnknownChoiceSelectsTheFirstOrganization(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	a := tenancytest.New(t, db)
	first, other := tenancytest.Owner(t, a, "a@example.com"), tenancytest.Owner(t, a, "b@example.com")
	second, third := tenancytest.Another(t, a, first, "second"), tenancytest.Another(t, a, first, "third")
	disable(t, db, third)
	token := tenancytest.Login(t, a, "a@example.com")
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
		if p, err := a.Session(t.Context(), token, c.chosen, "", tenancytest.Here); err != nil || p.Org != c.want || p.Person != first.Person {
			t.Errorf("%s: got %+v, %v, want the organization %s", name, p, err, c.want)
		}
	}
	if _, err := a.Session(t.Context(), "no session", second.Org.String(), "", tenancytest.Here); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("an unknown session: %v, want Unauthenticated", err)
	}
	disable(t, db, first)
	if p, err := a.Session(t.Context(), token, first.Org.String(), "", tenancytest.Here); err != nil || p.Org != second.Org {
		t.Errorf("disabled in the first: got %+v, %v, want the organization %s", p, err, second.Org)
	}
	disable(t, db, second)
	p, err := a.Session(t.Context(), token, second.Org.String(), "", tenancytest.Here)
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

func TestSession_EndsWhenUnused(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a := tenancytest.With(t, boot.AccountsDeps{DB: db, Clock: clock.Func(func() time.Time { return at })})
	p := tenancytest.Owner(t, a, "a@example.com")
	token := tenancytest.Login(t, a, "a@example.com")
	for range 3 { // each use extends the session
		at = at.Add(tenancy.SessionIdle - time.Minute)
		if got, err := a.Session(t.Context(), token, "", "", tenancytest.Here); err != nil || got.Org != p.Org {
			t.Fatalf("got %+v, %v, want the organization %s", got, err, p.Org)
		}
	}
	at = at.Add(tenancy.SessionIdle + time.Minute)
	if _, err := a.Session(t.Context(), token, "", "", tenancytest.Here); !fault.Is(err, fault.Unauthenticated) {
		t.Fatalf("an unused session: %v, want Unauthenticated", err)
	}
	token = tenancytest.Login(t, a, "a@example.com")
	if err := a.Logout(t.Context(), token, tenancy.Source{}); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Session(t.Context(), token, "", "", tenancytest.Here); !fault.Is(err, fault.Unauthenticated) {
		t.Fatalf("after Logout: %v, want Unauthenticated", err)
	}
}

func TestSession_IsFoundWhileItsRowIsLocked(t *testing.T) {
	t.Parallel()
	address := dbtest.URL(t)
	now := time.Now()
	a, err := boot.NewAccounts(boot.AccountsConfig{}, boot.AccountsDeps{DB: dbtest.OpenURL(t, address), Clock: clock.Func(func() time.Time { return now })})
	if err != nil {
		t.Fatal(err)
	}
	person, err := a.CreateOwner(t.Context(), registration.NewOwner{Email: "a@example.com", Name: "N", Password: "correct horse", Organization: "O"})
	if err != nil {
		t.Fatal(err)
	}
	signIn, err := a.Login(t.Context(), "a@example.com", "correct horse", tenancytest.Here)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Minute)
	other, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	// The connection belongs to the test.
	defer func() { _ = other.Close(context.WithoutCancel(t.Context())) }()
	seen := func() (at time.Time) {
		t.Helper()
		if err := other.QueryRow(t.Context(), "select seen_at from session").Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	// Another process could hold this lock.
	if _, err := other.Exec(t.Context(), "begin; select from session for update"); err != nil {
		t.Fatal(err)
	}
	if p, err := a.Session(t.Context(), signIn.Session, "", "", tenancytest.Here); err != nil || p.Org != person.Org {
		t.Errorf("got %+v and error %v, want the organization %s", p, err, person.Org)
	}
	if _, err := other.Exec(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	if at := seen(); now.Sub(at) < time.Minute {
		t.Errorf("the use is written at %s while another process writes it", at)
	}
	if _, err := a.Session(t.Context(), signIn.Session, "", "", tenancytest.Here); err != nil {
		t.Error(err)
	}
	if at := seen(); now.Sub(at) > time.Second {
		t.Errorf("the last use is %s, want %s", at, now)
	}
}
