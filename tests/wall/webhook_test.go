package wall

import (
	"slices"
	"testing"
	"time"

	"crier/platform/id"
	"crier/platform/jobs"
	"crier/publishing"
	publishingstore "crier/publishing/store"
	"crier/tenancy"
)

// addWebhook adds an endpoint with a pending delivery and an event.
func (e *tenantFixture) addWebhook(t *testing.T, s *publishingstore.Store) {
	t.Helper()
	e.webhook, e.delivery = id.New[publishing.WebhookTag](), id.New[publishing.DeliveryTag]()
	must(t, s.InOrg(t.Context(), e.org, func(tx *publishingstore.Tx) error {
		if err := publishingstore.AddWebhook(t.Context(), tx, e.hook(), []byte("sealed"), tenancy.PersonID{}); err != nil {
			return err
		}
		if err := publishingstore.RotateWebhook(t.Context(), tx, e.webhook, []byte("sealed too"), now.Add(time.Hour), now); err != nil {
			return err
		}
		if err := publishingstore.AddDeliveries(t.Context(), tx, []publishingstore.NewDelivery{e.newDelivery(e.delivery)}, now, "x"); err != nil {
			return err
		}
		return publishingstore.AddWebhookEvent(t.Context(), tx, publishing.WebhookPublished, e.post.ID, nil)
	}))
}

func (e tenantFixture) hook() publishing.Webhook {
	return publishing.Webhook{
		ID: e.webhook, Name: "hook", URL: "https://example.com/" + e.org.String(), Integrations: []publishing.ChannelID{e.channel.ID},
		CreatedAt: now, UpdatedAt: now,
	}
}

func (e tenantFixture) newDelivery(delivery publishing.DeliveryID) publishingstore.NewDelivery {
	return publishingstore.NewDelivery{ID: delivery, Webhook: e.webhook, Event: publishing.WebhookTest, Body: "secret words"}
}

// webhookQuestions returns the questions about webhooks.
func webhookQuestions(s *publishingstore.Store) map[string]question {
	later := time.Now().Add(time.Hour)
	all := map[string]question{
		"Store.Webhooks": func(t *testing.T, m, th tenantFixture) bool {
			list, err := publishingstore.Webhooks(t.Context(), s, m.org)
			return err == nil && !slices.ContainsFunc(list, func(w publishing.WebhookRecord) bool {
				return w.ID == th.webhook || len(w.Channels) > 0 && w.Channels[0].ID == th.channel.ID
			})
		},
		"Store.Deliveries": func(t *testing.T, m, th tenantFixture) bool {
			list, known, err := publishingstore.Deliveries(t.Context(), s, m.org, th.webhook, publishing.DeliveryID{}, 10)
			return err == nil && len(list) == 0 && !known
		},
		"Store.BeginWebhook": func(t *testing.T, m, th tenantFixture) bool {
			_, found, err := publishingstore.BeginWebhook(t.Context(), s, m.org, th.webhook, later, later)
			return err == nil && !found
		},
		"Store.DueDeliveries": func(t *testing.T, m, th tenantFixture) bool {
			list, err := publishingstore.DueDeliveries(t.Context(), s, m.org, th.webhook, later, 10)
			return err == nil && len(list) == 0
		},
		"Store.DeliveryTarget": func(t *testing.T, m, th tenantFixture) bool {
			_, found, err := publishingstore.DeliveryTarget(t.Context(), s, m.org, th.webhook, publishingstore.DueDelivery{ID: th.delivery}, now)
			return err == nil && !found
		},
		"Store.SaveAttempt": func(t *testing.T, m, th tenantFixture) bool {
			since, err := publishingstore.SaveAttempt(t.Context(), s, m.org, th.webhook, publishingstore.AttemptResult{
				Delivery: th.delivery, URL: th.hook().URL, Attempt: publishing.WebhookAttempt{Number: 1}, State: publishing.DeliveryFailed,
			}, now)
			return err == nil && since == nil
		},
		"Store.EndWebhook": func(t *testing.T, m, th tenantFixture) bool {
			return publishingstore.EndWebhook(t.Context(), s, m.org, th.webhook, now) == nil // see preparations
		},
		"Store.DisableWebhook": func(t *testing.T, m, th tenantFixture) bool {
			done, err := publishingstore.DisableWebhook(t.Context(), s, m.org, th.webhook, th.hook().URL, publishing.DisabledGone, "x", now)
			return err == nil && !done
		},
	}
	for name, ask := range webhookTxQuestions(later) {
		all[name] = inOrg(s, ask)
	}
	return all
}

