package publishtest

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/id"
	"crier/publishing"
	"crier/publishing/db"
	webhookstore "crier/publishing/webhook/store"
	"crier/tenancy"
)

// Webhook stores a webhook for all channels, after applying the changes.
func (r *StoreRig) Webhook(change ...func(*publishing.Webhook)) publishing.WebhookID {
	r.Helper()
	now := time.Now()
	w := publishing.Webhook{
		ID: id.New[publishing.WebhookTag](), Name: "hook", URL: "https://example.com", CreatedAt: now, UpdatedAt: now,
	}
	for _, c := range change {
		c(&w)
	}
	r.OK(r.InOrg(func(tx *db.Tx) error {
		return webhookstore.AddWebhook(r.Context(), tx, w, []byte("sealed"), tenancy.PersonID{})
	}))
	return w.ID
}

// WebhookEvent holds the members of a webhook event that tests compare.
type WebhookEvent struct {
	Post  publishing.PostID
	Event publishing.WebhookEvent
	State string
	Error string
}

// WebhookEvents returns the webhook events since it was last called.
func (r *StoreRig) WebhookEvents() (out []WebhookEvent) {
	r.Helper()
	r.OK(r.DB.InOrg(r.Context(), r.Org.UUID(), func(tx pgx.Tx) error {
		rows, err := tx.Query(r.Context(), `
			with e as (delete from webhook_event returning id, post_id, event, state, error)
			select post_id as post, event, state, coalesce(error, '') as error from e order by id`)
		if err != nil {
			return err
		}
		out, err = pgx.CollectRows(rows, pgx.RowToStructByName[WebhookEvent])
		return err
	}))
	return out
}

// WantWebhookEvents checks the webhook events since the last call.
func (r *StoreRig) WantWebhookEvents(when string, want ...WebhookEvent) {
	r.Helper()
	if got := r.WebhookEvents(); !slices.Equal(got, want) {
		r.Errorf("%s: got the events %v, want %v", when, got, want)
	}
}
