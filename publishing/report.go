package publishing

import "time"

// The limits of reports.
const (
	// MaxReportDays is the longest window.
	MaxReportDays = 365
	// MaxReportErrors is the maximum number of recent errors in a report.
	MaxReportErrors = 20
)

// GetReport requests a report on the posts of an organization or a customer during a window of
// days.
type GetReport struct {
	// Days is the length of the window, from 1 to MaxReportDays. Today is its last day.
	Days int
	// Customer is the id of a customer, or "" for the whole organization.
	Customer string
}

// Report counts threads by state, as determined by Thread.Effective. Each thread is counted on its
// publish date.
type Report struct {
	// From is the start of the first day of the window, in the organization's time zone. To is the
	// time at which the report was made.
	From, To time.Time
	// Customer is nil if the report covers the whole organization.
	Customer *Customer
	// Posts counts the threads in the window. It also includes the drafts and scheduled posts on
	// all later days.
	Posts    PostCounts
	Channels ChannelCounts
	// Platforms are sorted by identifier.
	Platforms []PlatformReport
	// Days holds one report per day of the window, earliest first. Each day starts at midnight in
	// the organization's time zone.
	Days []DayReport
	// Errors holds the most recent failures in the window, newest first.
	Errors []PostFailure
}

// PostCounts counts threads by state.
type PostCounts struct{ Draft, Scheduled, Published, Failed int }

// ChannelCounts counts connected channels. A channel is not active if it is disabled or must be
// reconnected.
type ChannelCounts struct{ Total, Active, Disabled, RefreshNeeded int }

// PlatformReport is the section of a report that covers one platform.
type PlatformReport struct {
	Platform string
	// Channels is the number of connected channels. It is 0 if the platform appears only because of
	// posts on channels that have since been disconnected.
	Channels int
	Posts    PostCounts
}

// DayReport is the section of a report that covers one day.
type DayReport struct {
	Start time.Time
	Posts PostCounts
}

// PostFailure is a thread that failed.
type PostFailure struct {
	// Post is the thread's first post.
	Post     PostID
	Channel  ChannelID
	Name     string
	Platform string
	// Message is a human-readable explanation of the failure.
	Message string
	Date    time.Time
}
