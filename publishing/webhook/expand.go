package webhook

import (
	"context"
	"fmt"

	"crier/platform/batch"
	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	webhookstore "crier/publishing/webhook/store"
	"crier/tenancy"
)

const (
	// orgsPerRound and eventsPerOrg limit one round, so that organizations take turns.
	orgsPerRound = 500
	eventsPerOrg = 50
	// deliveriesPerBatch and eventsPerOrg limit one transaction.
	deliveriesPerBatch = 1000
)

// TooMany is the reason recorded for a delivery that is abandoned because its endpoint has too many
// pending deliveries.
const TooMany = "Too many deliveries are waiting for this webhook, so the oldest are given up."

// expandOrg writes the deliveries for an organization's oldest events. An event that cannot be
// rendered or stored is logged and dropped, to avoid blocking the events behind it.
func (d *Deliverer) expandOrg(ctx context.Context, org tenancy.OrgID) (full bool, err error) {
	var done int
	err = d.db.InOrg(ctx, org, func(tx *db.Tx) error {
		sources, err := webhookstore.WebhookSources(ctx, tx, eventsPerOrg, nil)
		if err != nil {
			return err
		}
		done = len(sources)
		return d.write(ctx, tx, sources)
	})
	if err == nil || !pg.IsRefused(err) {
		return done == eventsPerOrg && err == nil, err
	}
	return true, d.dropRefused(ctx, org)
}

// write stores the deliveries for events and deletes the events.
func (d *Deliverer) write(ctx context.Context, tx *db.Tx, sources []webhookstore.WebhookSource) error {
	hooks, err := webhookstore.LockEnabledWebhooks(ctx, tx)
	if err != nil {
		return err
	}
	now := d.deps.Clock.Now()
	var list []webhookstore.NewDelivery
	var ids []int64
	for _, s := range sources {
		if len(list) >= deliveriesPerBatch {
			break // the next round takes the rest
		}
		ids = append(ids, s.ID)
		for _, h := range hooks {
			if s.Group.IsZero() || !h.Wants(s.Event, s.Channel) {
				continue
			}
			body, err := render(s)
			if err != nil {
				d.deps.Log.ErrorContext(ctx, "cannot render an event for webhooks; it is dropped",
					"event", s.Event, "post", s.Post, "error", err)
				break
			}
			list = append(list, webhookstore.NewDelivery{
				ID: id.New[publishing.DeliveryTag](), Webhook: h.ID, Event: s.Event, Post: s.Post, Body: body,
			})
		}
	}
	if err := webhookstore.AddDeliveries(ctx, tx, list, now, TooMany); err != nil {
		return err
	}
	return webhookstore.DeleteWebhookEvents(ctx, tx, ids)
}

// dropRefused writes the deliveries for the oldest events in smaller batches, and drops the events
// that the database rejects.
func (d *Deliverer) dropRefused(ctx context.Context, org tenancy.OrgID) error {
	var sources []webhookstore.WebhookSource
	if err := d.db.InOrg(ctx, org, func(tx *db.Tx) (err error) {
		sources, err = webhookstore.WebhookSources(ctx, tx, eventsPerOrg, nil)
		return err
	}); err != nil {
		return err
	}
	var refused []int64
	one := func(list []webhookstore.WebhookSource) error {
		return d.db.InOrg(ctx, org, func(tx *db.Tx) error { return d.write(ctx, tx, list) })
	}
	_, err := batch.Isolate(sources, one, pg.IsRefused, func(s webhookstore.WebhookSource, cause error) {
		d.deps.Log.ErrorContext(ctx, "cannot store an event for webhooks; it is dropped", "org", org,
			"event", s.Event, "post", s.Post, "error", cause)
		refused = append(refused, s.ID)
	})
	if err != nil || len(refused) == 0 {
		return err
	}
	err = d.db.InOrg(
		ctx, org, func(tx *db.Tx) error { return webhookstore.DeleteWebhookEvents(ctx, tx, refused) },
	)
	if err != nil {
		return fmt.Errorf("webhook: drop events: %w", err)
	}
	return nil
}
