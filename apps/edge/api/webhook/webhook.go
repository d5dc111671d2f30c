// Package webhook provides the endpoints for webhooks and their deliveries.
package webhook

import (
	"context"
	"net/http"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/publishing"
	"crier/tenancy"
)

// Deps holds an API's dependencies.
type Deps struct {
	Webhooks Webhooks
}

// API provides the endpoints, one per exported method. It is safe for concurrent use.
type API struct{ deps Deps }

// New returns an API. It does not check that d is complete.
func New(d Deps) *API { return &API{deps: d} }

// Webhooks manages an organization's webhooks. Callers pass ids exactly as the client sent them.
// Methods return NotFound if a webhook or a delivery does not exist or belongs to another
// organization. Every method can also return Unavailable and Internal.
type Webhooks interface {
	// List returns the organization's webhooks.
	List(ctx context.Context, p tenancy.Principal) ([]publishing.WebhookRecord, error)
	// Create creates a webhook and returns it with its secret. It returns Invalid if cmd is
	// invalid. It returns Quota if the plan's limit on webhooks has been reached, and Conflict if
	// the limit that applies to every organization has been reached.
	Create(ctx context.Context, p tenancy.Principal, cmd publishing.SetWebhook) (publishing.Webhook, string, error)
	// Update changes a webhook and returns it. It returns Invalid if cmd is invalid, and Conflict
	// in the same case as RotateSecret.
	Update(
		ctx context.Context, p tenancy.Principal, webhook string, cmd publishing.SetWebhook,
	) (publishing.Webhook, error)
	// Delete deletes a webhook and its deliveries, and returns the webhook.
	Delete(ctx context.Context, p tenancy.Principal, webhook string) (publishing.Webhook, error)
	// RotateSecret replaces a webhook's secret with given. If given is nil, it generates a random
	// secret. It returns the updated webhook and the new secret. It returns Invalid if given is not
	// a valid secret, and Conflict if too many previous secrets are still used for signing.
	RotateSecret(
		ctx context.Context, p tenancy.Principal, webhook string, given *string,
	) (publishing.Webhook, string, error)
	WebhookDeliveries
}

// WebhookDeliveries lists, replays and tests webhook deliveries.
type WebhookDeliveries interface {
	// Deliveries returns a webhook's newest deliveries, or Invalid if the query is invalid.
	Deliveries(
		ctx context.Context, p tenancy.Principal, webhook string, q publishing.ListDeliveries,
	) ([]publishing.Delivery, error)
	// Replay sends a delivery again.
	Replay(ctx context.Context, p tenancy.Principal, webhook, delivery string) error
	// Test sends an example event and returns the delivery id.
	Test(ctx context.Context, p tenancy.Principal, webhook string) (publishing.DeliveryID, error)
	// TryURL posts a body to a URL once. It returns the response status and the reason for a
	// failure. The status is 0 if there was no response, and the reason is "" if the call
	// succeeded. TryURL returns Invalid if the URL or the body is not accepted.
	TryURL(ctx context.Context, p tenancy.Principal, address string, body []byte) (int, string, error)
}

// WebhookRecord is a webhook without its secret.
type WebhookRecord struct {
	ID           string           `json:"id" doc:"Id of the webhook."`
	Name         string           `json:"name" doc:"Display name."`
	URL          string           `json:"url" doc:"Where deliveries are sent. Members who do not manage the organization see only the scheme and host."`
	Events       []string         `json:"events" doc:"The events that the webhook receives. Empty means all events."`
	Integrations []WebhookChannel `json:"integrations" doc:"The channels whose events the webhook receives. Empty means all channels."`
	SecretSet    bool             `json:"secretSet" doc:"Always true, because every webhook has a secret."`
	PreviousSecrets
	Disabled bool `json:"disabled" doc:"Whether the webhook is disabled. A disabled webhook receives no deliveries."`
	// DisabledReason is a publishing.WebhookDisabled.
	DisabledReason *string `json:"disabledReason" nullable:"true" enum:"person,gone,failing" doc:"Why the webhook was disabled. gone: the URL responded with 410. failing: all deliveries failed for five days."`
	DisabledAt     *string `json:"disabledAt" nullable:"true" format:"date-time" doc:"When the webhook was disabled; null if it is not disabled."`
	FailingSince   *string `json:"failingSince" nullable:"true" format:"date-time" doc:"When deliveries began to fail after the last success; null if the last delivery succeeded."`
	CreatedAt      string  `json:"createdAt" format:"date-time" doc:"When the webhook was created."`
	UpdatedAt      string  `json:"updatedAt" format:"date-time" doc:"When the webhook was last changed."`
}

