package boot

import (
	"context"

	"crier/platform/clock"
	"crier/publishing"
	"crier/publishing/notification"
	"crier/tenancy"
)

// openNotifier creates the notifier, which counts incidents and queues emails about them. The
// notifier's loop is started by startNotifier.
func (a *App) openNotifier(context.Context) error {
	a.notifier = notification.New(notification.Deps{
		DB: a.publishingDB(), Connectors: a.connectors, Mailer: a.Accounts, Clock: clock.System{}, Log: a.log,
		Shards: func() []int16 { return a.owners.Lease().Shards },
	})
	return nil
}

func (a *App) startNotifier(ctx context.Context) error {
	a.notifier.Start(ctx)
	return nil
}

// preferences gives notifications access to people's settings.
type preferences struct{ accounts *Accounts }

// MutedNotifications implements notification.Preferences.
func (p preferences) MutedNotifications(
	ctx context.Context, of tenancy.Principal,
) (muted []publishing.NotificationKind, err error) {
	n, err := p.accounts.Notifications(ctx, of)
	if err != nil {
		return nil, err
	}
	if n.Channel == tenancy.DeliveryOff {
		muted = append(muted, publishing.NotifyReconnect)
	}
	if n.Approval == tenancy.DeliveryOff {
		muted = append(muted, publishing.NotifyApproval)
	}
	return muted, nil
}
