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

// The tags that distinguish webhook id types (platform/id).
type (
	WebhookTag  struct{}
	DeliveryTag struct{}
)

// The webhook ids. A DeliveryID is sent to the endpoint and is the same in each attempt.
type (
	WebhookID  = id.ID[WebhookTag]
	DeliveryID = id.ID[DeliveryTag]
)

// WebhookEvent is a kind of event that is sent to endpoints. A CHECK constraint on the table
// webhook_event has the same list, without WebhookTest.
type WebhookEvent string

// The events. Each change of a thread's state, as clients see it, is one event.
const (
	// WebhookPublished means that the whole thread is published, including its delayed parts.
	WebhookPublished WebhookEvent = "post.published"
	// WebhookFailed means that a part failed for good and the thread is in the state ERROR.
	WebhookFailed WebhookEvent = "post.failed"
	// WebhookStatus is every other state change of a stored thread: a draft was scheduled, the
	// thread became a draft, or a published or failed thread was scheduled again. Creating,
	// editing, moving and deleting send nothing.
	WebhookStatus            WebhookEvent = "post.status_changed"
	WebhookApprovalRequested WebhookEvent = "approval.requested"
	WebhookApprovalResolved  WebhookEvent = "approval.resolved"
	// WebhookTest is the event of a delivery that a person requests. An endpoint cannot choose it.
	WebhookTest WebhookEvent = "webhook.test"
)

// WebhookEvents returns the events that an endpoint can choose.
func WebhookEvents() []WebhookEvent {
	return []WebhookEvent{
		WebhookPublished, WebhookFailed, WebhookStatus, WebhookApprovalRequested, WebhookApprovalResolved,
	}
}

// WebhookDisabled says why an endpoint receives no events. A CHECK constraint on the table has the
// same list.
type WebhookDisabled string

// The reasons.
const (
	DisabledByPerson WebhookDisabled = "person"
	// DisabledGone means that the endpoint responded with 410.
	DisabledGone WebhookDisabled = "gone"
	// DisabledFailing means that no attempt has succeeded for WebhookGiveUp.
	DisabledFailing WebhookDisabled = "failing"
)

// DeliveryState is the state of a delivery. A CHECK constraint on the table has the same list.
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
	// maxWebhookChannels is how many channels an endpoint may select.
	maxWebhookChannels = 1000
	// MaxWebhookBody is the largest body that is sent, in bytes.
	MaxWebhookBody = 20_000
	// MaxWebhookAnswer is how many bytes of a response are read, and MaxWebhookExcerpt is how many
	// of them are stored.
	MaxWebhookAnswer  = 8 << 10
	MaxWebhookExcerpt = 512
	// maxPreviousSecrets is how many earlier secrets may sign in addition to the current one.
	maxPreviousSecrets = 3
	// MaxWebhookPending is how many deliveries of an endpoint can be pending. Beyond that, the
	// oldest are abandoned.
	MaxWebhookPending = 10_000
	// MaxWebhookLog is how many deliveries of an endpoint are kept.
	MaxWebhookLog = MaxWebhookPending + 1_000
	// MaxDeliveryPage is the largest number of deliveries in one response.
	MaxDeliveryPage = 50
)

// The durations used for webhooks.
const (
	// WebhookTimeout limits one attempt, from the DNS lookup to the end of the response.
	WebhookTimeout = 15 * time.Second
	// WebhookGiveUp is how long an endpoint may fail without a single success before it is
	// disabled.
	WebhookGiveUp = 5 * 24 * time.Hour
	// WebhookOverlap is how long a replaced secret continues to sign deliveries.
	WebhookOverlap = 24 * time.Hour
	// maxRetryAfter is the longest pause that an endpoint can request. It equals the longest wait
	// in webhookWaits.
	maxRetryAfter = 24 * time.Hour
	// webhookJitter is the fraction by which a wait may be longer or shorter.
	webhookJitter = 0.2
)

// webhookWaits are the waits before each attempt after the first: ten attempts in about 75 hours.
var webhookWaits = [...]time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour,
	20 * time.Hour, 24 * time.Hour,
}

// MaxWebhookAttempts is the largest number of attempts for one delivery.
const MaxWebhookAttempts = len(webhookWaits) + 1

// WebhookWait returns how long to wait after the given number of failed attempts, and false if
// there is no further attempt. chance, from 0 to 1, varies the wait by up to 20% in either
// direction. asked is the endpoint's Retry-After: the wait is at least that long, up to a day.
func WebhookWait(failed int, chance float64, asked time.Duration) (time.Duration, bool) {
	if failed < 1 || failed > len(webhookWaits) {
		return 0, false
	}
	factor := 1 + webhookJitter*(2*chance-1)
	return max(time.Duration(factor*float64(webhookWaits[failed-1])), WebhookPause(asked)), true
}

// WebhookPause returns the pause granted to an endpoint that requests one, at most a day.
func WebhookPause(asked time.Duration) time.Duration { return min(max(asked, 0), maxRetryAfter) }

