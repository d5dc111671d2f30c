package secret

import (
	"fmt"
	"io"
	"log/slog"
)

const hidden = "[redacted]"

// Text is a secret in memory that shows itself to nobody but Reveal: not to fmt, slog, JSON or text encoders.
// Keep it in exported fields and never as a map key: fmt and JSON read those past every method.
type Text string

// Reveal gives the secret itself.
func (t Text) Reveal() string { return string(t) }

// String hides the secret; an empty one shows as empty, so that logs tell what is set.
func (t Text) String() string {
	if t == "" {
		return ""
	}
	return hidden
}

// Format hides the secret from every verb of fmt.
func (t Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, t.String()) }

// LogValue hides the secret from slog.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalJSON hides the secret from JSON.
func (t Text) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// MarshalText hides the secret from text encoders.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
