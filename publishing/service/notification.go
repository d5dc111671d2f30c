package service

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/connector"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

const (
	// maxShownName and maxShownReason are in bytes of a sentence.
	maxShownName   = 128
	maxShownReason = 300
)

// Notifications are the use cases of the bell. It is safe for concurrent use.
type Notifications struct {
	core
	preferences publishing.Preferences
}

// NewNotifications returns the use cases of the bell.
func NewNotifications(cfg Config, deps Deps, preferences publishing.Preferences) *Notifications {
	return &Notifications{core: newCore(cfg, deps), preferences: preferences}
}

// List returns a page, from 0, of the notifications of the organization: those for all members, and those for the person
// of the principal. Activity between two calls moves notifications to the first page. It returns Invalid for a page that
// cannot be.
func (s *Notifications) List(
	ctx context.Context, p tenancy.Principal, page int,
) (publishing.NotificationPage, error) {
	const op = "publishing.ListNotifications"
	if err := checkNotificationPage(op, page); err != nil {
		return publishing.NotificationPage{}, err
	}
	out, err := publishingstore.Notifications(ctx, s.store, p.Org, p.Person, page, publishing.NotificationsPerPage)
	if err != nil {
		return out, internal(op, err)
	}
	s.describe(out.Notifications)
	return out, nil
}

// checkNotificationPage returns Invalid for a page that cannot be.
func checkNotificationPage(op string, page int) error {
	if page >= 0 && page <= publishing.MaxNotificationPage {
		return nil
	}
	return &fault.Error{
		Kind: fault.Invalid, Op: op, Message: "The page is not valid.", Fields: []fault.Field{{
			Name: "page", Message: fmt.Sprintf("must be from 0 to %d", publishing.MaxNotificationPage),
		}},
	}
}

// Unread returns how many notifications the person has not read, without those that the person has switched off.
func (s *Notifications) Unread(ctx context.Context, p tenancy.Principal) (int, error) {
	const op = "publishing.UnreadNotifications"
	muted, err := s.preferences.MutedNotifications(ctx, p)
	if err != nil {
		return 0, err
	}
	n, err := publishingstore.UnreadNotifications(ctx, s.store, p.Org, p.Person, muted)
	if err != nil {
		return 0, internal(op, err)
	}
	return n, nil
}

// Read returns a page, from 0, of the notifications that the person wants to see, and until when the person had read all
// before. The person has read what is returned then, unless an administrator of the instance acts as the person. It
// returns Invalid for a page that cannot be.
func (s *Notifications) Read(
	ctx context.Context, p tenancy.Principal, page int,
) ([]publishing.ListedNotification, time.Time, error) {
	const op = "publishing.ReadNotifications"
	if err := checkNotificationPage(op, page); err != nil {
		return nil, time.Time{}, err
	}
	muted, err := s.preferences.MutedNotifications(ctx, p)
	if err != nil {
		return nil, time.Time{}, err
	}
	out, before, err := publishingstore.ReadNotifications(ctx, s.store, p.Org, publishingstore.NotificationsRead{
		Person: p.Person, Muted: muted, Page: page, Limit: publishing.NotificationsPerPage, Mark: p.Behind.IsZero(),
	})
	if err != nil {
		return nil, before, internal(op, err)
	}
	s.describe(out)
	return out, before, nil
}

// describe sets the sentences of notifications, and whether they are closed.
func (s *Notifications) describe(list []publishing.ListedNotification) {
	for i := range list {
		list[i].Content, list[i].IsClosed = s.sentence(list[i]), list[i].IsOver(s.deps.Clock.Now())
	}
}

// sentence returns what a notification says. Names and reasons are text of others, which is bounded and has no line
// breaks or control characters.
func (s *Notifications) sentence(n publishing.ListedNotification) string {
	what := n.Report().What(s.channelName(n))
	if n.Reason == nil {
		return what + "."
	}
	reason := connector.Clean(*n.Reason, maxShownReason)
	if reason == "" {
		return what + "."
	}
	return what + ": " + reason
}

// channelName returns the name of a channel and its platform.
func (s *Notifications) channelName(n publishing.ListedNotification) string {
	if n.Kind == publishing.NotifyPublished && n.Channel.IsZero() {
		return "several channels"
	}
	name := connector.Clean(n.ChannelName, maxShownName)
	if name == "" {
		return "a channel"
	}
	platform := n.Connector
	if c, ok := s.deps.Connectors.Get(n.Connector); ok {
		platform = cmp.Or(c.Describe().Name, platform)
	}
	return fmt.Sprintf("“%s” (%s)", name, platform)
}

// notifyApproval stores the notification of a request for approval or of its answer, if there is one.
func notifyApproval(ctx context.Context, tx *publishingstore.Tx, a publishing.Approval) error {
	n, ok := approvalNotification(a)
	if !ok {
		return nil
	}
	return publishingstore.AddNotification(ctx, tx, n)
}

// approvalNotification returns the notification of a request for approval and of its answers, for the person who asked
// unless it is the request itself. It is false for what nobody is told of: an answer of who has asked, and a request that
// ended without one.
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
		ID: id.New[publishing.NotificationTag](), Kind: publishing.NotifyApproval, Approval: a.ID, Answer: &answer, Post: a.Post,
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
		cut := connector.Clean(*note, maxShownReason)
		n.Reason = &cut
	}
	return n, true
}

// endedNotifications returns the notifications for an approval that has ended: to the requester and
// to the member who approved. A guest has no bell.
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