// PreviousSecrets lists when each of a webhook's previous secrets expires.
type PreviousSecrets struct {
	Until []string `json:"previousSecretsUntil" format:"date-time" doc:"When each earlier secret expires, soonest first. Until then, deliveries are also signed with that secret."`
}

func previousSecrets(w publishing.Webhook) PreviousSecrets {
	out := PreviousSecrets{Until: make([]string, len(w.PreviousUntil))}
	for i, end := range w.PreviousUntil {
		out.Until[i] = record.FormatTime(end)
	}
	return out
}

// WebhookChannel is a channel whose events a webhook receives.
type WebhookChannel struct {
	Integration channelPicture `json:"integration" doc:"The channel."`
}

type channelPicture struct {
	ID      string `json:"id" doc:"Channel id."`
	Name    string `json:"name" doc:"Name of the channel."`
	Picture string `json:"picture" doc:"URL of the channel's picture."`
}

type webhooksOutput struct{ Body []WebhookRecord }

// ListWebhooks returns the endpoint that lists the organization's webhooks.
func (a *API) ListWebhooks() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Webhooks", "List the webhooks"),
		"Secrets are not included. failingSince and disabledReason show which webhooks do not work."), a.listWebhooks)
}

func (a *API) listWebhooks(ctx context.Context, _ *struct{}) (*webhooksOutput, error) {
	p := request.Principal(ctx)
	list, err := a.deps.Webhooks.List(ctx, p)
	if err != nil {
		return nil, err
	}
	out := &webhooksOutput{Body: make([]WebhookRecord, 0, len(list))}
	for _, w := range list {
		out.Body = append(out.Body, webhookRecord(w, p.Role.Manages()))
	}
	return out, nil
}

// webhookRecord returns the record of a webhook. manages is true for API keys and for members who
// manage the organization. Only then does the record include the full URL, which may contain a
// token.
func webhookRecord(w publishing.WebhookRecord, manages bool) WebhookRecord {
	out := WebhookRecord{
		ID: w.ID.String(), Name: w.Name, URL: w.URL, Events: []string{}, Integrations: []WebhookChannel{},
		SecretSet: true, PreviousSecrets: previousSecrets(w.Webhook), Disabled: w.DisabledAt != nil,
		DisabledReason: (*string)(w.DisabledFor), DisabledAt: record.OptionalTime(w.DisabledAt),
		FailingSince: record.OptionalTime(w.FailingSince), CreatedAt: record.FormatTime(w.CreatedAt),
		UpdatedAt: record.FormatTime(w.UpdatedAt),
	}
	if !manages {
		out.URL = w.Origin()
	}
	for _, e := range w.Events {
		out.Events = append(out.Events, string(e))
	}
	for _, c := range w.Channels {
		out.Integrations = append(out.Integrations, WebhookChannel{
			Integration: channelPicture{ID: c.ID.String(), Name: c.Name, Picture: c.Picture},
		})
	}
	return out
}

// WebhookChoice identifies a channel in a request.
type WebhookChoice struct {
	ID string `json:"id" maxLength:"64" doc:"Channel id."`
}

// WebhookOptions holds the members of a webhook that a request can omit.
type WebhookOptions struct {
	Integrations *[]WebhookChoice `json:"integrations,omitempty" nullable:"true" doc:"The channels whose events the webhook receives. Empty means all channels."`
	Events       *[]string        `json:"events,omitempty" nullable:"true" maxItems:"20" doc:"Any of post.published, post.failed, post.status_changed, approval.requested and approval.resolved. Empty means all events."`
	Secret       *string          `json:"secret,omitempty" nullable:"true" maxLength:"128" doc:"whsec_ followed by the base64 encoding of 24 to 64 bytes. If absent, a random secret is generated."`
	Disabled     *bool            `json:"disabled,omitempty" nullable:"true" doc:"A disabled webhook receives no events."`
}

