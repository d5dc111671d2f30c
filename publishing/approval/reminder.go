package approval

import (
	"time"

	"crier/publishing"
)

const (
	// reminderLead is how long before the request's expiry or the post's date the reviewer is
	// reminded.
	reminderLead = 24 * time.Hour
	// reminderPause is the minimum time between the request and the reminder.
	reminderPause = 12 * time.Hour
)

// remindAt returns when to remind the reviewer of a request: a day before the post is to be
// published or the request expires, whichever comes first. It returns nil if the reminder would
// follow the request too soon.
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

// isReminder reports whether an email about the request that is sent now is a reminder.
func isReminder(a publishing.Approval, now time.Time) bool {
	return !now.Before(a.RequestedAt.Add(reminderPause))
}
