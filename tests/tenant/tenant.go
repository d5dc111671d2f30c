// Package tenant stores organizations with their owners for tests, without tenancy's use cases.
package tenant

import (
	"context"
	"testing"
	"time"

	"crier/platform/clock"
	"crier/platform/pg"
	"crier/tenancy"
	tenancydb "crier/tenancy/db"
	memberstore "crier/tenancy/member/store"
	organizationstore "crier/tenancy/organization/store"
	"crier/tests/fixture"
)

// New stores a new organization with its owner, and returns the owner with a session.
func New(t testing.TB, db *pg.DB) tenancy.Principal {
	t.Helper()
	owner, organization := fixture.Owner(time.Now())
	if err := Add(t.Context(), db, owner, organization); err != nil {
		t.Fatal(err)
	}
	return tenancy.Principal{
		Org: organization.ID, Person: owner.ID, Role: tenancy.RoleSuperAdmin,
		Via: tenancy.ViaSession, Name: owner.Email,
	}
}

// Join stores a new member of an organization, and returns the member with a session.
func Join(t testing.TB, db *pg.DB, org tenancy.OrgID, role tenancy.Role) tenancy.Principal {
	t.Helper()
	person, _ := fixture.Owner(time.Now())
	person.Verified = true
	store, err := tenancydb.New(db, clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	err = store.InGate(t.Context(), "tenant.Join", func(tx *tenancydb.GateTx) error {
		if err := tenancydb.CreatePerson(t.Context(), tx, person); err != nil {
			return err
		}
		entered, err := tx.Enter(t.Context(), org)
		if err != nil {
			return err
		}
		return tenancydb.AddMember(t.Context(), entered, tenancy.Membership{Person: person.ID, Role: role}, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	return tenancy.Principal{Org: org, Person: person.ID, Role: role, Via: tenancy.ViaSession, Name: person.Email}
}

// Leave ends the principal's membership.
func Leave(t testing.TB, db *pg.DB, p tenancy.Principal) {
	t.Helper()
	store, err := tenancydb.New(db, clock.System{})
	if err == nil {
		err = store.InOrg(t.Context(), "tenant.Leave", p.Org, func(tx *tenancydb.OrgTx) error {
			return memberstore.RemoveMember(t.Context(), tx, p.Person)
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Add stores a person and an organization owned by that person in one transaction. It returns the
// error from Postgres.
func Add(ctx context.Context, db *pg.DB, owner tenancy.Person, o tenancy.Organization) error {
	store, err := tenancydb.New(db, clock.System{})
	if err != nil {
		return err
	}
	return store.InGate(ctx, "tenant.Add", func(tx *tenancydb.GateTx) error {
		if err := tenancydb.CreatePerson(ctx, tx, owner); err != nil {
			return err
		}
		org, err := tx.Enter(ctx, o.ID)
		if err != nil {
			return err
		}
		return organizationstore.CreateOrganization(ctx, org, o, owner.ID)
	})
}
