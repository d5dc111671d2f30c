package wall

import (
	"slices"
	"testing"
	"time"

	"crier/platform/id"
	"crier/platform/jobs"
	"crier/publishing"
	publishingdb "crier/publishing/db"
	webhookstore "crier/publishing/webhook/store"
	"crier/tenancy"
)

// addWebhook adds a webhook with a pending delivery and an event.
func (e *tenantFixture) addWebhook(t *testing.T, s *publishingdb.DB) {
	t.Helper()
	e.webhook, e.delivery = id.New[publishing.WebhookTag](), id.New[publishing.DeliveryTag]()
	must(t, s.InOrg(t.Context(), e.org, func(tx *publishingdb.Tx) error {
		if err := webhookstore.AddWebhook(t.Context(), tx, e.hook(), []byte("sealed"), tenancy.PersonID{}); err != nil {
			return err
		}
		if err := webhookstore.RotateWebhook(t.Context(), tx, e.webhook, []byte("sealed too"), now.Add(time.Hour), now); err != nil {
			return err
		}
		if err := webhookstore.AddDeliveries(t.Context(), tx, []webhookstore.NewDelivery{e.newDelivery(e.delivery)}, now, "x"); err != nil {
			return err
		}
		return webhookstore.AddWebhookEvent(t.Context(), tx, publishing.WebhookPublished, e.post.ID, nil)
	}))
}

func (e tenantFixture) hook() publishing.Webhook {
	return publishing.Webhook{
		ID: e.webhook, Name: "hook", URL: "https://example.com/" + e.org.String(), Integrations: []publishing.ChannelID{e.channel.ID},
		CreatedAt: now, UpdatedAt: now,
	}
}

func (e tenantFixture) newDelivery(delivery publishing.DeliveryID) webhookstore.NewDelivery {
	return webhookstore.NewDelivery{ID: delivery, Webhook: e.webhook, Event: publishing.WebhookTest, Body: "secret words"}
}

// webhookQuestions returns the questions about webhooks.
func webhookQuestions(s *publishingdb.DB) map[string]question {
	later := time.Now().Add(time.Hour)
	all := map[string]question{
		"webhook.Webhooks": func(t *testing.T, m, th tenantFixture) bool {
			list, err := webhookstore.Webhooks(t.Context(), s, m.org)
			return err == nil && !slices.ContainsFunc(list, func(w publishing.WebhookRecord) bool {
				return w.ID == th.webhook || len(w.Channels) > 0 && w.Channels[0].ID == th.channel.ID
			})
		},
		"webhook.Deliveries": func(t *testing.T, m, th tenantFixture) bool {
			list, known, err := webhookstore.Deliveries(t.Context(), s, m.org, th.webhook, publishing.DeliveryID{}, 10)
			return err == nil && len(list) == 0 && !known
		},
		"webhook.BeginWebhook": func(t *testing.T, m, th tenantFixture) bool {
			_, found, err := webhookstore.BeginWebhook(t.Context(), s, m.org, th.webhook, later, later)
			return err == nil && !found
		},
		"webhook.DueDeliveries": func(t *testing.T, m, th tenantFixture) bool {
			list, err := webhookstore.DueDeliveries(t.Context(), s, m.org, th.webhook, later, 10)
			return err == nil && len(list) == 0
		},
		"webhook.DeliveryTarget": func(t *testing.T, m, th tenantFixture) bool {
			_, found, err := webhookstore.DeliveryTarget(t.Context(), s, m.org, th.webhook, webhookstore.DueDelivery{ID: th.delivery}, now)
			return err == nil && !found
		},
		"webhook.SaveAttempt": func(t *testing.T, m, th tenantFixture) bool {
			since, err := webhookstore.SaveAttempt(t.Context(), s, m.org, th.webhook, webhookstore.AttemptResult{
				Delivery: th.delivery, URL: th.hook().URL, Attempt: publishing.WebhookAttempt{Number: 1}, State: publishing.DeliveryFailed,
			}, now)
			return err == nil && since == nil
		},
		"webhook.EndWebhook": func(t *testing.T, m, th tenantFixture) bool {
			// See preparations.
			return webhookstore.EndWebhook(t.Context(), s, m.org, th.webhook, now) == nil
		},
	}
	for name, ask := range webhookTxQuestions(later) {
		all[name] = inOrg(s, ask)
	}
	return all
}

