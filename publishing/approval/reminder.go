package approval

import (
	"time"

	"crier/publishing"
)

const (
	// reminderLead is how far ahead the reviewer is reminded that a request will expire or that its
	// post will be published.
	reminderLead = 24 * time.Hour
	// reminderPause is the minimum time between the request and the reminder.
	reminderPause = 12 * time.Hour
)

// remindAt returns the time at which to remind the reviewer of a request. This is a day before the
// post is published or the request expires, whichever comes first. If that is too soon after the
// request, remindAt returns nil.
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

// isReminder reports whether an email about the request is a reminder if it is sent at the time
// now.
func isReminder(a publishing.Approval, now time.Time) bool {
	return !now.Before(a.RequestedAt.Add(reminderPause))
}