type txQuestion = func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error)

func webhookTxQuestions(later time.Time) map[string]txQuestion {
	return map[string]txQuestion{
		"Tx.AddWebhook": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			w := th.hook()
			w.ID = id.New[publishing.WebhookTag]()
			return true, publishingstore.AddWebhook(t.Context(), tx, w, []byte("sealed"), tenancy.PersonID{})
		},
		"Tx.ChannelsConnected": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			all, err := publishingstore.ChannelsConnected(t.Context(), tx, []publishing.ChannelID{th.channel.ID})
			return !all, err
		},
		"Tx.LockWebhook": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.LockWebhook(t.Context(), tx, th.webhook)
			return false, err
		},
		"Tx.UpdateWebhook": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			w := th.hook()
			w.Name = "renamed"
			return true, publishingstore.UpdateWebhook(t.Context(), tx, w)
		},
		"Tx.WebhookKey": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			_, err := publishingstore.WebhookKey(t.Context(), tx, th.webhook)
			return false, err
		},
		"Tx.RotateWebhook": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.RotateWebhook(t.Context(), tx, th.webhook, []byte("another"), later, now)
		},
		"Tx.WebhookKnownTo": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.WebhookKnownTo(t.Context(), tx, th.webhook, th.person)
		},
		"Tx.DeleteWebhook": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			found, err := publishingstore.DeleteWebhook(t.Context(), tx, th.webhook)
			return !found, err
		},
		"Tx.StopDeliveries": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.StopDeliveries(t.Context(), tx, th.webhook, now, "x")
		},
		"Tx.Replay": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			found, err := publishingstore.Replay(t.Context(), tx, th.webhook, th.delivery, later)
			return !found, err
		},
		"Tx.AddWebhookEvent": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			return true, publishingstore.AddWebhookEvent(t.Context(), tx, publishing.WebhookPublished, th.post.ID, nil)
		},
		"Tx.WebhookSources": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			list, err := publishingstore.WebhookSources(t.Context(), tx, 10, nil)
			return !slices.ContainsFunc(list, func(x publishingstore.WebhookSource) bool {
				return x.Group == th.post.Group || x.Content == "secret words" && x.Channel == th.channel.ID
			}), err
		},
		"Tx.LockEnabledWebhooks": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			list, err := publishingstore.LockEnabledWebhooks(t.Context(), tx)
			return !slices.ContainsFunc(list, func(w publishing.Webhook) bool { return w.ID == th.webhook }), err
		},
		"Tx.AddDeliveries": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			delivery := th.newDelivery(id.New[publishing.DeliveryTag]())
			return true, publishingstore.AddDeliveries(t.Context(), tx, []publishingstore.NewDelivery{delivery}, now, "x")
		},
		"Tx.DeleteWebhookEvents": func(t *testing.T, tx *publishingstore.Tx, _ tenantFixture) (bool, error) {
			var every []int64
			for i := range int64(1000) {
				every = append(every, i)
			}
			return true, publishingstore.DeleteWebhookEvents(t.Context(), tx, every)
		},
		"Tx.QueueWebhooks": func(t *testing.T, tx *publishingstore.Tx, th tenantFixture) (bool, error) {
			queue, err := jobs.NewQueue()
			if err != nil {
				return false, err
			}
			return true, publishingstore.QueueWebhooks(t.Context(), tx, queue, []publishing.WebhookID{th.webhook}, "one", "two", later, later, later)
		},
	}
}
