package boot

import (
	"context"
	"math/rand/v2"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/platform/jobs"
	"crier/publishing"
	"crier/publishing/webhook"
	"crier/tenancy"
)

// webhookAttempts is the maximum number of attempts per task. An attempt fails only because of a
// database error. If all attempts fail, the deliverer's loop adds a new task a few minutes later.
const webhookAttempts = 2

// openWebhooks creates the deliverer, which sends events to webhooks. startWebhooks starts its
// loop.
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

// webhookHandler returns the handler for a kind of task. Each task sends to one endpoint.
func (a background) webhookHandler(kind string) jobs.Handler {
	return jobs.Handler{
		Kind: kind, Workers: webhook.Workers, Timeout: webhook.TaskTimeout, Attempts: webhookAttempts,
		Run: func(ctx context.Context, t jobs.Task, _ jobs.Attempt) error {
			return a.webhooks.Deliver(ctx, id.FromUUID[tenancy.OrgTag](t.Org), id.FromUUID[publishing.WebhookTag](t.ID))
		},
	}
}
