package publishing_test

import (
	"net/url"
	"strings"
	"testing"

	"crier/platform/fault"
	"crier/publishing"
)

func TestWebhookURL(t *testing.T) {
	t.Parallel()
	onLoopback := func(u *url.URL) bool { return u.Hostname() == "127.0.0.1" }
	for text, valid := range map[string]bool{
		"https://example.com/hook":                           true,
		"https://xn--bcher-kva.example/":                     true,
		"https://bücher.example/":                            true,
		"http://127.0.0.1:8080/hook":                         true,
		"http://example.com/hook":                            false,
		"ftp://example.com/hook":                             false,
		"/hook":                                              false,
		"https:///hook":                                      false,
		"https:example.com":                                  false,
		"https://ada:x@example.com/":                         false,
		"https://example.com/#part":                          false,
		"https://example.com/ hook":                          false,
		"https://ex%ff.com/hook":                             false, // the host is not valid UTF-8
		"https://ex%00.com/hook":                             false,
		"https://ex\xff.com/hook":                            false,
		"https://example.com/" + strings.Repeat("x", 10_000): false,
	} {
		err := publishing.WebhookURL(text, onLoopback)
		if valid && err != nil || !valid && !fault.Is(err, fault.Invalid) {
			t.Errorf("%.40q: got the error %v, want valid=%t", text, err, valid)
		}
	}
}
