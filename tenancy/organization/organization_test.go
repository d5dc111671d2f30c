package organization_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/tenancy"
	"crier/tests/dbtest"
	"crier/tests/tenancytest"
)

func TestUpdateOrganization_StoresValidZones(t *testing.T) {
	t.Parallel()
	db := dbtest.Open(t)
	a := tenancytest.New(t, db)
	p := tenancytest.Owner(t, a, "zone@example.com")
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
