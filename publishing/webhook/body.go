package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"crier/platform/text"
	"crier/publishing"
	webhookstore "crier/publishing/webhook/store"
)

// post is the only element of a body's JSON array.
type post struct {
	ID          string                 `json:"id"`
	Event       string                 `json:"event"`
	OccurredAt  string                 `json:"occurredAt"`
	Group       string                 `json:"group"`
	State       string                 `json:"state"`
	Content     string                 `json:"content"`
	ContentType publishing.ContentType `json:"contentType"`
	// Truncated is set if Content was truncated to limit the size of the body.
	Truncated   bool            `json:"contentTruncated,omitempty"`
	PublishDate string          `json:"publishDate"`
	ReleaseID   *string         `json:"releaseId"`
	ReleaseURL  *string         `json:"releaseURL"`
	Error       *string         `json:"error"`
	ErrorCode   *string         `json:"errorCode"`
	Integration integration     `json:"integration"`
	Customer    *customer       `json:"customer,omitempty"`
	Approval    json.RawMessage `json:"approval,omitempty"`
}

type integration struct {
	ID                 string `json:"id"`
	Name               string `json:"name"`
	ProviderIdentifier string `json:"providerIdentifier"`
	Picture            string `json:"picture"`
	Type               string `json:"type"`
}

type customer struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// maxText is the maximum size, in bytes, of each text in a body except the content. The limit is
// needed because an error, for example, can quote a long response from a platform.
const maxText = 2000

// render returns an event's body, which is at most publishing.MaxWebhookBody bytes long. If the
// body is too long, render truncates the content. If that is not enough, it also omits the
// approval.
func render(s webhookstore.WebhookSource) (string, error) {
	p := post{
		ID: s.Post.String(), Event: string(s.Event), OccurredAt: formatTime(s.At), Group: s.Group.String(),
		State: s.State, Content: s.Content, ContentType: publishing.Content{HTML: s.HTML}.Type(),
		ReleaseID: cutText(s.ReleaseID), ReleaseURL: cutText(s.ReleaseURL),
		Error: cutText(s.Error), ErrorCode: s.ErrorCode, Approval: s.Data,
		Integration: integration{
			ID: s.Channel.String(), Name: s.ChannelName, ProviderIdentifier: s.Connector, Picture: s.Picture,
			Type: "social",
		},
	}
	if s.PublishDate != nil {
		p.PublishDate = formatTime(*s.PublishDate)
	}
	if s.CustomerName != nil {
		p.Customer = &customer{ID: s.Customer.String(), Name: *s.CustomerName}
	}
	return fit(p)
}

// errTooLarge is returned for a body that is too large even without its content and approval.
var errTooLarge = errors.New("the body is too large even without its content")

// fit encodes a body. If the body is too large, fit shortens it as described for render. If it is
// still too large, fit returns errTooLarge.
func fit(p post) (string, error) {
	body, err := encode([]post{p})
	if err != nil || len(body) <= publishing.MaxWebhookBody {
		return body, err
	}
	content := p.Content
	p.Content, p.Truncated = "", true
	rest, err := encode([]post{p})
	if err != nil {
		return "", err
	}
	if len(rest) > publishing.MaxWebhookBody && p.Approval == nil {
		return "", errTooLarge
	}
	if len(rest) > publishing.MaxWebhookBody {
		p.Approval = nil
		return fit(p)
	}
	p.Content = cutEncoded(content, publishing.MaxWebhookBody-len(rest))
	return encode([]post{p})
}

// cutEncoded returns the longest prefix of text whose length in JSON, in bytes, does not exceed
// most.
func cutEncoded(text string, most int) string {
	used := 0
	for i, r := range text {
		size := utf8.RuneLen(r)
		switch {
		case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
			size = 2
		case r < ' ' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError:
			size = 6
		}
		if used += size; used > most {
			return text[:i]
		}
	}
	return text
}

func encode(v any) (string, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func cutText(s *string) *string {
	if s == nil {
		return nil
	}
	return new(text.CutBytes(*s, maxText))
}

func formatTime(t time.Time) string { return t.UTC().Format(publishing.WireTime) }

// TestBody returns the body of a test delivery, which describes a post that does not exist.
func TestBody(webhook publishing.WebhookID, now time.Time) (string, error) {
	text := "This is a test of your webhook."
	return fit(post{
		ID: webhook.String(), Event: string(publishing.WebhookTest), OccurredAt: formatTime(now),
		Group: webhook.String(), State: string(publishing.StatePublished), Content: text,
		ContentType: publishing.ContentText, PublishDate: formatTime(now),
		Integration: integration{
			ID: webhook.String(), Name: "Test channel", ProviderIdentifier: "test", Type: "social",
		},
	})
}
