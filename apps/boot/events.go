package boot

import (
	"context"
	"math/rand/v2"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/platform/jobs"
	"crier/publishing"
	"crier/publishing/notification"
	"crier/publishing/webhook"
	"crier/tenancy"
)

// webhookAttempts is the maximum number of attempts per task. Only a database error makes an
// attempt fail. If all attempts fail, the deliverer's loop adds a new task a few minutes later.
const webhookAttempts = 2

// openWebhooks creates the deliverer, which sends events to webhooks. startWebhooks starts the
// deliverer's loop.
func (a *App) openWebhooks(context.Context) error {
	queue, err := jobs.NewQueue()
	if err != nil {
		return err
	}
	a.webhooks = webhook.New(webhook.Deps{
		DB: a.publishingDB(), Queue: queue, Keyring: a.keyring, HTTP: a.http, Clock: clock.System{}, Log: a.log,
		Chance: rand.Float64, Shards: func() []int16 { return a.owners.Lease().Shards },
	})
	return nil
}

func (a *App) startWebhooks(ctx context.Context) error {
	a.webhooks.Start(ctx)
	return nil
}

// webhookHandler returns the handler for tasks of the given kind. Each task sends deliveries to one
// endpoint.
func (a background) webhookHandler(kind string) jobs.Handler {
	return jobs.Handler{
		Kind: kind, Workers: webhook.Workers, Timeout: webhook.TaskTimeout, Attempts: webhookAttempts,
		Run: func(ctx context.Context, t jobs.Task, _ jobs.Attempt) error {
			return a.webhooks.Deliver(ctx, id.FromUUID[tenancy.OrgTag](t.Org), id.FromUUID[publishing.WebhookTag](t.ID))
		},
	}
}

// openNotifier creates the notifier, which counts incidents and queues emails about them.
// startNotifier starts the notifier's loop.
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
