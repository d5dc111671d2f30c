package publishing

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"crier/platform/fault"
	"crier/platform/id"
	"crier/platform/paste"
	"crier/tenancy"
)

// Tags that distinguish webhook id types (platform/id).
type (
	WebhookTag  struct{}
	DeliveryTag struct{}
)

// Webhook ids. A DeliveryID is sent to the endpoint and stays the same for every attempt.
type (
	WebhookID  = id.ID[WebhookTag]
	DeliveryID = id.ID[DeliveryTag]
)

// WebhookEvent is a kind of event that is sent to endpoints. A CHECK constraint on the
// webhook_event table lists the same values, except WebhookTest.
type WebhookEvent string

// Webhook events. Each change to a thread's state that clients can see is one event.
const (
	// WebhookPublished means that the whole thread is published, including its delayed parts.
	WebhookPublished WebhookEvent = "post.published"
	// WebhookFailed means that a part failed permanently and the thread is in the state ERROR.
	WebhookFailed WebhookEvent = "post.failed"
	// WebhookStatus is sent for every other state change of a stored thread: when a draft is
	// scheduled, when a thread becomes a draft, and when a published or failed thread is scheduled
	// again. Nothing is sent when a thread is created, edited, moved or deleted.
	WebhookStatus            WebhookEvent = "post.status_changed"
	WebhookApprovalRequested WebhookEvent = "approval.requested"
	WebhookApprovalResolved  WebhookEvent = "approval.resolved"
	// WebhookTest is the event of a test delivery requested by a user. Endpoints cannot subscribe
	// to it.
	WebhookTest WebhookEvent = "webhook.test"
)

// WebhookEvents returns the events that an endpoint can subscribe to.
func WebhookEvents() []WebhookEvent {
	return []WebhookEvent{
		WebhookPublished, WebhookFailed, WebhookStatus, WebhookApprovalRequested, WebhookApprovalResolved,
	}
}

// WebhookDisabled says why an endpoint is disabled. A CHECK constraint on the table lists the same
// values.
type WebhookDisabled string

// The reasons.
const (
	DisabledByPerson WebhookDisabled = "person"
	// DisabledGone means that the endpoint responded with status 410 (Gone).
	DisabledGone WebhookDisabled = "gone"
	// DisabledFailing means that the endpoint failed for WebhookGiveUp without a single success.
	DisabledFailing WebhookDisabled = "failing"
)

// DeliveryState is the state of a delivery. A CHECK constraint on the table lists the same values.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending   DeliveryState = "pending"
	DeliveryDelivered DeliveryState = "delivered"
	DeliveryFailed    DeliveryState = "failed"
)

// The limits of webhooks.
const (
	// MaxWebhooks is the largest allowed ORG_MAX_WEBHOOKS.
	MaxWebhooks = 10_000
	// MaxWebhookName is in characters.
	MaxWebhookName = 128
	maxWebhookURL  = 2048 // bytes
	// maxWebhookChannels is the maximum number of channels that an endpoint can select.
	maxWebhookChannels = 1000
	// MaxWebhookBody is the maximum size of a request body, in bytes.
	MaxWebhookBody = 20_000
	// MaxWebhookAnswer is the maximum number of bytes read from a response. MaxWebhookExcerpt is
	// how many of these bytes are stored.
	MaxWebhookAnswer  = 8 << 10
	MaxWebhookExcerpt = 512
	// maxPreviousSecrets is the maximum number of earlier secrets that can sign deliveries in
	// addition to the current secret.
	maxPreviousSecrets = 3
	// MaxWebhookPending is the maximum number of pending deliveries per endpoint. If there are
	// more, the oldest are abandoned.
	MaxWebhookPending = 10_000
	// MaxWebhookLog is the maximum number of deliveries kept per endpoint.
	MaxWebhookLog = MaxWebhookPending + 1_000
	// MaxDeliveryPage is the largest number of deliveries in one response.
	MaxDeliveryPage = 50
)

// The durations used for webhooks.
const (
	// WebhookTimeout limits one attempt, from the DNS lookup to the end of the response.
	WebhookTimeout = 15 * time.Second
	// WebhookGiveUp is how long an endpoint can fail without a single success before it is
	// disabled.
	WebhookGiveUp = 5 * 24 * time.Hour
	// WebhookOverlap is how long a replaced secret continues to sign deliveries.
	WebhookOverlap = 24 * time.Hour
	// maxRetryAfter is the longest pause that an endpoint can request. It is equal to the longest
	// wait in webhookWaits.
	maxRetryAfter = 24 * time.Hour
	// webhookJitter is the maximum fraction by which a wait is lengthened or shortened.
	webhookJitter = 0.2
)

// webhookWaits holds the wait before each attempt after the first. Together with the first, there
// are ten attempts within about 75 hours.
var webhookWaits = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour,
	20 * time.Hour, 24 * time.Hour,
}

// MaxWebhookAttempts is the maximum number of attempts per delivery.
const MaxWebhookAttempts = len(webhookWaits) + 1

