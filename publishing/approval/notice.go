package approval

import (
	"context"

	"crier/platform/id"
	"crier/platform/text"
	"crier/publishing"
	"crier/publishing/db"
	"crier/tenancy"
)

// maxShownNote is the longest note shown in a notification, in bytes.
const maxShownNote = 300

// notifyApproval stores the notification about an approval request or its answer. If nobody needs
// to be notified, it does nothing.
func notifyApproval(ctx context.Context, tx *db.Tx, to Notices, a publishing.Approval) error {
	n, ok := approvalNotification(a)
	if !ok {
		return nil
	}
	return to.Add(ctx, tx, n)
}

// approvalNotification returns the notification about a request or its answer. All members see the
// notification about a request, but only the requester sees the one about an answer. ok is false if
// nobody needs to be notified because the requester gave the answer or the request ended without an
// answer.
func approvalNotification(a publishing.Approval) (n publishing.Notification, ok bool) {
	answers := map[publishing.ApprovalStatus]publishing.ApprovalAnswer{
		publishing.ApprovalPending: publishing.AnswerPending, publishing.ApprovalApproved: publishing.AnswerApproved,
		publishing.ApprovalRejected: publishing.AnswerRejected,
	}
	answer, ok := answers[a.Status]
	if !ok {
		return n, false
	}
	n = publishing.Notification{
		ID: id.New[publishing.NotificationTag](), Kind: publishing.NotifyApproval, Approval: a.ID, Answer: &answer,
		Post:  a.Post,
		Posts: 1, CreatedAt: a.RequestedAt, LastAt: a.RequestedAt,
	}
	note := a.Note
	if answer != publishing.AnswerPending {
		if a.ResolvedAt == nil || !a.ResolvedBy.IsZero() && a.ResolvedBy == a.Person {
			return n, false
		}
		n.Person, n.CreatedAt, n.LastAt = a.Person, *a.ResolvedAt, *a.ResolvedAt
		note = a.ReviewerNote
	}
	mailAt := n.LastAt.Add(publishing.IncidentMailDelay)
	n.MailAt = &mailAt
	if note != nil {
		cut := text.Line(*note, maxShownNote)
		n.Reason = &cut
	}
	return n, true
}

// endedNotifications returns the notifications about an approval that has ended: one for the
// requester and one for the approving member. Guests get no notifications.
func endedNotifications(a publishing.Approval, reason string) (out []publishing.Notification) {
	answer := publishing.AnswerVoid
	mailAt := a.ResolvedAt.Add(publishing.IncidentMailDelay)
	for _, person := range []tenancy.PersonID{a.Person, a.ResolvedBy} {
		if person.IsZero() || len(out) > 0 && out[0].Person == person {
			continue
		}
		out = append(out, publishing.Notification{
			ID: id.New[publishing.NotificationTag](), Kind: publishing.NotifyApproval, Approval: a.ID, Answer: &answer,
			Post: a.Post, Posts: 1, Person: person, CreatedAt: *a.ResolvedAt, LastAt: *a.ResolvedAt, MailAt: &mailAt,
			Reason: &reason,
		})
	}
	return out
}
