package notification

import (
	"context"

	"crier/publishing"
	"crier/tenancy"
)

// Preferences tells which notifications a person does not want in the bell.
type Preferences interface {
	// MutedNotifications returns the kinds that the principal's person has switched off. A channel
	// that must be reconnected is still shown once posts have failed, because news about posts
	// cannot be switched off.
	MutedNotifications(ctx context.Context, p tenancy.Principal) ([]publishing.NotificationKind, error)
}

// IncidentMailer queues mails to the members of an organization.
type IncidentMailer interface {
	// QueueReports queues one mail with reports of an organization to each active member who wants
	// some of them. A report whose id was queued before is ignored, so QueueReports may be repeated
	// after a crash. It does nothing on an instance that sends no mail.
	QueueReports(ctx context.Context, org tenancy.OrgID, list []tenancy.Report) error
}
