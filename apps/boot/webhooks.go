package boot

import (
	"context"
	"math/rand/v2"
	"net/url"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/platform/jobs"
	"crier/publishing"
	"crier/publishing/webhook"
	"crier/tenancy"
)

// webhookAttempts is how often a task is attempted. Only database errors fail an attempt, and the
// loop adds another task a few minutes later.
const webhookAttempts = 2

// openWebhooks creates what delivers events to webhooks. Its loop runs from startWebhooks on.
func (a *App) openWebhooks(context.Context) error {
	queue, err := jobs.NewQueue()
	if err != nil {
		return err
	}
	audit := auditor{accounts: a.Accounts, log: a.log}
	a.webhooks = webhook.New(webhook.Deps{
		DB: a.publishingDB(), Queue: queue, Keyring: a.keyring, HTTP: a.http, Clock: clock.System{}, Log: a.log,
		Chance: rand.Float64, Shards: func() []int16 { return a.owners.Lease().Shards },
		Disabled: func(ctx context.Context, org tenancy.OrgID, name string, why publishing.WebhookDisabled) {
			p := tenancy.Principal{Org: org, Via: tenancy.ViaInstance, Name: "the service"}
			audit.record(ctx, p, tenancy.ActionWebhookDisabled, name+" ("+string(why)+")")
		},
	})
	return nil
}

func (a *App) startWebhooks(ctx context.Context) error {
	a.webhooks.Start(ctx)
	return nil
}

// webhookHandler returns the handler of a kind of tasks that send to one endpoint each.
func (a *App) webhookHandler(kind string) jobs.Handler {
	return jobs.Handler{
		Kind: kind, Workers: webhook.Workers, Timeout: webhook.TaskTimeout, Attempts: webhookAttempts,
		Run: func(ctx context.Context, t jobs.Task, _ jobs.Attempt) error {
			return a.webhooks.Deliver(ctx, id.FromUUID[tenancy.OrgTag](t.Org), id.FromUUID[publishing.WebhookTag](t.ID))
		},
	}
}

// auditedWebhooks records changes of webhooks.
type auditedWebhooks struct {
	*webhook.Webhooks
	auditor auditor
}

func (w auditedWebhooks) Create(
	ctx context.Context, p tenancy.Principal, cmd publishing.SetWebhook,
) (publishing.Webhook, string, error) {
	out, secret, err := w.Webhooks.Create(ctx, p, cmd)
	w.record(ctx, p, tenancy.ActionWebhookCreated, out, err)
	return out, secret, err
}

func (w auditedWebhooks) Update(
	ctx context.Context, p tenancy.Principal, webhook string, cmd publishing.SetWebhook,
) (publishing.Webhook, error) {
	out, err := w.Webhooks.Update(ctx, p, webhook, cmd)
	w.record(ctx, p, tenancy.ActionWebhookChanged, out, err)
	return out, err
}

func (w auditedWebhooks) Delete(ctx context.Context, p tenancy.Principal, webhook string) (publishing.Webhook, error) {
	out, err := w.Webhooks.Delete(ctx, p, webhook)
	w.record(ctx, p, tenancy.ActionWebhookDeleted, out, err)
	return out, err
}

func (w auditedWebhooks) RotateSecret(
	ctx context.Context, p tenancy.Principal, webhook string, given *string,
) (publishing.Webhook, string, error) {
	out, secret, err := w.Webhooks.RotateSecret(ctx, p, webhook, given)
	w.record(ctx, p, tenancy.ActionWebhookSecret, out, err)
	return out, secret, err
}

func (w auditedWebhooks) record(
	ctx context.Context, p tenancy.Principal, action tenancy.Action, of publishing.Webhook, err error,
) {
	if err != nil {
		return
	}
	host := "" // the rest of the address may hold a token
	if u, err := url.Parse(of.URL); err == nil {
		host = u.Host
	}
	w.auditor.record(ctx, p, action, of.Name+" "+host)
}