func (o WebhookOptions) command() publishing.SetWebhook {
	out := publishing.SetWebhook{Events: o.Events, Secret: o.Secret, Disabled: o.Disabled}
	if o.Secret != nil && *o.Secret == "" {
		out.Secret = nil
	}
	if o.Integrations != nil {
		ids := make([]string, len(*o.Integrations))
		for i, c := range *o.Integrations {
			ids[i] = c.ID
		}
		out.Integrations = &ids
	}
	return out
}

// CreateWebhookRequest is the body of POST /webhooks.
type CreateWebhookRequest struct {
	Name string `json:"name" maxLength:"256" doc:"1 to 128 characters."`
	URL  string `json:"url" maxLength:"2048" doc:"A public https URL."`
	WebhookOptions
}

type createWebhookInput struct{ Body CreateWebhookRequest }

// NewWebhook is the id and the secret of a new webhook.
type NewWebhook struct {
	ID     string `json:"id" doc:"Id of the webhook."`
	Secret string `json:"secret" doc:"The secret that signs deliveries. It is returned only in this response."`
}

type createWebhookOutput struct{ Body NewWebhook }

// CreateWebhook returns the endpoint that creates a webhook.
func (a *API) CreateWebhook() route.Endpoint {
	d := route.Describe("Webhooks", "Create a webhook", 400, 402, 409, 413)
	d.DefaultStatus = http.StatusCreated
	d.Description = "The service calls the URL when posts are published, fail or change status. The page " +
		"/docs/webhooks describes the events and how deliveries are signed and retried. 409: the organization has " +
		"reached its webhook limit."
	return route.JSON(d, a.createWebhook)
}

func (a *API) createWebhook(ctx context.Context, in *createWebhookInput) (*createWebhookOutput, error) {
	cmd := in.Body.command()
	cmd.Name, cmd.URL = &in.Body.Name, &in.Body.URL
	w, secret, err := a.deps.Webhooks.Create(ctx, request.Principal(ctx), cmd)
	if err != nil {
		return nil, err
	}
	return &createWebhookOutput{Body: NewWebhook{ID: w.ID.String(), Secret: secret}}, nil
}

// UpdateWebhookRequest is the body of PUT /webhooks/{id}. Absent members keep their values.
type UpdateWebhookRequest struct {
	Name *string `json:"name,omitempty" nullable:"true" maxLength:"256" doc:"1 to 128 characters."`
	URL  *string `json:"url,omitempty" nullable:"true" maxLength:"2048" doc:"A public https URL."`
	WebhookOptions
}

func (r UpdateWebhookRequest) command() publishing.SetWebhook {
	cmd := r.WebhookOptions.command()
	cmd.Name, cmd.URL = r.Name, r.URL
	return cmd
}

type updateWebhookInput struct {
	ID   string `path:"id" doc:"Webhook id."`
	Body UpdateWebhookRequest
}

const updateWebhookText = "Fields that you leave out keep their values. If the secret changes, deliveries are also " +
	"signed with the previous secret for 24 hours. disabled: false re-enables a webhook and clears its failures. " +
	"Once the response is sent, no new call is made to the previous URL or to a disabled webhook. 409: deliveries " +
	"are still signed with three earlier secrets."

// UpdatedWebhook is the response to changing a webhook.
type UpdatedWebhook struct {
	ID string `json:"id" doc:"Id of the webhook."`
	PreviousSecrets
}

type updateWebhookOutput struct{ Body UpdatedWebhook }

// UpdateWebhook returns the endpoint that changes a webhook.
func (a *API) UpdateWebhook() route.Endpoint {
	d := route.Describe("Webhooks", "Change a webhook", 400, 404, 409, 413)
	d.Description = updateWebhookText
	return route.JSON(d, func(ctx context.Context, in *updateWebhookInput) (*updateWebhookOutput, error) {
		return a.updateWebhook(ctx, in.ID, in.Body.command())
	})
}

