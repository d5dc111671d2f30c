package failpoint

// The points of publishing.
const (
	Prepared   = "prepared"   // everything is ready, the mark before the call is not written yet
	Committing = "committing" // the mark is written, the call has not begun
	Answered   = "answered"   // the call is over, its outcome is not written yet

	Preparing = "preparing" // the connector of the sandbox was asked to prepare a part
	Committed = "committed" // the sandbox has answered the call, its connector has not returned yet
)
