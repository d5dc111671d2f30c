package service

import (
	"context"
	"slices"

	"crier/platform/pg"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// TakeMade returns the webhooks that a person made in the organization of q, or whose URL or secret
// the person has chosen, and the provider credentials that the person entered. With Revoke it deletes
// the webhooks. If the person leaves, it ends the requests for approval that the person could still
// answer with a review link, and returns them; SweepApprovals writes their events. It runs in the
// transaction of q, and returns the error of Postgres.
func (c core) TakeMade(ctx context.Context, q pg.Querier, m tenancy.Maker) (made tenancy.MadeBy, err error) {
	if made.Webhooks, err = publishingstore.WebhooksBy(ctx, q, m.Person, m.Revoke); err != nil {
		return made, err
	}
	if made.Apps, err = publishingstore.AppsBy(ctx, q, m.Person); err != nil || !m.Leaves {
		return made, err
	}
	mailed, err := publishingstore.ReviewAddresses(ctx, q, m.At)
	if err != nil {
		return made, err
	}
	mailbox := tenancy.Mailbox(m.Email)
	mailed = slices.DeleteFunc(mailed, func(email string) bool { return m.Email == "" || tenancy.Mailbox(email) != mailbox })
	made.Reviews, err = publishingstore.EndReviews(ctx, q, m.Person, mailed, m.At)
	return made, err
}
