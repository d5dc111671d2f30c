// Package tenant stores organizations with their owners for tests, without the use cases of tenancy.
package tenant

import (
	"context"
	"testing"
	"time"

	"crier/platform/pg"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
	"crier/tests/fixture"
)

// New stores a new organization with its owner and returns the owner with a session.
func New(t testing.TB, db *pg.DB) tenancy.Principal {
	t.Helper()
	owner, organization := fixture.Owner(time.Now())
	if err := Add(t.Context(), db, owner, organization); err != nil {
		t.Fatal(err)
	}
	return tenancy.Principal{
		Org: organization.ID, Person: owner.ID, Role: tenancy.RoleSuperAdmin, Via: tenancy.ViaSession, Name: owner.Email,
	}
}

// Join stores a new member of an organization, and returns the member as a principal with a session.
func Join(t testing.TB, db *pg.DB, org tenancy.OrgID, role tenancy.Role) tenancy.Principal {
	t.Helper()
	person, _ := fixture.Owner(time.Now())
	person.Verified = true
	store, err := tenancystore.New(db)
	if err != nil {
		t.Fatal(err)
	}
	err = store.InGate(t.Context(), func(tx *tenancystore.GateTx) error {
		if err := tx.CreatePerson(t.Context(), person); err != nil {
			return err
		}
		entered, err := tx.Enter(t.Context(), org)
		if err != nil {
			return err
		}
		return entered.AddMember(t.Context(), tenancy.Membership{Person: person.ID, Role: role}, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	return tenancy.Principal{Org: org, Person: person.ID, Role: role, Via: tenancy.ViaSession, Name: person.Email}
}

// Leave ends the membership of a principal.
func Leave(t testing.TB, db *pg.DB, p tenancy.Principal) {
	t.Helper()
	store, err := tenancystore.New(db)
	if err == nil {
		err = store.InOrg(t.Context(), p.Org, func(tx *tenancystore.OrgTx) error { return tx.RemoveMember(t.Context(), p.Person) })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Add stores a person and an organization that the person owns, in one transaction. It returns the error of Postgres.
func Add(ctx context.Context, db *pg.DB, owner tenancy.Person, o tenancy.Organization) error {
	store, err := tenancystore.New(db)
	if err != nil {
		return err
	}
	return store.InGate(ctx, func(tx *tenancystore.GateTx) error {
		if err := tx.CreatePerson(ctx, owner); err != nil {
			return err
		}
		org, err := tx.Enter(ctx, o.ID)
		if err != nil {
			return err
		}
		return org.CreateOrganization(ctx, o, owner.ID)
	})
}
