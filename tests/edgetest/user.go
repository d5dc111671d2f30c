package edgetest

import (
	"context"

	"crier/platform/fault"
	"crier/tenancy"
)

func (a accounts) Self(_ context.Context, p tenancy.Principal) (tenancy.Person, tenancy.OrganizationOf, error) {
	return adaPerson(), tenancy.OrganizationOf{Organization: theOrganization(), Role: p.Role}, a.record("Self")
}

func (a accounts) SetProfile(_ context.Context, _ tenancy.Principal, profile tenancy.Profile) (tenancy.Person, error) {
	p := adaPerson()
	p.Name, p.Bio, p.Picture = profile.Name, profile.Bio, profile.Picture
	return p, a.record("SetProfile", profile.Name, profile.Bio, profile.Picture.ID, profile.Picture.Path)
}

func (a accounts) Notifications(context.Context, tenancy.Principal) (tenancy.Notifications, error) {
	return tenancy.DefaultNotifications(), a.record("Notifications")
}

func (a accounts) SetNotifications(_ context.Context, _ tenancy.Principal, n tenancy.Notifications) error {
	return a.record(
		"SetNotifications", n.Success, n.Failure, n.Digest,
		string(n.Approval), string(n.Comment), string(n.Channel), string(n.Billing),
	)
}

func (a accounts) UnsubscribeTopics(token string) ([]tenancy.MailTopic, error) {
	if token != "mail-token" {
		return nil, fault.New(fault.NotFound, "fake", "The link is not valid.")
	}
	return []tenancy.MailTopic{tenancy.TopicFailure, tenancy.TopicChannel}, nil
}

func (a accounts) Unsubscribe(_ context.Context, token string) error {
	if token != "mail-token" {
		return fault.New(fault.NotFound, "fake", "The link is not valid.")
	}
	return a.record("Unsubscribe", token)
}

func (a accounts) Setup(_ context.Context, _ tenancy.Principal, s tenancy.Setup) error {
	return a.record("Setup", s.Name, s.Company, s.Timezone.Name, s.Timezone.Minutes)
}
