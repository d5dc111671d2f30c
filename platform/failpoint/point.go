package failpoint

// The first three points are in publishing/scheduler, which calls At. Preparing and Committed are
// in the sandbox connector, which calls Panic.
const (
	// Prepared is after a send is prepared and before its claim is marked as committing.
	Prepared = "prepared"
	// Committing is after the claim is marked and before the platform is called.
	Committing = "committing"
	// Answered is after the call and before its outcome is stored.
	Answered = "answered"

	// WebhookSending is before an endpoint is called. WebhookSent is after the call and before its
	// outcome is stored. Both are in publishing/webhook, which calls At.
	WebhookSending = "webhook-sending"
	WebhookSent    = "webhook-sent"

	// ReportQueued is after the mails of incidents are queued and before that fact is recorded. It
	// is in publishing/notification, which calls At.
	ReportQueued = "report-queued"

	// Preparing is at the start of the preparation in the sandbox connector.
	Preparing = "preparing"
	// Committed is after the sandbox responds and before its connector returns.
	Committed = "committed"
)