// Webhook is an organization's endpoint, without its secret.
type Webhook struct {
	ID   WebhookID
	Name string
	URL  string
	// Events and Integrations select what the endpoint receives; empty means everything.
	Events       []WebhookEvent
	Integrations []ChannelID
	CreatedAt    time.Time
	UpdatedAt    time.Time
	// DisabledAt is nil while the endpoint receives events.
	DisabledAt  *time.Time
	DisabledFor *WebhookDisabled
	// FailingSince is the time of the first failure since the last success. It is nil if the last
	// attempt succeeded.
	FailingSince *time.Time
	// PreviousUntil holds the times at which earlier secrets expire, soonest first. Until then,
	// they still sign.
	PreviousUntil []time.Time
}

// Origin returns only the scheme and host of the URL, because the rest may contain a token.
func (w Webhook) Origin() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// Rotate returns the webhook after its secret has been replaced. The replaced secret still signs
// for WebhookOverlap, and earlier secrets keep their expiry times. Rotate returns Conflict while
// maxPreviousSecrets earlier secrets still sign.
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

// StillSign returns the expiry times of the earlier secrets that still sign at the given time,
// soonest first.
func (w Webhook) StillSign(now time.Time) []time.Time {
	return slices.DeleteFunc(slices.Clone(w.PreviousUntil), func(end time.Time) bool { return !end.After(now) })
}

// Wants reports whether the endpoint receives this event for this channel.
func (w Webhook) Wants(event WebhookEvent, channel ChannelID) bool {
	return w.DisabledAt == nil && (len(w.Events) == 0 || slices.Contains(w.Events, event)) &&
		(len(w.Integrations) == 0 || slices.Contains(w.Integrations, channel))
}

// Pasted returns the command after removing invisible characters and surrounding white space from
// the URL.
func (c SetWebhook) Pasted() SetWebhook {
	if c.URL != nil {
		clean := paste.Line(*c.URL)
		c.URL = &clean
	}
	return c
}

// WebhookRecord is an endpoint with its selected channels, including disconnected ones.
type WebhookRecord struct {
	Webhook
	Channels []Channel
}

// SetWebhook creates or changes an endpoint. A nil field leaves its value unchanged. A new endpoint
// without Events and Integrations receives all events of all channels.
type SetWebhook struct {
	Name *string
	URL  *string
	// Integrations are channel ids as the client sent them.
	Integrations *[]string
	Events       *[]string
	// Secret is in the Standard Webhooks format: whsec_ followed by base64. If it is nil, a new
	// endpoint gets a random secret.
	Secret   *string
	Disabled *bool
}

// Validate returns Invalid with every problem that can be found without the database. isOpen
// reports whether a URL may use plain http because the operator has allowed its address.
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

// webhookURLRule returns the rule that an endpoint's URL breaks, or "" if the URL is valid.
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

// WebhookURL returns Invalid unless the text can be an endpoint's URL.
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
	// NewWebhookSecret is the size of a secret that the service creates.
	NewWebhookSecret = 32
)

const webhookSecretRule = "must be whsec_ followed by the base64 of 24 to 64 bytes"

// ParseWebhookSecret returns the key bytes of a secret, decoded from the base64 text after whsec_.
// The error does not contain the secret.
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

// FormatWebhookSecret returns the secret for the key bytes.
func FormatWebhookSecret(key []byte) string {
	return webhookSecretPrefix + base64.StdEncoding.EncodeToString(key)
}

// Delivery is one event on its way to one endpoint.
type Delivery struct {
	ID    DeliveryID
	Event WebhookEvent
	// Post is the thread's first post, or zero for a test.
	Post  PostID
	State DeliveryState
	// Attempts is how often the endpoint has been called so far.
	Attempts int
	// NextAt is nil once the delivery has ended.
	NextAt    *time.Time
	CreatedAt time.Time
	EndedAt   *time.Time
	// Error is why the delivery failed, if its last attempt's error does not say so.
	Error *string
	// Log holds the last attempts, oldest first.
	Log  []WebhookAttempt
	Body string
}

// WebhookAttempt is one call to an endpoint, as it is stored.
type WebhookAttempt struct {
	// Number starts at 1.
	Number int       `json:"number"`
	At     time.Time `json:"at"`
	// Millis is how long the call took, in milliseconds.
	Millis int64 `json:"ms"`
	// Status is the HTTP status of the response, or 0 if there was none.
	Status int `json:"status,omitempty"`
	// Error is a human-readable reason why the attempt failed, or "" if it succeeded.
	Error string `json:"error,omitempty"`
	// Answer is the beginning of the response body.
	Answer string `json:"answer,omitempty"`
}

// ListDeliveries requests an endpoint's newest deliveries.
type ListDeliveries struct {
	// Before is a delivery id as the client sent it. Only older deliveries are returned; "" starts
	// with the newest.
	Before string
	// Limit is from 1 to MaxDeliveryPage.
	Limit int
}
