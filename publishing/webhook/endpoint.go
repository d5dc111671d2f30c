package webhook

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"crier/platform/env"
	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/limit"
	"crier/platform/paste"
	"crier/platform/pg"
	"crier/publishing"
	"crier/publishing/db"
	webhookstore "crier/publishing/webhook/store"
	"crier/tenancy"
)

// Config configures Webhooks.
type Config struct {
	// MaxWebhooks limits an organization's webhooks, including disabled ones.
	MaxWebhooks int `env:"ORG_MAX_WEBHOOKS, default=100" doc:"Maximum number of webhooks per organization, up to 10000."`
}

// Validate returns all configuration faults as one joined error. errors.As can extract an env.Fault
// from it.
func (c Config) Validate() error {
	var faults env.Faults
	faults.Number("ORG_MAX_WEBHOOKS", int64(c.MaxWebhooks), 1, publishing.MaxWebhooks)
	return faults.Err()
}

// Webhooks manages organizations' webhook endpoints. It is safe for concurrent use. Its methods
// return Forbidden for agents, because an endpoint receives events about every channel, even after
// an agent's grant has ended.
type Webhooks struct {
	cfg    Config
	deps   Deps
	db     *db.DB
	client HTTP
	// tries limits each organization to one call to TryURL at a time in this process.
	tries *limit.PerKey[tenancy.OrgID]
}

// NewWebhooks returns Webhooks that call endpoints through deps.HTTP.
func NewWebhooks(cfg Config, deps Deps) *Webhooks {
	return &Webhooks{cfg: cfg, deps: deps, db: deps.DB, client: deps.HTTP, tries: limit.New[tenancy.OrgID](1)}
}

// List returns the organization's endpoints, oldest first.
func (s *Webhooks) List(ctx context.Context, p tenancy.Principal) ([]publishing.WebhookRecord, error) {
	const op = "publishing.ListWebhooks"
	if err := noAgent(op, p); err != nil {
		return nil, err
	}
	out, err := webhookstore.Webhooks(ctx, s.db, p.Org)
	now := s.deps.Clock.Now()
	for i := range out {
		out[i].PreviousUntil = out[i].StillSign(now)
	}
	return out, pg.Fault(op, err)
}

func noAgent(op string, p tenancy.Principal) error {
	return publishing.NoAgent(op, p, "see or change webhooks")
}

// Create creates an endpoint and returns it with its secret, which is not shown again. It returns
// Invalid with the invalid fields, Quota if the plan's webhook limit has been reached, and Conflict
// if Config.MaxWebhooks has been reached.
func (s *Webhooks) Create(
	ctx context.Context, p tenancy.Principal, cmd publishing.SetWebhook,
) (w publishing.Webhook, shown string, err error) {
	const op = "publishing.CreateWebhook"
	if err := noAgent(op, p); err != nil {
		return w, "", err
	}
	cmd = cmd.Pasted()
	if err := cmd.Validate(true, s.client.IsOpen); err != nil {
		return w, "", err
	}
	key, sealed, err := s.newKey(p.Org, cmd.Secret)
	if err != nil {
		return w, "", pg.Fault(op, err)
	}
	now := s.deps.Clock.Now()
	w = publishing.Webhook{ID: id.New[publishing.WebhookTag](), CreatedAt: now, UpdatedAt: now}
	apply(&w, cmd, now)
	err = s.db.InOrgAs(ctx, p, func(tx *db.Tx) error {
		if err := s.checkNumber(ctx, tx, op); err != nil {
			return err
		}
		if err := chooseChannels(ctx, tx, op, &w, cmd); err != nil {
			return err
		}
		if err := webhookstore.AddWebhook(ctx, tx, w, sealed, p.Person); err != nil {
			return err
		}
		return s.audit(ctx, tx, p, tenancy.ActionWebhookCreated, w)
	})
	return w, publishing.FormatWebhookSecret(key), db.Fault(op, err)
}

// checkNumber returns Quota if the plan's webhook limit has been reached, and Conflict if
// Config.MaxWebhooks has been reached.
func (s *Webhooks) checkNumber(ctx context.Context, tx *db.Tx, op string) error {
	limits, err := db.Limits(ctx, tx, s.deps.Quota)
	if err != nil {
		return err
	}
	present, err := webhookstore.CountWebhooks(ctx, tx)
	switch {
	case err != nil:
		return err
	case present >= limits.Webhooks:
		return limits.OverLimit(op, tenancy.LimitWebhooks, present, limits.Webhooks, "Delete one first,")
	case present >= s.cfg.MaxWebhooks:
		return fault.New(fault.Conflict, op, fmt.Sprintf("Your organization has reached its limit of %d "+
			"webhooks. Delete one first, or ask whoever runs this instance for more.", s.cfg.MaxWebhooks))
	}
	return nil
}