type txQuestion = func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error)

func webhookTxQuestions(later time.Time) map[string]txQuestion {
	return map[string]txQuestion{
		"webhook.DisableWebhook": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			done, err := webhookstore.DisableWebhook(t.Context(), tx, th.webhook, th.hook().URL, publishing.DisabledGone, "x", later)
			return !done, err
		},
		"webhook.AddWebhook": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			w := th.hook()
			w.ID = id.New[publishing.WebhookTag]()
			return true, webhookstore.AddWebhook(t.Context(), tx, w, []byte("sealed"), tenancy.PersonID{})
		},
		"webhook.ChannelsConnected": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			all, err := webhookstore.ChannelsConnected(t.Context(), tx, []publishing.ChannelID{th.channel.ID})
			return !all, err
		},
		"webhook.LockWebhook": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := webhookstore.LockWebhook(t.Context(), tx, th.webhook)
			return false, err
		},
		"webhook.UpdateWebhook": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			w := th.hook()
			w.Name = "renamed"
			return true, webhookstore.UpdateWebhook(t.Context(), tx, w)
		},
		"webhook.WebhookKey": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			_, err := webhookstore.WebhookKey(t.Context(), tx, th.webhook)
			return false, err
		},
		"webhook.RotateWebhook": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, webhookstore.RotateWebhook(t.Context(), tx, th.webhook, []byte("another"), later, now)
		},
		"webhook.WebhookKnownTo": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, webhookstore.WebhookKnownTo(t.Context(), tx, th.webhook, th.person)
		},
		"webhook.DeleteWebhook": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			found, err := webhookstore.DeleteWebhook(t.Context(), tx, th.webhook)
			return !found, err
		},
		"webhook.StopDeliveries": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, webhookstore.StopDeliveries(t.Context(), tx, th.webhook, now, "x")
		},
		"webhook.Replay": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			found, err := webhookstore.Replay(t.Context(), tx, th.webhook, th.delivery, later)
			return !found, err
		},
		"webhook.AddWebhookEvent": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			return true, webhookstore.AddWebhookEvent(t.Context(), tx, publishing.WebhookPublished, th.post.ID, nil)
		},
		"webhook.WebhookSources": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			list, err := webhookstore.WebhookSources(t.Context(), tx, 10, nil)
			return !slices.ContainsFunc(list, func(x webhookstore.WebhookSource) bool {
				return x.Group == th.post.Group || x.Content == "secret words" && x.Channel == th.channel.ID
			}), err
		},
		"webhook.LockEnabledWebhooks": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			list, err := webhookstore.LockEnabledWebhooks(t.Context(), tx)
			return !slices.ContainsFunc(list, func(w publishing.Webhook) bool { return w.ID == th.webhook }), err
		},
		"webhook.AddDeliveries": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			delivery := th.newDelivery(id.New[publishing.DeliveryTag]())
			return true, webhookstore.AddDeliveries(t.Context(), tx, []webhookstore.NewDelivery{delivery}, now, "x")
		},
		"webhook.DeleteWebhookEvents": func(t *testing.T, tx *publishingdb.Tx, _ tenantFixture) (bool, error) {
			var every []int64
			for i := range int64(1000) {
				every = append(every, i)
			}
			return true, webhookstore.DeleteWebhookEvents(t.Context(), tx, every)
		},
		"webhook.QueueWebhooks": func(t *testing.T, tx *publishingdb.Tx, th tenantFixture) (bool, error) {
			queue, err := jobs.NewQueue()
			if err != nil {
				return false, err
			}
			return true, webhookstore.QueueWebhooks(t.Context(), tx, queue, []publishing.WebhookID{th.webhook}, "one", "two", later, later, later)
		},
	}
}
