package edgetest

import (
	"context"
	"time"

	"crier/platform/id"
	"crier/publishing"
	"crier/tenancy"
)

// notifications implements the notification port. It has 250 notifications.
type notifications struct{ *World }

func (n notifications) one() publishing.ListedNotification {
	return publishing.ListedNotification{
		Notification: publishing.Notification{
			ID: id.New[publishing.NotificationTag](), Kind: publishing.NotifyFailed, Channel: n.Thread.Root.Channel,
			Post: n.Thread.Root.ID, Posts: 3, CreatedAt: Day, LastAt: Day,
		},
		Content: "3 posts failed.",
	}
}

func (n notifications) List(context.Context, tenancy.Principal, int) (publishing.NotificationPage, error) {
	return publishing.NotificationPage{
		Notifications: []publishing.ListedNotification{n.one()}, Total: 250,
	}, n.note("list")
}

func (n notifications) Unread(context.Context, tenancy.Principal) (int, error) {
	return 7, n.note("unread")
}

func (n notifications) Read(
	context.Context, tenancy.Principal, int,
) ([]publishing.ListedNotification, time.Time, error) {
	return []publishing.ListedNotification{n.one()}, Day, n.note("read")
}
