package approval

import (
	"time"

	"crier/publishing"
)

const (
	// reminderLead is how long before the end of a request, or the date of its post, the reviewer is reminded.
	reminderLead = 24 * time.Hour
	// reminderPause is the shortest time from the request to the reminder.
	reminderPause = 12 * time.Hour
)

// remindAt returns when the reviewer is reminded of a request: a day before the post is to be published, or before the
// request expires, the earlier of the two. It returns nil when that is too soon after the request.
func remindAt(requested, publishDate time.Time) *time.Time {
	last := requested.Add(publishing.ApprovalLife)
	if publishDate.After(requested) && publishDate.Before(last) {
		last = publishDate
	}
	at := last.Add(-reminderLead)
	if at.Before(requested.Add(reminderPause)) {
		return nil
	}
	return &at
}

// isReminder reports whether a mail about a request that is sent at a time is a reminder.
func isReminder(a publishing.Approval, now time.Time) bool {
	return !now.Before(a.RequestedAt.Add(reminderPause))
}
