package webhook

import (
	"context"
	"time"

	"crier/publishing"
	"crier/publishing/db"
	webhookstore "crier/publishing/webhook/store"
	"crier/tenancy"
)

const (
	// duePerRound limits how many endpoints get a task in one round.
	duePerRound = 1000
	// queuedFor is how long a task may wait for a worker before another task is added. If both run,
	// the second finds nothing to do.
	queuedFor = 5 * time.Minute
	// turnsPerRound is how many organizations get a turn in one round when more endpoints are due
	// than one round considers.
	turnsPerRound = 1000
	// inactiveFor is how long an endpoint is skipped if its organization is suspended or deleted,
	// or if its secret cannot be decrypted.
	inactiveFor = time.Hour
)

// dispatch adds a task for each endpoint that has something to send, within the limits per
// organization and per creator.
func (d *Deliverer) dispatch(ctx context.Context) error {
	now := d.deps.Clock.Now()
	turns, err := webhookstore.WebhookTurns(ctx, d.db, now, d.turn, turnsPerRound)
	if err != nil {
		return err
	}
	due, err := webhookstore.DueWebhooks(ctx, d.db, now, perOwner, turns, duePerRound)
	if err != nil {
		return err
	}
	d.turn = tenancy.OrgID{}
	if len(turns) == turnsPerRound {
		d.turn = turns[len(turns)-1]
	}
	byOrg := map[tenancy.OrgID][]publishing.WebhookID{}
	var orgs []tenancy.OrgID
	for _, w := range due {
		if byOrg[w.Org] == nil {
			orgs = append(orgs, w.Org)
		}
		byOrg[w.Org] = append(byOrg[w.Org], w.Webhook)
	}
	return d.walk.Visit(ctx, orgs, func(ctx context.Context, org tenancy.OrgID) error {
		return d.db.InOrg(ctx, org, func(tx *db.Tx) error {
			return webhookstore.QueueWebhooks(ctx, tx, d.deps.Queue, byOrg[org], TaskHealthy, TaskAside, now,
				now.Add(queuedFor), now.Add(inactiveFor))
		})
	})
}
