package edgetest

import (
	"context"
	"net/url"
	"time"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/publishing"
	"crier/tenancy"
)

// webhooks implements the webhook port. It knows the webhook knownWebhook.
type webhooks struct{ *World }

// knownWebhook and knownDelivery are the only webhook and the only delivery.
const (
	knownWebhook  = "018f0000-0000-7000-8000-0000000000aa"
	knownDelivery = "018f0000-0000-7000-8000-0000000000bb"
)

// nobody reports for every address that the operator has not opened it.
func nobody(*url.URL) bool { return false }

func (w webhooks) find(webhook string) (publishing.Webhook, error) {
	if err := w.note(webhook); err != nil {
		return publishing.Webhook{}, err
	}
	if webhook != knownWebhook {
		return publishing.Webhook{}, fault.New(fault.NotFound, "fake", "There is no such webhook.")
	}
	known, _ := id.Parse[publishing.WebhookTag](webhook)
	return publishing.Webhook{ID: known, Name: "hook", URL: "https://example.com"}, nil
}

func (w webhooks) List(context.Context, tenancy.Principal) ([]publishing.WebhookRecord, error) {
	hook, err := w.find(knownWebhook)
	return []publishing.WebhookRecord{{Webhook: hook}}, err
}

func (w webhooks) Create(
	_ context.Context, _ tenancy.Principal, cmd publishing.SetWebhook,
) (publishing.Webhook, string, error) {
	if err := cmd.Validate(true, nobody); err != nil {
		return publishing.Webhook{}, "", err
	}
	hook, err := w.find(knownWebhook)
	return hook, "whsec_", err
}

func (w webhooks) Update(
	_ context.Context, _ tenancy.Principal, webhook string, cmd publishing.SetWebhook,
) (publishing.Webhook, error) {
	if err := cmd.Validate(false, nobody); err != nil {
		return publishing.Webhook{}, err
	}
	return w.find(webhook)
}

func (w webhooks) Delete(_ context.Context, _ tenancy.Principal, webhook string) (publishing.Webhook, error) {
	return w.find(webhook)
}

func (w webhooks) RotateSecret(
	_ context.Context, _ tenancy.Principal, webhook string, _ *string,
) (publishing.Webhook, string, error) {
	hook, err := w.find(webhook)
	hook.PreviousUntil = []time.Time{time.Unix(0, 0)}
	return hook, "whsec_", err
}

func (w webhooks) Deliveries(
	_ context.Context, _ tenancy.Principal, webhook string, _ publishing.ListDeliveries,
) ([]publishing.Delivery, error) {
	_, err := w.find(webhook)
	return nil, err
}

func (w webhooks) Replay(_ context.Context, _ tenancy.Principal, webhook, delivery string) error {
	if _, err := w.find(webhook); err != nil || delivery == knownDelivery {
		return err
	}
	return fault.New(fault.NotFound, "fake", "There is no such delivery.")
}

func (w webhooks) Test(_ context.Context, _ tenancy.Principal, webhook string) (publishing.DeliveryID, error) {
	_, err := w.find(webhook)
	return publishing.DeliveryID{}, err
}

func (w webhooks) TryURL(
	_ context.Context, _ tenancy.Principal, address string, _ []byte,
) (int, string, error) {
	return 204, "", publishing.WebhookURL(address, nobody)
}