// WebhookWait returns how long to wait after the given number of failed attempts. It returns false
// if there are no more attempts. chance is a number from 0 to 1 that varies the wait by up to 20%
// in either direction. asked is the endpoint's Retry-After. The wait is never shorter than asked or
// one day, whichever is less.
func WebhookWait(failed int, chance float64, asked time.Duration) (time.Duration, bool) {
	if failed < 1 || failed > len(webhookWaits) {
		return 0, false
	}
	factor := 1 + webhookJitter*(2*chance-1)
	return max(time.Duration(factor*float64(webhookWaits[failed-1])), WebhookPause(asked)), true
}

// WebhookPause returns the pause that the endpoint requested in asked, limited to one day. If asked
// is negative, it returns 0.
func WebhookPause(asked time.Duration) time.Duration { return min(max(asked, 0), maxRetryAfter) }

// Webhook describes an organization's endpoint, without its secret.
type Webhook struct {
	ID   WebhookID
	Name string
	URL  string
	// Events and Integrations limit what the endpoint receives. An empty list sets no limit.
	Events       []WebhookEvent
	Integrations []ChannelID
	CreatedAt    time.Time
	UpdatedAt    time.Time
	// DisabledAt is nil while the endpoint receives events.
	DisabledAt  *time.Time
	DisabledFor *WebhookDisabled
	// FailingSince is the time of the first failed attempt since the last successful one. It is nil
	// if the last attempt succeeded.
	FailingSince *time.Time
	// PreviousUntil holds the times at which earlier secrets expire, soonest first. Until they
	// expire, these secrets still sign deliveries.
	PreviousUntil []time.Time
}

// Origin returns only the scheme and host of the URL, because the rest of the URL may contain a
// token.
func (w Webhook) Origin() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// Rotate returns the webhook as it will be once its secret is replaced. The replaced secret still
// signs deliveries for the duration WebhookOverlap. Earlier secrets keep their expiry times. Rotate
// returns Conflict if maxPreviousSecrets earlier secrets have not expired yet.
func (w Webhook) Rotate(now time.Time) (Webhook, error) {
	w.PreviousUntil = w.StillSign(now)
	if len(w.PreviousUntil) >= maxPreviousSecrets {
		first := w.PreviousUntil[0]
		return w, &fault.Error{
			Kind: fault.Conflict, Op: "publishing.RotateWebhookSecret", RetryAfter: first.Sub(now),
			Message: fmt.Sprintf("The webhook already has %d earlier secrets that still sign, which is the maximum. "+
				"The first one expires at %s: rotate again then.", maxPreviousSecrets, first.UTC().Format(WireTime)),
		}
	}
	w.PreviousUntil, w.UpdatedAt = append(w.PreviousUntil, now.Add(WebhookOverlap)), now
	return w, nil
}

// StillSign returns the expiry times of the earlier secrets that have not expired at the given
// time, soonest first.
func (w Webhook) StillSign(now time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(w.PreviousUntil), func(end time.Time) bool { return !end.After(now) })
}

// Wants reports whether the endpoint should receive the given event for the given channel.
func (w Webhook) Wants(event WebhookEvent, channel ChannelID) bool {
	return w.DisabledAt == nil && (len(w.Events) == 0 || slices.Contains(w.Events, event)) &&
		(len(w.Integrations) == 0 || slices.Contains(w.Integrations, channel))
}

// Pasted returns the command with invisible characters and surrounding white space removed from the
// URL.
func (c SetWebhook) Pasted() SetWebhook {
	if c.URL != nil {
		clean := paste.Line(*c.URL)
		c.URL = &clean
	}
	return c
}

// WebhookRecord is an endpoint together with the channels it selects, including disconnected
// channels.
type WebhookRecord struct {
	Webhook
	Channels []Channel
}

// SetWebhook creates or changes an endpoint. If a field is nil, its value stays unchanged. A new
// endpoint for which neither Events nor Integrations is set receives all events for all channels.
type SetWebhook struct {
	Name *string
	URL  *string
	// Integrations holds channel ids as sent by the client.
	Integrations *[]string
	Events       *[]string
	// Secret is in the Standard Webhooks format: whsec_ followed by base64. If Secret is nil, a new
	// endpoint gets a random secret.
	Secret   *string
	Disabled *bool
}

// Validate returns an Invalid fault that lists every problem detectable without the database.
// isOpen reports whether the operator has allowed a URL's host and port. Only then may the URL use
// plain http.
func (c SetWebhook) Validate(isNew bool, isOpen func(*url.URL) bool) error {
	var faults fault.List
	if c.Name == nil && isNew {
		faults.Add("name", "is required")
	}
	if c.URL == nil && isNew {
		faults.Add("url", "is required")
	}
	if c.Name != nil {
		if _, rule := tenancy.CleanName(*c.Name, 1, MaxWebhookName); rule != "" {
			faults.Add("name", rule)
		}
	}
	if c.URL != nil {
		if rule := webhookURLRule(*c.URL, isOpen); rule != "" {
			faults.Add("url", rule)
		}
	}
	if c.Events != nil {
		for i, e := range *c.Events {
			if !slices.Contains(WebhookEvents(), WebhookEvent(e)) {
				faults.Add(fmt.Sprintf("events.%d", i), "must be one of: "+joinEvents())
			}
		}
	}
	if c.Integrations != nil && len(*c.Integrations) > maxWebhookChannels {
		faults.Add("integrations", fmt.Sprintf("must contain at most %d channels", maxWebhookChannels))
	}
	if c.Secret != nil {
		if _, err := ParseWebhookSecret(*c.Secret); err != nil {
			faults.Add("secret", webhookSecretRule)
		}
	}
	return faults.Err("publishing.SetWebhook", "The webhook is not valid.")
}

