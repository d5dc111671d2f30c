package argument

import (
	"strconv"

	"crier/platform/text"
)

// These codes describe invalid arguments. If a use case fails, the code is the fault's kind
// instead.
const (
	CodeUnknown = "unknown_argument"
	CodeMissing = "missing_argument"
	CodeInvalid = "invalid_argument"
)

// Failure is what a tool returns instead of a result. It tells a program how to correct the call.
// Field is the argument to change, Allowed lists its valid values, and Next is a call that helps.
// If the argument is unknown, Allowed lists the names of all arguments instead.
type Failure struct {
	// Message contains only the service's own sentences. It never contains stored text, because a
	// model could mistake a user's text for the service's own.
	Message    string    `json:"errors"`
	Code       string    `json:"code"`
	Field      string    `json:"field,omitempty"`
	Allowed    []any     `json:"allowed,omitempty"`
	Next       *NextCall `json:"next,omitempty"`
	RetryAfter int       `json:"retryAfter,omitempty"` // seconds
}

// NextCall is a call of a tool.
type NextCall struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// Error implements error.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// maxName is the maximum length, in bytes, of a client's name in a message.
const maxName = 100

// CutName shortens a name that a client sent.
func CutName(name string) string { return text.CutBytes(name, maxName) }

// Quote returns a name that a client sent, in quotation marks.
func Quote(name string) string { return strconv.Quote(CutName(name)) }
