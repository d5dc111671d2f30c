package webhook

import (
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"crier/platform/id"
	"crier/publishing"
	webhookstore "crier/publishing/webhook/store"
)

// Example is a delivery, as seen by its receiver, for use in the documentation.
type Example struct {
	// Secret is the webhook's secret, which signs the delivery.
	Secret string
	Header http.Header
	Body   string
}

// NewExample returns a delivery about a failed post, with fixed ids and times. It returns an error
// if the body cannot be encoded.
func NewExample() (Example, error) {
	at := time.Date(2026, 11, 26, 9, 30, 4, 0, time.UTC)
	text, code := "The text is too long.", publishing.CodeRejected
	customer := "Acme"
	source := webhookstore.WebhookSource{
		At: at, Event: publishing.WebhookFailed, State: string(publishing.StateError), Error: &text, ErrorCode: &code,
		PublishDate: &at, Content: "We ship today.", ChannelName: "Acme News", Connector: "sandbox",
		Picture: "https://platform.example.com/picture/acme", CustomerName: &customer,
	}
	source.Post, source.Group = exampleID[publishing.PostTag](0x04), exampleID[publishing.GroupTag](0x45)
	source.Channel, source.Customer = exampleID[publishing.ChannelTag](0x01), exampleID[publishing.CustomerTag](0x03)
	body, err := render(source)
	if err != nil {
		return Example{}, err
	}
	key := []byte(strings.Repeat("example ", 4))
	c := call{
		id: exampleID[publishing.DeliveryTag](0x10), event: source.Event, attempt: 1, at: at, body: body,
		keys: [][]byte{key},
	}
	return Example{Secret: publishing.FormatWebhookSecret(key), Header: c.headers(), Body: body}, nil
}

// exampleID returns an example id for the documentation. last is its last byte, which distinguishes
// the example ids.
func exampleID[T any](last byte) id.ID[T] {
	return id.FromUUID[T](uuid.UUID{
		0x01, 0x93, 0xb2, 0xc4, 0x7d, 0x10, 0x7a, 0x31, 0x9c, 0x55, 0x2f, 0x0e, 0x6b, 0x1a, 0x4d, last,
	})
}
