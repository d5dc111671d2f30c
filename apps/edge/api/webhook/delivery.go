package webhook

import (
	"context"
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"crier/apps/edge/record"
	"crier/apps/edge/request"
	"crier/apps/edge/route"
	"crier/platform/fault"
	"crier/publishing"
)

// DeliveryRecord is the delivery of one event to one webhook.
type DeliveryRecord struct {
	ID            string            `json:"id" doc:"Id of the delivery, as in the headers X-Service-Delivery and webhook-id."`
	Event         string            `json:"event" doc:"Name of the event."`
	PostID        *string           `json:"postId" nullable:"true" doc:"Id of the post; null for a test."`
	State         string            `json:"state" enum:"pending,delivered,failed" doc:"Status of the delivery. pending: the delivery has not been sent yet, or will be retried."`
	Attempts      int               `json:"attempts" doc:"Number of attempts so far."`
	NextAttemptAt *string           `json:"nextAttemptAt" nullable:"true" format:"date-time" doc:"Time of the next attempt; null if the delivery has ended."`
	CreatedAt     string            `json:"createdAt" format:"date-time" doc:"When the event happened."`
	EndedAt       *string           `json:"endedAt" nullable:"true" format:"date-time" doc:"When the delivery succeeded or was abandoned; null while it is pending."`
	Error         *string           `json:"error" nullable:"true" doc:"Why the delivery was abandoned, if the last attempt does not already show the reason."`
	Log           []DeliveryAttempt `json:"log" doc:"The last ten attempts, oldest first."`
	Body          string            `json:"body" doc:"The body that is sent, byte for byte."`
}

// DeliveryAttempt is one call to a webhook.
type DeliveryAttempt struct {
	Attempt    int     `json:"attempt" doc:"Number of the attempt, starting at 1."`
	At         string  `json:"at" format:"date-time" doc:"When the attempt began."`
	DurationMS int64   `json:"durationMs" doc:"Duration of the attempt in milliseconds."`
	Status     *int    `json:"status" nullable:"true" doc:"Status of the response; null if there was none."`
	Error      *string `json:"error" nullable:"true" doc:"Why the attempt failed; null if it succeeded."`
	Answer     string  `json:"answer" doc:"The beginning of the response body; empty for members who do not manage the organization."`
}

type deliveriesInput struct {
	ID     string `path:"id" doc:"Webhook id."`
	Before string `query:"before" maxLength:"64" doc:"Id of a delivery. Only older deliveries are listed."`
	Limit  int    `query:"limit" minimum:"1" maximum:"50" default:"30" doc:"Maximum number of deliveries."`
}

type deliveriesOutput struct{ Body []DeliveryRecord }

// ListDeliveries returns the endpoint that lists a webhook's deliveries.
func (a *API) ListDeliveries() route.Endpoint {
	d := route.Describe("Webhooks", "List a webhook's deliveries, newest first", 400, 404)
	d.Description = "The page /docs/limits shows how long deliveries are kept, and how many are kept per webhook."
	return route.JSON(d, a.listDeliveries)
}

func (a *API) listDeliveries(ctx context.Context, in *deliveriesInput) (*deliveriesOutput, error) {
	p, q := request.Principal(ctx), publishing.ListDeliveries{Before: in.Before, Limit: in.Limit}
	list, err := a.deps.Webhooks.Deliveries(ctx, p, in.ID, q)
	if err != nil {
		return nil, err
	}
	out := &deliveriesOutput{Body: make([]DeliveryRecord, 0, len(list))}
	for _, d := range list {
		out.Body = append(out.Body, deliveryRecord(d, p.Role.Manages()))
	}
	return out, nil
}