// newKey returns the given secret's key, or a random key if given is nil. sealed is the same key,
// encrypted for storage.
func (s *Webhooks) newKey(org tenancy.OrgID, given *string) (key, sealed []byte, err error) {
	key = make([]byte, publishing.NewWebhookSecret)
	if given != nil {
		key, err = publishing.ParseWebhookSecret(*given)
	} else {
		_, err = rand.Read(key)
	}
	if err != nil {
		return nil, nil, err
	}
	sealed, err = s.deps.Keyring.Seal(key, org.String())
	return key, sealed, err
}

// apply applies a command to an endpoint, except for the channels and the secret.
func apply(w *publishing.Webhook, cmd publishing.SetWebhook, now time.Time) {
	if cmd.Name != nil {
		w.Name, _ = tenancy.CleanName(*cmd.Name, 1, publishing.MaxWebhookName)
	}
	if cmd.URL != nil && *cmd.URL != w.URL {
		w.URL, w.FailingSince = *cmd.URL, nil // the previous URL failed, not the new one
	}
	if cmd.Events != nil {
		w.Events = nil
		for _, e := range *cmd.Events {
			w.Events = append(w.Events, publishing.WebhookEvent(e))
		}
	}
	if cmd.Disabled == nil || *cmd.Disabled == (w.DisabledAt != nil) {
		return
	}
	w.DisabledAt, w.DisabledFor, w.FailingSince = nil, nil, nil
	if *cmd.Disabled {
		why := publishing.DisabledByPerson
		w.DisabledAt, w.DisabledFor = &now, &why
	}
}

// chooseChannels sets the channels that a command selects. It accepts disconnected channels that
// the endpoint already has, because clients send back what they have read. For any other channel
// that the organization has not connected, it returns Invalid.
func chooseChannels(
	ctx context.Context, tx *db.Tx, op string, w *publishing.Webhook, cmd publishing.SetWebhook,
) error {
	if cmd.Integrations == nil {
		return nil
	}
	channels, ok := cmd.Channels()
	if ok {
		added := slices.DeleteFunc(slices.Clone(channels), func(c publishing.ChannelID) bool {
			return slices.Contains(w.Integrations, c)
		})
		known, err := webhookstore.ChannelsConnected(ctx, tx, added)
		if err != nil {
			return err
		}
		ok = known
	}
	if !ok {
		var faults fault.List
		faults.Add("integrations", "must list channels of the organization")
		return faults.Err(op, "The webhook is not valid.")
	}
	w.Integrations = channels
	return nil
}

func noWebhook(op string) error { return fault.New(fault.NotFound, op, "There is no such webhook.") }

// Delete deletes an endpoint with its deliveries and returns the endpoint. It returns NotFound if
// there is no such endpoint. Once Delete has returned, no new call to the endpoint is made. A call
// in flight is not stopped.
func (s *Webhooks) Delete(ctx context.Context, p tenancy.Principal, webhook string) (w publishing.Webhook, err error) {
	err = s.change(ctx, p, "publishing.DeleteWebhook", webhook,
		func(tx *db.Tx, stored publishing.Webhook) error {
			w = stored
			if _, err := webhookstore.DeleteWebhook(ctx, tx, stored.ID); err != nil {
				return err
			}
			return s.audit(ctx, tx, p, tenancy.ActionWebhookDeleted, w)
		})
	return w, err
}

// Deliveries returns an endpoint's newest deliveries, including their bodies. It returns NotFound
// if the endpoint does not exist and Invalid if q.Before is not an id.
func (s *Webhooks) Deliveries(
	ctx context.Context, p tenancy.Principal, webhook string, q publishing.ListDeliveries,
) ([]publishing.Delivery, error) {
	const op = "publishing.ListDeliveries"
	if err := noAgent(op, p); err != nil {
		return nil, err
	}
	parsed, ok := id.Parse[publishing.WebhookTag](webhook)
	if !ok {
		return nil, noWebhook(op)
	}
	before, ok := id.Parse[publishing.DeliveryTag](q.Before)
	if !ok && q.Before != "" {
		var faults fault.List
		faults.Add("before", "must be the id of a delivery")
		return nil, faults.Err(op, "The query is not valid.")
	}
	out, known, err := webhookstore.Deliveries(
		ctx, s.db, p.Org, parsed, before, min(max(q.Limit, 1), publishing.MaxDeliveryPage),
	)
	if err != nil {
		return nil, pg.Fault(op, err)
	}
	if !known {
		return nil, noWebhook(op)
	}
	return out, nil
}

