package webhook

import (
	"context"
	"crypto/hmac"
	"net/url"

	"crier/platform/id"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	webhookstore "crier/publishing/webhook/store"
	"crier/tenancy"
)

// Update changes an endpoint and returns it. A new secret replaces the previous one as described
// for RotateSecret. If Update enables a disabled endpoint, earlier failures no longer count, and
// deliveries that failed before can be replayed. Update returns Invalid with the invalid fields,
// and otherwise the same errors as RotateSecret.
//
// Once Update has returned, no new call to the previous URL is made. If Update has disabled the
// endpoint, no new call is made to any URL. A call in flight is not stopped.
func (s *Webhooks) Update(
	ctx context.Context, p tenancy.Principal, webhook string, cmd publishing.SetWebhook,
) (w publishing.Webhook, err error) {
	const op = "publishing.UpdateWebhook"
	if err := noAgent(op, p); err != nil {
		return w, err
	}
	cmd = cmd.Pasted()
	if err := cmd.Validate(false, s.client.IsOpen); err != nil {
		return w, err
	}
	err = s.change(ctx, p, op, webhook, func(tx *db.Tx, stored publishing.Webhook) error {
		now := s.deps.Clock.Now()
		w = stored
		w.UpdatedAt = now
		apply(&w, cmd, now)
		if err := chooseChannels(ctx, tx, op, &w, cmd); err != nil {
			return err
		}
		if err := webhookstore.UpdateWebhook(ctx, tx, w); err != nil {
			return err
		}
		if w.URL != stored.URL || cmd.Secret != nil {
			if err := webhookstore.WebhookKnownTo(ctx, tx, w.ID, p.Person); err != nil {
				return err
			}
		}
		if w.DisabledAt != nil && stored.DisabledAt == nil {
			if err := webhookstore.StopDeliveries(ctx, tx, w.ID, now, "The webhook was disabled."); err != nil {
				return err
			}
		}
		if cmd.Secret != nil {
			if w, _, err = s.rotate(ctx, tx, p.Org, w, cmd.Secret); err != nil {
				return err
			}
		}
		return s.audit(ctx, tx, p, tenancy.ActionWebhookChanged, w)
	})
	return w, err
}

// RotateSecret replaces an endpoint's secret with the secret in given, or with a random secret if
// given is nil. It returns the endpoint and the new secret, which is not shown again. Every later
// call is signed with the new secret. Until the last time in the endpoint's PreviousUntil, calls
// are also signed with the previous secret. Earlier secrets keep their own end times.
//
// RotateSecret returns NotFound if the endpoint does not exist, Invalid if the given secret is
// invalid, and Conflict if too many earlier secrets still sign deliveries.
func (s *Webhooks) RotateSecret(
	ctx context.Context, p tenancy.Principal, webhook string, given *string,
) (w publishing.Webhook, shown string, err error) {
	const op = "publishing.RotateWebhookSecret"
	if err := noAgent(op, p); err != nil {
		return w, "", err
	}
	if err := (publishing.SetWebhook{Secret: given}).Validate(false, s.client.IsOpen); err != nil {
		return w, "", err
	}
	err = s.change(ctx, p, op, webhook, func(tx *db.Tx, stored publishing.Webhook) error {
		if w, shown, err = s.rotate(ctx, tx, p.Org, stored, given); err != nil {
			return err
		}
		if err := webhookstore.WebhookKnownTo(ctx, tx, stored.ID, p.Person); err != nil {
			return err
		}
		return s.audit(ctx, tx, p, tenancy.ActionWebhookSecret, w)
	})
	return w, shown, err
}

// rotate replaces the secret of a locked endpoint with the secret in given, or with a random secret
// if given is nil. It returns the endpoint and the secret. If the endpoint already has the given
// secret, for example because a request was repeated, nothing changes. rotate returns Conflict if
// too many earlier secrets still sign deliveries.
func (s *Webhooks) rotate(
	ctx context.Context, tx *db.Tx, org tenancy.OrgID, w publishing.Webhook, given *string,
) (_ publishing.Webhook, shown string, err error) {
	key, sealed, err := s.newKey(org, given)
	if err != nil {
		return w, "", err
	}
	stored, err := webhookstore.WebhookKey(ctx, tx, w.ID)
	if err != nil {
		return w, "", err
	}
	shown = publishing.FormatWebhookSecret(key)
	current, err := s.deps.Keyring.Open(stored, org.String())
	// If its encryption key is lost, the stored key cannot be decrypted and is replaced.
	if err == nil && hmac.Equal(current, key) {
		return w, shown, nil
	}
	now := s.deps.Clock.Now()
	w, err = w.Rotate(now)
	if err != nil {
		return w, "", err
	}
	return w, shown, webhookstore.RotateWebhook(ctx, tx, w.ID, sealed, now.Add(publishing.WebhookOverlap), now)
}

// change locks an endpoint and runs fn in the same transaction. The endpoint's PreviousUntil lists
// only secrets that still sign deliveries. change returns NotFound if the organization has no such
// endpoint.
//
// change writes no audit entry. Its callers do, because they know what has changed.
func (s *Webhooks) change(
	ctx context.Context, p tenancy.Principal, op, webhook string,
	fn func(tx *db.Tx, w publishing.Webhook) error,
) error {
	if err := noAgent(op, p); err != nil {
		return err
	}
	parsed, ok := id.Parse[publishing.WebhookTag](webhook)
	if !ok {
		return noWebhook(op)
	}
	err := s.db.InOrgAs(ctx, p, func(tx *db.Tx) error {
		w, err := webhookstore.LockWebhook(ctx, tx, parsed)
		if pg.IsNoRows(err) {
			return noWebhook(op)
		}
		if err != nil {
			return err
		}
		w.PreviousUntil = w.StillSign(s.deps.Clock.Now())
		return fn(tx, w)
	})
	return db.Fault(op, err)
}

// audit appends an entry about an endpoint to the audit log. The entry names only the URL's host,
// because the rest of the URL may contain a token.
func (s *Webhooks) audit(
	ctx context.Context, tx *db.Tx, p tenancy.Principal, action tenancy.Action, w publishing.Webhook,
) error {
	host := ""
	if u, err := url.Parse(w.URL); err == nil {
		host = u.Host
	}
	return s.db.Audit(ctx, tx, p, action, w.Name+" "+host)
}
