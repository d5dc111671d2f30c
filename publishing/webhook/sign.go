package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"crier/publishing"
)

// The headers of a delivery. Headers that begin with "webhook-" are defined by Standard Webhooks.
const (
	HeaderEvent     = "X-Service-Event"
	HeaderDelivery  = "X-Service-Delivery"
	HeaderTimestamp = "X-Service-Timestamp"
	HeaderAttempt   = "X-Webhook-Attempt"
	HeaderSignature = "X-Service-Signature"

	StandardID        = "webhook-id"
	StandardTimestamp = "webhook-timestamp"
	StandardSignature = "webhook-signature"
)

// call is one attempt to send a delivery.
type call struct {
	id      publishing.DeliveryID
	event   publishing.WebhookEvent
	attempt int
	at      time.Time
	body    string
	// keys are the signing keys: first the current key, and then each earlier key that has not
	// expired. If there are no keys, nothing is signed.
	keys [][]byte
}

// headers returns all headers of the attempt. HeaderSignature has one signature, made with the
// current key. StandardSignature has one signature per key.
func (c call) headers() http.Header {
	at := strconv.FormatInt(c.at.Unix(), 10)
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "Crier-Webhooks/1")
	h.Set(HeaderEvent, string(c.event))
	h.Set(HeaderDelivery, c.id.String())
	h.Set(HeaderTimestamp, at)
	h.Set(HeaderAttempt, strconv.Itoa(c.attempt))
	h.Set(StandardID, c.id.String())
	h.Set(StandardTimestamp, at)
	var standard []string
	for i, key := range c.keys {
		if i == 0 {
			h.Set(HeaderSignature, "sha256="+hex.EncodeToString(sign(key, at+"."+c.body)))
		}
		signature := sign(key, c.id.String()+"."+at+"."+c.body)
		standard = append(standard, "v1,"+base64.StdEncoding.EncodeToString(signature))
	}
	if len(standard) > 0 {
		h.Set(StandardSignature, strings.Join(standard, " "))
	}
	return h
}

func sign(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text)) // a hash returns no error
	return mac.Sum(nil)
}
