package notification

import (
	"context"

	"crier/publishing"
	"crier/tenancy"
)

// Preferences looks up which kinds of notifications a person has muted.
type Preferences interface {
	// MutedNotifications returns the kinds that the principal's person has muted. Even if
	// NotifyReconnect is muted, a channel that must be reconnected is shown after posts have
	// failed, because notifications about posts cannot be muted.
	MutedNotifications(ctx context.Context, p tenancy.Principal) ([]publishing.NotificationKind, error)
}

// IncidentMailer queues emails to an organization's members.
type IncidentMailer interface {
	// QueueReports queues one email to each active member who wants any of the reports. The email
	// contains only the reports that the member wants. A report whose id has been queued before is
	// ignored, so QueueReports can be repeated after a crash. On an instance that sends no email,
	// QueueReports does nothing.
	QueueReports(ctx context.Context, org tenancy.OrgID, list []tenancy.Report) error
}
