package mail

import (
	"strings"
	"testing"

	"crier/platform/clock"
)

func TestValidate_AcceptsMailServers(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]server{
		"smtp://mail.example.com":                {host: "mail.example.com", port: "587", security: startTLS},
		"smtp://mail.example.com:2525/":          {host: "mail.example.com", port: "2525", security: startTLS},
		"smtps://mail.example.com":               {host: "mail.example.com", port: "465", security: implicitTLS},
		"smtps://u%40example.com:p%3Aw@[::1]:99": {host: "::1", port: "99", security: implicitTLS, user: "u@example.com", password: "p:w"},
		"smtp://localhost?tls=none":              {host: "localhost", port: "25", security: noTLS},
		"smtp://127.0.0.1:1025?tls=none":         {host: "127.0.0.1", port: "1025", security: noTLS},
	} {
		got, err := parseURL(raw)
		if err != nil || got != want {
			t.Errorf("%s: got %+v and %v, want %+v", raw, got, err, want)
		}
		for _, from := range []string{"crier@example.com", "Crier <crier@example.com>", `"Crier, Inc." <crier@example.com>`} {
			if err := (Config{URL: raw, From: from}).Validate(); err != nil {
				t.Errorf("%s from %s: got %v, want no error", raw, from, err)
			}
		}
	}
}

func TestValidate_RefusesURLsWithoutShowingThem(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"mail.example.com:25", "http://u:hunter2@h", "smtp://", "smtp://u:hunter2@", "smtp://u:hunter2@%zz",
		"smtp://u:hunter2@h:0", "smtp://u:hunter2@h:65536", "smtp://u:hunter2@h:x", "smtp://u:hunter2@h/path",
		"smtp://u:hunter2@h?tls=none", "smtp://u:hunter2@10.0.0.1?tls=none", "smtps://u:hunter2@localhost?tls=none",
		"smtp://u:hunter2@localhost?tls=maybe", "smtp://u:hunter2@h#f", "smtp://hunter2@h", "smtp://:hunter2@h",
		"smtp://u:hunter2%0d%0a@h",
	} {
		cfg := Config{URL: raw, From: "crier@example.com"}
		err := cfg.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "SMTP_URL: must ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want a fault of SMTP_URL without the password", raw, err)
		}
		if _, err := NewSMTP(cfg, clock.System{}, nil); err == nil {
			t.Errorf("%q: NewSMTP got no error", raw)
		}
	}
}

func TestValidate_RefusesSenders(t *testing.T) {
	t.Parallel()
	for _, from := range []string{
		"", "crier", "a@example.com, b@example.com", "crier@example.com\r\nBcc: x@example.com", "<crier@example.com", "a b@example.com",
	} {
		err := (Config{URL: "smtp://mail.example.com", From: from}).Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "MAIL_FROM: ") {
			t.Errorf("%q: got %v, want a fault of MAIL_FROM", from, err)
		}
	}
}

func TestEnabled_NeedsURL(t *testing.T) {
	t.Parallel()
	none := Config{}
	if err := none.Validate(); err != nil || none.Enabled() {
		t.Errorf("without variables: got %v and enabled %t, want neither", err, none.Enabled())
	}
	if _, err := NewSMTP(none, clock.System{}, nil); err == nil {
		t.Error("NewSMTP without a URL: got no error")
	}
	if !(Config{URL: "smtp://h"}).Enabled() {
		t.Error("with a URL: got disabled")
	}
}
