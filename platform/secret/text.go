package secret

import (
	"fmt"
	"io"
	"log/slog"
)

const hidden = "[redacted]"

// Text is a secret in memory. fmt, slog, JSON and text encoders write a placeholder for it; only Reveal returns it.
// Use it in exported fields and never as a map key: fmt and JSON print unexported fields and map keys without calling
// their methods.
type Text string

// Reveal returns the secret as a plain string, which fmt, slog and JSON write as it is.
func (t Text) Reveal() string { return string(t) }

// String returns a placeholder, or "" for an empty secret, so that logs show which secrets are set.
func (t Text) String() string {
	if t == "" {
		return ""
	}
	return hidden
}

// Format writes String for every verb of fmt.
func (t Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue returns String, so that every slog.Handler writes the placeholder.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalJSON returns String as a JSON string. The error is nil.
func (t Text) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// MarshalText returns String. The error is nil.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
