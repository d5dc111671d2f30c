package failpoint

// The first three points are in publishing/scheduler, which calls At. Preparing and Committed are in the connector of the sandbox,
// which calls Panic.
const (
	// Prepared is after the preparation of a send and before its claim is marked as committing.
	Prepared = "prepared"
	// Committing is after that mark and before the call of the platform.
	Committing = "committing"
	// Answered is after the call and before its outcome is stored.
	Answered = "answered"

	// WebhookSending is before the call of an endpoint, and WebhookSent after it and before its outcome is stored. Both
	// are in publishing/webhook, which calls At.
	WebhookSending = "webhook-sending"
	WebhookSent    = "webhook-sent"

	// ReportQueued is in publishing/notification, which calls At: after the mails of incidents are queued and before that is
	// recorded.
	ReportQueued = "report-queued"

	// Preparing is at the start of the preparation in the connector of the sandbox.
	Preparing = "preparing"
	// Committed is after the answer of the sandbox and before its connector returns.
	Committed = "committed"
)