// Channels returns the ids in Integrations without duplicates, or false if one of them is not a
// valid id.
func (c SetWebhook) Channels() ([]ChannelID, bool) {
	out := []ChannelID{}
	if c.Integrations == nil {
		return out, true
	}
	for _, text := range *c.Integrations {
		channel, ok := id.Parse[ChannelTag](text)
		if !ok {
			return nil, false
		}
		if !slices.Contains(out, channel) {
			out = append(out, channel)
		}
	}
	return out, true
}

func joinEvents() string {
	var names []string
	for _, e := range WebhookEvents() {
		names = append(names, string(e))
	}
	return strings.Join(names, ", ")
}

// webhookURLRule returns the rule that an endpoint's URL violates, or "" if the URL is valid.
func webhookURLRule(text string, isOpen func(*url.URL) bool) string {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxWebhookURL || !Storable(text) || !utf8.ValidString(u.Host) || u.Hostname() == "" || u.Opaque != "" ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fmt.Sprintf("must be an absolute URL of at most %d bytes, like https://example.com/hook", maxWebhookURL)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isOpen(u)) {
		return "must begin with https://"
	}
	if u.User != nil {
		return "must not contain a user name or password"
	}
	if u.Fragment != "" {
		return "must not contain a fragment (#)"
	}
	return ""
}

// WebhookURL returns an Invalid fault if the text cannot be used as an endpoint's URL.
func WebhookURL(text string, isOpen func(*url.URL) bool) error {
	var faults fault.List
	if rule := webhookURLRule(text, isOpen); rule != "" {
		faults.Add("url", rule)
	}
	return faults.Err("publishing.WebhookURL", "The URL is not valid.")
}

// webhookSecretPrefix is the prefix of secrets in the Standard Webhooks format.
const webhookSecretPrefix = "whsec_"

// The sizes of a secret in bytes.
const (
	minWebhookSecret = 24
	maxWebhookSecret = 64
	// NewWebhookSecret is the size of a secret generated by the service, in bytes.
	NewWebhookSecret = 32
)

const webhookSecretRule = "must be whsec_ followed by the base64 of 24 to 64 bytes"

// ParseWebhookSecret decodes the base64 text after whsec_ and returns the key bytes. The error does
// not contain the secret.
func ParseWebhookSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(paste.Word(text), webhookSecretPrefix)
	if !ok {
		return nil, fault.New(fault.Invalid, "publishing.ParseWebhookSecret", "The secret "+webhookSecretRule+".")
	}
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(key) < minWebhookSecret || len(key) > maxWebhookSecret {
		return nil, fault.New(fault.Invalid, "publishing.ParseWebhookSecret", "The secret "+webhookSecretRule+".")
	}
	return key, nil
}

// FormatWebhookSecret returns the secret that encodes the key bytes.
func FormatWebhookSecret(key []byte) string {
	return webhookSecretPrefix + base64.StdEncoding.EncodeToString(key)
}

// Delivery tracks the delivery of one event to one endpoint.
type Delivery struct {
	ID    DeliveryID
	Event WebhookEvent
	// Post is the thread's first post, or zero for a test.
	Post  PostID
	State DeliveryState
	// Attempts is the number of times that the endpoint has been called so far.
	Attempts int
	// NextAt is nil once the delivery has ended.
	NextAt    *time.Time
	CreatedAt time.Time
	EndedAt   *time.Time
	// Error explains why the delivery failed. It is set only if the last attempt's error does not
	// explain the failure.
	Error *string
	// Log holds the last attempts, oldest first.
	Log  []WebhookAttempt
	Body string
}

// WebhookAttempt is one call to an endpoint, in the form in which it is stored.
type WebhookAttempt struct {
	// Number starts at 1.
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	// Millis is the duration of the call in milliseconds.
	Millis int64 `json:"ms"`
	// Status is the HTTP status of the response, or 0 if there was no response.
	Status int `json:"status,omitempty"`
	// Error is a human-readable explanation of why the attempt failed, or "" if it succeeded.
	Error string `json:"error,omitempty"`
	// Answer is the beginning of the response body.
	Answer string `json:"answer,omitempty"`
}

// ListDeliveries requests an endpoint's newest deliveries.
type ListDeliveries struct {
	// Before is a delivery id as sent by the client. Only older deliveries are returned. If Before
	// is "", the list starts with the newest delivery.
	Before string
	// Limit is from 1 to MaxDeliveryPage.
	Limit int
}
