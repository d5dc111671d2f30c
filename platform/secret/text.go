package secret

import (
	"fmt"
	"io"
	"log/slog"
)

const hidden = "[redacted]"

// Text is a secret in memory. fmt, slog, JSON and text encoders write a placeholder for it; only
// Reveal returns the secret. Use it in exported fields and never as a map key: fmt and JSON print
// unexported fields and map keys without calling their methods.
type Text string

// Reveal returns the secret as a plain string, which fmt, slog and JSON do not hide.
func (t Text) Reveal() string { return string(t) }

// String returns a placeholder, or "" for an empty secret, so that logs show which secrets are set.
func (t Text) String() string {
	if t == "" {
		return ""
	}
	return hidden
}

// Format writes the placeholder for every verb of fmt.
func (t Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue returns the placeholder, so that every slog.Handler writes it.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalJSON returns the placeholder as a JSON string. The error is always nil.
func (t Text) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// MarshalText returns the placeholder. The error is always nil.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
