// Package tenancytest sets up what the tests of tenancy need: the use cases of all nouns, connected
// as in the service, with people, organizations and keys.
package tenancytest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/apps/boot"
	"crier/platform/clock"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/deletion"
	"crier/tenancy/registration"
)

// Password is the password of the people that Owner creates.
const Password = "correct horse"

// Here is the source of the tests' requests.
var Here = tenancy.Source{Client: "203.0.113.9", Site: "203.0.113.9"}

// New returns the account use cases of an instance on a database. The instance accepts all
// registrations.
func New(t *testing.T, db *pg.DB) *boot.Accounts {
	t.Helper()
	return With(t, boot.AccountsDeps{DB: db, Clock: clock.System{}})
}

// With is like New with other dependencies.
func With(t *testing.T, d boot.AccountsDeps) *boot.Accounts {
	t.Helper()
	a, err := boot.NewAccounts(boot.AccountsConfig{
		Registration: registration.Config{Registration: registration.RegisterOpen},
		Deletion:     deletion.Config{DeleteGrace: time.Hour}, BaseURL: "https://crier.test",
		FrontendURL: "https://crier.test",
	}, d)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Owner creates a person who owns an organization.
func Owner(t *testing.T, a *boot.Accounts, email string) tenancy.Principal {
	t.Helper()
	p, err := a.CreateOwner(t.Context(), registration.NewOwner{
		Email: email, Name: "N", Password: Password, Organization: "O",
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Login returns the token of a new session for a person that Owner created.
func Login(t *testing.T, a *boot.Accounts, email string) string {
	t.Helper()
	signIn, err := a.Login(t.Context(), email, Password, Here)
	if err != nil {
		t.Fatal(err)
	}
	return signIn.Session
}

// NewKey returns a new API key of the principal's organization: the full key, and its record.
func NewKey(t *testing.T, a *boot.Accounts, p tenancy.Principal) (string, tenancy.APIKey) {
	t.Helper()
	full, key, err := a.CreateKey(t.Context(), p, tenancy.NewKey{Name: "k"})
	if err != nil {
		t.Fatal(err)
	}
	return full, key
}

// Another returns the owner of a further organization that belongs to the principal's person.
func Another(t *testing.T, a *boot.Accounts, p tenancy.Principal, name string) tenancy.Principal {
	t.Helper()
	o, err := a.CreateOrganization(t.Context(), p, name)
	if err != nil {
		t.Fatal(err)
	}
	p.Org = o.ID
	return p
}

// Gate executes a statement with the role pg.Gate, which sees people and credentials.
func Gate(t *testing.T, db *pg.DB, sql string, args ...any) {
	t.Helper()
	if err := db.InRole(t.Context(), pg.Gate, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// Alter executes statements as the owner of a database.
func Alter(t *testing.T, address string, statements ...string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(t.Context()) }() // the database is dropped with it
	for _, sql := range statements {
		if _, err := c.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// Publishing fakes tenancy's port to publishing. A purge of the organization Slow lasts until its
// context ends.
type Publishing struct {
	Slow tenancy.OrgID
	// IsStopped lists the organizations that Stopped returns.
	IsStopped []tenancy.OrgID
	// Synced records the calls of Stop and Resume. Resume returns Fails.
	Synced []string
	Fails  error
}

// Stop records the call.
func (p *Publishing) Stop(_ context.Context, org tenancy.OrgID, _ string) error {
	p.Synced = append(p.Synced, "stop "+org.String())
	return nil
}

// Resume records the call.
func (p *Publishing) Resume(_ context.Context, org tenancy.OrgID, _ string, _ bool) error {
	p.Synced = append(p.Synced, "resume "+org.String())
	return p.Fails
}

// Stopped returns the given organizations that are in IsStopped.
func (p *Publishing) Stopped(_ context.Context, orgs []tenancy.OrgID) (out []tenancy.OrgID, err error) {
	for _, org := range orgs {
		if slices.Contains(p.IsStopped, org) {
			out = append(out, org)
		}
	}
	return out, nil
}

// TakeMade returns nothing.
func (p *Publishing) TakeMade(context.Context, pg.Querier, tenancy.Maker) (tenancy.CreatedBy, error) {
	return tenancy.CreatedBy{}, nil
}

// ForgetReviewer does nothing.
func (p *Publishing) ForgetReviewer(context.Context, string) error { return nil }

// Purge deletes nothing. For the organization Slow, it waits until ctx ends.
func (p *Publishing) Purge(ctx context.Context, org tenancy.OrgID) (int, error) {
	if org == p.Slow {
		<-ctx.Done()
	}
	return 0, ctx.Err()
}