// deliveryRecord returns the record of a delivery. manages is true for API keys and for members who
// manage the organization. Only then does the record include the bodies of the webhook's responses.
func deliveryRecord(d publishing.Delivery, manages bool) DeliveryRecord {
	out := DeliveryRecord{
		ID: d.ID.String(), Event: string(d.Event), State: string(d.State), Attempts: d.Attempts, Error: d.Error,
		NextAttemptAt: record.OptionalTime(d.NextAt), CreatedAt: record.FormatTime(d.CreatedAt),
		EndedAt: record.OptionalTime(d.EndedAt),
		Log:     make([]DeliveryAttempt, 0, len(d.Log)), Body: d.Body,
	}
	if !d.Post.IsZero() {
		post := d.Post.String()
		out.PostID = &post
	}
	for _, t := range d.Log {
		attempt := DeliveryAttempt{
			Attempt: t.Number, At: record.FormatTime(t.At), DurationMS: t.Millis,
		}
		if manages {
			attempt.Answer = t.Answer
		}
		if t.Status != 0 {
			attempt.Status = &t.Status
		}
		if t.Error != "" {
			attempt.Error = &t.Error
		}
		out.Log = append(out.Log, attempt)
	}
	return out
}

type deliveryInput struct {
	ID       string `path:"id" doc:"Webhook id."`
	Delivery string `path:"deliveryId" doc:"Delivery id."`
}

// ReplayDelivery returns the endpoint that sends a delivery again.
func (a *API) ReplayDelivery() route.Endpoint {
	d := route.Describe("Webhooks", "Send a delivery again, with the same id and body", 404, 409)
	d.Description = "A delivery that has ended is given another ten attempts. A pending delivery is sent now and " +
		"keeps its remaining retries. 409: the webhook is disabled."
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.replayDelivery)
}

func (a *API) replayDelivery(ctx context.Context, in *deliveryInput) (*record.NamedOutput, error) {
	if err := a.deps.Webhooks.Replay(ctx, request.Principal(ctx), in.ID, in.Delivery); err != nil {
		return nil, err
	}
	return record.NewNamed(in.Delivery), nil
}

// TestWebhook returns the endpoint that sends an example event to a webhook.
func (a *API) TestWebhook() route.Endpoint {
	d := route.Describe("Webhooks", "Send an example event to a webhook, once", 404)
	d.DefaultStatus = http.StatusCreated
	d.Description = "The response contains the delivery id. The list of deliveries shows the outcome."
	return route.JSON(d, a.testWebhook)
}

func (a *API) testWebhook(ctx context.Context, in *webhookInput) (*record.NamedOutput, error) {
	delivery, err := a.deps.Webhooks.Test(ctx, request.Principal(ctx), in.ID)
	if err != nil {
		return nil, err
	}
	return record.NewNamed(delivery.String()), nil
}

type tryInput struct {
	URL string `query:"url" maxLength:"2048" doc:"A public https URL."`
}

// TriedURL is the result of calling a URL.
type TriedURL struct {
	Send    bool    `json:"send" doc:"Whether the URL responded with 2xx."`
	Status  *int    `json:"status" nullable:"true" doc:"Status of the response; null if there was none."`
	Problem *string `json:"problem" nullable:"true" doc:"Why the call failed; null if it succeeded."`
}

type tryOutput struct{ Body TriedURL }

// TryWebhookURL returns the endpoint that posts the request body to a URL.
func (a *API) TryWebhookURL() route.Endpoint {
	d := route.Describe("Webhooks", "Post the JSON body to a URL, once and without a signature", 400, 413)
	d.DefaultStatus = http.StatusCreated
	return route.JSON(d, a.tryWebhookURL, route.RequestBody[AnyJSON]())
}

// AnyJSON is any JSON object.
type AnyJSON map[string]any

func (a *API) tryWebhookURL(ctx context.Context, in *tryInput) (*tryOutput, error) {
	body := request.From(ctx).Body.Loaded()
	if !isObject(body) {
		return nil, &fault.Error{
			Kind: fault.Invalid, Op: "webhook.tryWebhookURL", Message: "The body is not valid.",
			Fields: []fault.Field{{Name: "body", Message: "must be a JSON object"}},
		}
	}
	status, problem, err := a.deps.Webhooks.TryURL(ctx, request.Principal(ctx), in.URL, body)
	if err != nil {
		return nil, err
	}
	out := &tryOutput{Body: TriedURL{Send: problem == ""}}
	if status != 0 {
		out.Body.Status = &status
	}
	if problem != "" {
		out.Body.Problem = &problem
	}
	return out, nil
}

// isObject reports whether body is valid UTF-8 and a single JSON object.
func isObject(body []byte) bool {
	return utf8.Valid(body) && json.Valid(body) && gjson.ParseBytes(body).IsObject()
}
