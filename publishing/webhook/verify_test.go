package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"crier/publishing/webhook"
)

// verify checks both signatures of the calls like a receiver does. tests/webhooks does the same
// with a library.
func verify(t *testing.T, secret string, calls []received) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(calls) == 0 {
		t.Fatalf("got %d calls and the secret %q", len(calls), secret)
	}
	for _, c := range calls {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(c.Header.Get(webhook.HeaderTimestamp) + "." + c.Body))
		if got, want := c.Header.Get(webhook.HeaderSignature), "sha256="+hex.EncodeToString(mac.Sum(nil)); got != want {
			t.Errorf("got the signature %q, want %q", got, want)
		}
	}
	verifyStandard(t, secret, calls)
}

// verifyStandard checks that each call has a Standard Webhooks signature made with the secret.
func verifyStandard(t *testing.T, secret string, calls []received) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(c.Header.Get(webhook.StandardID) + "." + c.Header.Get(webhook.StandardTimestamp) + "." + c.Body))
		if got, want := c.Header.Get(webhook.StandardSignature), "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)); !strings.Contains(" "+got+" ", " "+want+" ") {
			t.Errorf("got the signatures %q, want one of them to be %q", got, want)
		}
	}
}