// Replay sends a delivery again, with the same id and body. A delivery that has ended gets a new
// retry schedule; a pending delivery keeps its schedule. Replay returns NotFound if the endpoint or
// the delivery does not exist, and Conflict while the endpoint is disabled.
func (s *Webhooks) Replay(ctx context.Context, p tenancy.Principal, webhook, delivery string) error {
	const op = "publishing.ReplayDelivery"
	none := fault.New(fault.NotFound, op, "There is no such delivery.")
	parsed, ok := id.Parse[publishing.DeliveryTag](delivery)
	return s.change(ctx, p, op, webhook, func(tx *db.Tx, w publishing.Webhook) error {
		if !ok {
			return none
		}
		found, err := webhookstore.Replay(ctx, tx, w.ID, parsed, s.deps.Clock.Now())
		if err != nil {
			return err
		}
		if !found {
			return none
		}
		if w.DisabledAt != nil { // the transaction is rolled back
			return fault.New(fault.Conflict, op, "The webhook is disabled, so nothing is sent to it. Enable it first.")
		}
		return nil
	})
}

// Test sends an example to an endpoint once, even if the endpoint is disabled. It returns the id of
// the delivery. Deliveries reports the outcome under this id. Test returns NotFound if there is no
// such endpoint.
func (s *Webhooks) Test(
	ctx context.Context, p tenancy.Principal, hook string,
) (delivery publishing.DeliveryID, err error) {
	err = s.change(ctx, p, "publishing.TestWebhook", hook, func(tx *db.Tx, w publishing.Webhook) error {
		now := s.deps.Clock.Now()
		body, err := TestBody(w.ID, now)
		if err != nil {
			return err
		}
		delivery = id.New[publishing.DeliveryTag]()
		return webhookstore.AddDeliveries(ctx, tx, []webhookstore.NewDelivery{{
			ID: delivery, Webhook: w.ID, Event: publishing.WebhookTest, Body: body,
		}}, now, TooMany)
	})
	return delivery, err
}

// TryURL posts a body to a URL once, without a signature, and stores nothing. status and problem
// are the results of Try. TryURL returns Invalid if the URL is not allowed for an endpoint or the
// body is too large. It returns RateLimited while another call by the organization is waiting for a
// response.
func (s *Webhooks) TryURL(
	ctx context.Context, p tenancy.Principal, address string, body []byte,
) (status int, problem string, err error) {
	if err := noAgent("publishing.TryWebhook", p); err != nil {
		return 0, "", err
	}
	address = paste.Line(address)
	if err := publishing.WebhookURL(address, s.client.IsOpen); err != nil {
		return 0, "", err
	}
	if len(body) > publishing.MaxWebhookBody {
		var faults fault.List
		faults.Add("body", fmt.Sprintf("must be at most %d bytes", publishing.MaxWebhookBody))
		return 0, "", faults.Err("publishing.TryWebhook", "The body is not valid.")
	}
	leave, ok := s.tries.TryEnter(p.Org)
	if !ok {
		return 0, "", &fault.Error{
			Kind: fault.RateLimited, Op: "publishing.TryWebhook", RetryAfter: publishing.WebhookTimeout,
			Message: "Your organization is waiting for another endpoint to answer; try again in a few seconds.",
		}
	}
	defer leave()
	status, problem = Try(ctx, s.client, address, string(body), s.deps.Clock.Now())
	return status, problem, nil
}

// AddEvent records an event about a thread for the organization's endpoints; see
// post.WebhookEvents.
func (s *Webhooks) AddEvent(
	ctx context.Context, tx *db.Tx, event publishing.WebhookEvent, post publishing.PostID, data any,
) error {
	return webhookstore.AddWebhookEvent(ctx, tx, event, post, data)
}

// TakeMade returns the webhooks that a person created, and those whose URL or secret the person
// chose. It runs in q's transaction and covers only that transaction's organization. If revoke is
// true, it also deletes these webhooks. Any error is a Postgres error.
func (s *Webhooks) TakeMade(
	ctx context.Context, q pg.Querier, person tenancy.PersonID, revoke bool,
) ([]tenancy.CreatedWebhook, error) {
	return webhookstore.WebhooksBy(ctx, q, person, revoke)
}
