package failpoint

// The scheduler reaches the first three points and calls At. The sandbox connector reaches
// Preparing and Committed and calls Panic.
const (
	// Prepared is reached after a send is prepared and before its claim is marked as committing.
	Prepared = "prepared"
	// Committing is reached after the claim is marked and before the platform is called.
	Committing = "committing"
	// Answered is reached after the call and before its outcome is stored.
	Answered = "answered"

	// WebhookSending is reached before an endpoint is called. WebhookSent is reached after the call
	// and before its outcome is stored. Both are in publishing/webhook, which calls At.
	WebhookSending = "webhook-sending"
	WebhookSent    = "webhook-sent"

	// ReportQueued is reached after incident emails are queued and before the queuing is recorded.
	// It is in publishing/notification, which calls At.
	ReportQueued = "report-queued"

	// Preparing is reached when the sandbox connector begins to prepare a post.
	Preparing = "preparing"
	// Committed is reached after the sandbox has responded and before the sandbox connector
	// returns.
	Committed = "committed"
)
