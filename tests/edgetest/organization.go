package edgetest

import (
	"context"
	"time"

	"crier/platform/fault"
	"crier/tenancy"
)

func (a accounts) Organizations(context.Context, tenancy.Principal) ([]tenancy.OrganizationOf, error) {
	return []tenancy.OrganizationOf{{Organization: theOrganization(), Role: tenancy.RoleAdmin}},
		a.record("Organizations")
}

func (a accounts) CreateOrganization(
	_ context.Context, _ tenancy.Principal, name string,
) (tenancy.Organization, error) {
	o := theOrganization()
	o.Name = name
	return o, a.record("CreateOrganization", name)
}

func (a accounts) ChooseOrganization(_ context.Context, _ tenancy.Principal, org string) error {
	if org != OrgID.String() {
		return fault.New(fault.Forbidden, "fake", "You are not a member.")
	}
	return a.record("ChooseOrganization", org)
}

func (a accounts) Offer(_ context.Context, p tenancy.Principal, token string) (tenancy.Offer, bool, error) {
	err := a.record("Offer", p.Name, token)
	switch token {
	case "spent":
		return tenancy.Offer{}, false, err
	case "later":
		return tenancy.Offer{}, false, fault.New(fault.Unavailable, "fake", "The service is not available.")
	}
	return tenancy.Offer{Organization: "Acme", Role: tenancy.RoleAdmin}, true, err
}

func (a accounts) JoinOrganization(_ context.Context, p tenancy.Principal, token string) (tenancy.OrgID, error) {
	err := a.record("JoinOrganization", p.Name, token)
	switch token {
	case "spent":
		return tenancy.OrgID{}, err
	case "foreign":
		return tenancy.OrgID{}, fault.New(fault.Forbidden, "fake", "The invitation is for another address.")
	case "later":
		return tenancy.OrgID{}, fault.New(fault.Unavailable, "fake", "The service is not available.")
	}
	return OrgID, err
}

func (a accounts) Organization(context.Context, tenancy.Principal) (tenancy.Organization, error) {
	return theOrganization(), a.record("Organization")
}

func (a accounts) UpdateOrganization(
	_ context.Context, _ tenancy.Principal, c tenancy.OrganizationChange,
) (tenancy.Organization, error) {
	o := theOrganization()
	if c.Name != nil {
		o.Name = *c.Name
	}
	if c.Timezone != nil {
		o.Timezone = c.Timezone.Name
	}
	return o, a.record("UpdateOrganization", o.Name, o.Timezone, c.Description != nil)
}

func (a accounts) Audit(
	_ context.Context, _ tenancy.Principal, q tenancy.AuditQuery,
) ([]tenancy.AuditEvent, bool, error) {
	return []tenancy.AuditEvent{
			{
				ID: auditID, At: Day, Person: PersonID, Actor: Ada, Via: tenancy.ViaSession,
				Action: tenancy.ActionKeyCreated, Subject: `=HYPERLINK("x")`, Address: "203.0.113.9",
			},
			{
				ID: auditID, At: Day, Actor: "+bot", Via: tenancy.ViaKey, Key: KeyID, Impersonator: "@root",
				Action: tenancy.ActionPaused, Subject: "-1",
			},
		}, true, a.record(
			"Audit", q.From.Format(time.DateOnly), q.To.Format(time.DateOnly), q.Actor, q.Action, q.Page, q.Limit,
		)
}

func (a accounts) DeleteAccount(_ context.Context, _ tenancy.Principal, proof tenancy.Proof) error {
	if err := prove(proof.Password); err != nil {
		return err
	}
	return a.record("DeleteAccount")
}

func (a accounts) DeleteOrganization(_ context.Context, _ tenancy.Principal, proof tenancy.Proof) error {
	if err := prove(proof.Password); err != nil {
		return err
	}
	return a.record("DeleteOrganization")
}

func (a accounts) RestoreOrganization(_ context.Context, _ tenancy.Principal, org string) error {
	return a.record("RestoreOrganization", org)
}
