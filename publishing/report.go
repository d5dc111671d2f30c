package publishing

import "time"

// The limits of reports.
const (
	// MaxReportDays is the longest window.
	MaxReportDays = 365
	// MaxReportErrors is the largest number of recent errors in a report.
	MaxReportErrors = 20
)

// GetReport asks what became of the posts of an organization or a customer in a window of days.
type GetReport struct {
	// Days is the length of the window, from 1 to MaxReportDays. Today is its last day.
	Days int
	// Customer is the id of a customer, or "" for the whole organization.
	Customer string
}

// Report counts threads by the state of Thread.Effective. A thread counts on its publish date.
type Report struct {
	// From is the start of the first day of the window in the organization's time zone, and To is
	// the present.
	From, To time.Time
	// Customer is nil in the report of a whole organization.
	Customer *Customer
	// Posts counts the threads of the window, and the drafts and scheduled posts of all later days.
	Posts    PostCounts
	Channels ChannelCounts
	// Platforms are sorted by identifier.
	Platforms []PlatformReport
	// Days are the days of the window, the earliest first. Each starts at midnight in the
	// organization's time zone.
	Days []DayReport
	// Errors are the latest failures of the window, the latest first.
	Errors []PostFailure
}

// PostCounts counts threads by state.
type PostCounts struct{ Draft, Scheduled, Published, Failed int }

// ChannelCounts counts connected channels. A channel that must be reconnected or is disabled is not
// active.
type ChannelCounts struct{ Total, Active, Disabled, RefreshNeeded int }

// PlatformReport is the part of a report that concerns one platform.
type PlatformReport struct {
	Platform string
	// Channels is the number of connected channels. It is 0 if only posts of disconnected channels
	// remain.
	Channels int
	Posts    PostCounts
}

// DayReport is the part of a report that concerns one day.
type DayReport struct {
	Start time.Time
	Posts PostCounts
}

// PostFailure is a thread that failed.
type PostFailure struct {
	// Post is the first post of the thread.
	Post     PostID
	Channel  ChannelID
	Name     string
	Platform string
	// Message is for people.
	Message string
	Date    time.Time
}
