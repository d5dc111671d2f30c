package docs

import (
	"maps"
	"slices"

	"crier/publishing"
	"crier/publishing/webhook"
)

// webhookEvent is an event that a webhook can subscribe to. When says what triggers the event. A
// test in tests/contract triggers each event.
type webhookEvent struct {
	Event publishing.WebhookEvent
	When  string
}

var webhookEvents = []webhookEvent{
	{Event: publishing.WebhookPublished, When: "The whole post was published, including its delayed parts."},
	{Event: publishing.WebhookFailed, When: "The post or one of its parts failed. The state is now ERROR."},
	{
		Event: publishing.WebhookStatus,
		When: "A draft was scheduled by a status change, an edit or an approval; a scheduled post became a draft; " +
			"or a published or failed post was scheduled again or became a draft.",
	},
	{Event: publishing.WebhookApprovalRequested, When: "Approval of a draft was requested."},
	{
		Event: publishing.WebhookApprovalResolved,
		When: "The approval request was answered, was withdrawn or expired, or its post was edited or scheduled. " +
			"approval.status shows the result. VOID means that an approval is no longer valid, because it was " +
			"withdrawn or the post was changed.",
	},
}

// delivery is a webhook delivery as its receiver sees it.
type delivery struct {
	Secret string
	// Now is a time, in seconds since 1970, at which the delivery is still recent enough to be
	// accepted.
	Now     string
	Headers []header
	// Body is the body as sent. Indented is the same JSON with one member per line.
	Body, Indented string
}

// exampleDelivery returns an example delivery. It is created by the code that sends real
// deliveries.
func exampleDelivery() (delivery, error) {
	x, err := webhook.NewExample()
	if err != nil {
		return delivery{}, err
	}
	indented, err := indent([]byte(x.Body))
	if err != nil {
		return delivery{}, err
	}
	out := delivery{Secret: x.Secret, Now: x.Header.Get("webhook-timestamp"), Body: x.Body, Indented: indented}
	for _, name := range slices.Sorted(maps.Keys(x.Header)) {
		out.Headers = append(out.Headers, header{Name: name, Value: x.Header.Get(name)})
	}
	return out, nil
}
