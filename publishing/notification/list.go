package notification

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"crier/platform/fault"
	"crier/platform/pg"
	"crier/platform/text"
	"crier/publishing"
	"crier/publishing/db"
	notificationstore "crier/publishing/notification/store"
	"crier/tenancy"
)

const (
	// maxShownName and maxShownReason are the maximum lengths of a name and a reason in a
	// notification's text, in bytes.
	maxShownName   = 128
	maxShownReason = 300
)

// Notifications lists notifications and marks them as read. It is safe for concurrent use.
type Notifications struct {
	deps        Deps
	db          *db.DB
	preferences Preferences
}

// NewNotifications returns Notifications. Unread and Read exclude the kinds muted in preferences.
func NewNotifications(deps Deps, preferences Preferences) *Notifications {
	return &Notifications{deps: deps, db: deps.DB, preferences: preferences}
}

// List returns a page of the organization's notifications that are addressed to all members or to
// the principal's person. Pages start at 0. Activity between two calls moves notifications to the
// first page. If the page is out of range, List returns Invalid.
func (s *Notifications) List(
	ctx context.Context, p tenancy.Principal, page int,
) (publishing.NotificationPage, error) {
	const op = "publishing.ListNotifications"
	if err := checkNotificationPage(op, page); err != nil {
		return publishing.NotificationPage{}, err
	}
	out, err := notificationstore.Notifications(ctx, s.db, p.Org, p.Person, page, publishing.NotificationsPerPage)
	if err != nil {
		return out, pg.Fault(op, err)
	}
	s.describe(out.Notifications)
	return out, nil
}

// checkNotificationPage returns Invalid if the page is out of range.
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

// Unread returns how many notifications the person has not read, excluding muted kinds.
func (s *Notifications) Unread(ctx context.Context, p tenancy.Principal) (int, error) {
	const op = "publishing.UnreadNotifications"
	muted, err := s.preferences.MutedNotifications(ctx, p)
	if err != nil {
		return 0, err
	}
	n, err := notificationstore.UnreadNotifications(ctx, s.db, p.Org, p.Person, muted)
	if err != nil {
		return 0, pg.Fault(op, err)
	}
	return n, nil
}

// Read returns a page of the notifications that the person has not muted. It also returns the time
// up to which the person had already read everything. Pages start at 0.
//
// Read marks the returned notifications as read, unless an instance administrator is impersonating
// the person. If the page is out of range, Read returns Invalid.
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
	out, before, err := notificationstore.ReadNotifications(ctx, s.db, p.Org, notificationstore.NotificationsRead{
		Person: p.Person, Muted: muted, Page: page, Limit: publishing.NotificationsPerPage,
		Mark: p.Impersonator.IsZero(),
	})
	if err != nil {
		return nil, before, pg.Fault(op, err)
	}
	s.describe(out)
	return out, before, nil
}

// describe sets the notifications' Content and IsClosed.
func (s *Notifications) describe(list []publishing.ListedNotification) {
	for i := range list {
		list[i].Content, list[i].IsClosed = s.sentence(list[i]), list[i].IsOver(s.deps.Clock.Now())
	}
}

// sentence returns a notification's text. Names and reasons come from outside the service, so
// sentence truncates them and removes line breaks and control characters.
func (s *Notifications) sentence(n publishing.ListedNotification) string {
	what := n.Report().What(s.channelName(n))
	if n.Reason == nil {
		return what + "."
	}
	reason := text.Line(*n.Reason, maxShownReason)
	if reason == "" {
		return what + "."
	}
	return what + ": " + reason
}

// channelName returns a channel's name and platform. Example: “News” (Bluesky)
func (s *Notifications) channelName(n publishing.ListedNotification) string {
	if n.Kind == publishing.NotifyPublished && n.Channel.IsZero() {
		return "several channels"
	}
	name := text.Line(n.ChannelName, maxShownName)
	if name == "" {
		return "a channel"
	}
	platform := n.Connector
	if c, ok := s.deps.Connectors.Get(n.Connector); ok {
		platform = cmp.Or(c.Describe().Name, platform)
	}
	return fmt.Sprintf("“%s” (%s)", name, platform)
}

// Add stores a notification in the same transaction as the change it reports.
func (s *Notifications) Add(ctx context.Context, tx *db.Tx, n publishing.Notification) error {
	return notificationstore.AddNotification(ctx, tx, n)
}