// ReplaceWebhookRequest is the body of PUT /webhooks.
type ReplaceWebhookRequest struct {
	ID string `json:"id" maxLength:"64" doc:"Webhook id."`
	UpdateWebhookRequest
}

type replaceWebhookInput struct{ Body ReplaceWebhookRequest }

// UpdateWebhookByBody is like UpdateWebhook, but its endpoint takes the webhook id from the body.
func (a *API) UpdateWebhookByBody() route.Endpoint {
	d := route.Describe("Webhooks", "Change the webhook named in the body", 400, 404, 409, 413)
	d.Description = updateWebhookText
	return route.JSON(d, func(ctx context.Context, in *replaceWebhookInput) (*updateWebhookOutput, error) {
		return a.updateWebhook(ctx, in.Body.ID, in.Body.command())
	})
}

func (a *API) updateWebhook(
	ctx context.Context, id string, cmd publishing.SetWebhook,
) (*updateWebhookOutput, error) {
	w, err := a.deps.Webhooks.Update(ctx, request.Principal(ctx), id, cmd)
	if err != nil {
		return nil, err
	}
	return &updateWebhookOutput{Body: UpdatedWebhook{ID: w.ID.String(), PreviousSecrets: previousSecrets(w)}}, nil
}

type webhookInput struct {
	ID string `path:"id" doc:"Webhook id."`
}

// DeleteWebhook returns the endpoint that deletes a webhook and its deliveries.
func (a *API) DeleteWebhook() route.Endpoint {
	return route.JSON(route.Described(route.Describe("Webhooks", "Delete a webhook and its deliveries", 404),
		"Pending deliveries are not sent. Once the response is sent, no new call to the webhook "+
			"begins."), a.deleteWebhook)
}

func (a *API) deleteWebhook(ctx context.Context, in *webhookInput) (*record.NamedOutput, error) {
	w, err := a.deps.Webhooks.Delete(ctx, request.Principal(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return record.NewNamed(w.ID.String()), nil
}

// RotateWebhookRequest is the optional body of POST /webhooks/{id}/rotate-secret.
type RotateWebhookRequest struct {
	Secret *string `json:"secret,omitempty" nullable:"true" maxLength:"128" doc:"whsec_ followed by the base64 encoding of 24 to 64 bytes. If absent, a random secret is generated."`
}

type rotateWebhookInput struct {
	ID   string `path:"id" doc:"Webhook id."`
	Body *RotateWebhookRequest
}

// RotatedWebhook is the response to replacing a webhook's secret.
type RotatedWebhook struct {
	ID       string  `json:"id" doc:"Id of the webhook."`
	Secret   string  `json:"secret" doc:"The new secret. It is returned only in this response."`
	OldUntil *string `json:"previousSecretUntil" nullable:"true" format:"date-time" doc:"When the previous secret expires; null if the secret in the request was already the current one."`
	PreviousSecrets
}

type rotateWebhookOutput struct{ Body RotatedWebhook }

// RotateWebhookSecret returns the endpoint that replaces a webhook's secret.
func (a *API) RotateWebhookSecret() route.Endpoint {
	d := route.Describe("Webhooks", "Replace a webhook's secret", 400, 404, 409, 413)
	d.Description = "For 24 hours, deliveries are also signed with the previous secret, and webhook-signature " +
		"contains one signature per secret. Another rotation does not shorten this period. 409: deliveries are still " +
		"signed with three earlier secrets; the message says when the first of these expires."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.rotateWebhookSecret)
}

func (a *API) rotateWebhookSecret(ctx context.Context, in *rotateWebhookInput) (*rotateWebhookOutput, error) {
	var given *string
	if in.Body != nil {
		given = in.Body.Secret
	}
	w, secret, err := a.deps.Webhooks.RotateSecret(ctx, request.Principal(ctx), in.ID, given)
	if err != nil {
		return nil, err
	}
	out := RotatedWebhook{ID: w.ID.String(), Secret: secret, PreviousSecrets: previousSecrets(w)}
	if n := len(w.PreviousUntil); n > 0 {
		out.OldUntil = &out.Until[n-1]
	}
	return &rotateWebhookOutput{Body: out}, nil
}
