package service

import (
	"context"

	"crier/platform/pg"
	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// TakeMade returns the webhooks that a person made in the organization of q, or whose URL or secret
// the person has chosen, and the provider credentials that the person entered. With Revoke it deletes
// the webhooks. If the person leaves, it also returns requests for approval whose mailed link ends with
// the membership. It runs in the transaction of q, and returns the error of Postgres.
func (c core) TakeMade(ctx context.Context, q pg.Querier, m tenancy.Maker) (made tenancy.MadeBy, err error) {
	if made.Webhooks, err = publishingstore.WebhooksBy(ctx, q, m.Person, m.Revoke); err != nil {
		return made, err
	}
	if made.Apps, err = publishingstore.AppsBy(ctx, q, m.Person); err != nil || !m.Leaves {
		return made, err
	}
	made.Reviews, err = publishingstore.ReviewsMailed(ctx, q, m.Person, c.deps.Clock.Now().Add(-publishing.ApprovalLife))
	return made, err
}
