package publishing

import "time"

// The limits of reports.
const (
	// MaxReportDays is the longest window.
	MaxReportDays = 365
	// MaxReportErrors is the largest number of recent errors in a report.
	MaxReportErrors = 20
)

// GetReport requests a report on an organization's or a customer's posts over a window of days.
type GetReport struct {
	// Days is the length of the window, from 1 to MaxReportDays. Today is its last day.
	Days int
	// Customer is the id of a customer, or "" for the whole organization.
	Customer string
}

// Report counts threads by the state of Thread.Effective. Each thread is counted on its publish
// date.
type Report struct {
	// From is the start of the first day of the window in the organization's time zone, and To is
	// the present.
	From, To time.Time
	// Customer is nil if the report covers the whole organization.
	Customer *Customer
	// Posts counts the threads in the window, plus the drafts and scheduled posts of all later
	// days.
	Posts    PostCounts
	Channels ChannelCounts
	// Platforms are sorted by identifier.
	Platforms []PlatformReport
	// Days are the days of the window, earliest first. Each starts at midnight in the
	// organization's time zone.
	Days []DayReport
	// Errors are the latest failures in the window, latest first.
	Errors []PostFailure
}

// PostCounts counts threads by state.
type PostCounts struct{ Draft, Scheduled, Published, Failed int }

// ChannelCounts counts connected channels. A channel that must be reconnected or is disabled is not
// active.
type ChannelCounts struct{ Total, Active, Disabled, RefreshNeeded int }

// PlatformReport is a report's section on one platform.
type PlatformReport struct {
	Platform string
	// Channels is the number of connected channels. It is 0 if only posts of disconnected channels
	// remain.
	Channels int
	Posts    PostCounts
}

// DayReport is a report's section on one day.
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
