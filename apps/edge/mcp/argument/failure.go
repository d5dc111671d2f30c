package argument

import (
	"strconv"

	"crier/platform/text"
)

// The codes of failures in arguments. For a failed use case, the code is the kind of its fault.
const (
	CodeUnknown = "unknown_argument"
	CodeMissing = "missing_argument"
	CodeInvalid = "invalid_argument"
)

// Failure is what a tool returns instead of a result. It lets a program correct the call: Field is
// the argument to change, Allowed lists the values it may have, and Next is a call that helps. For
// an unknown argument, Allowed lists the names of all arguments.
type Failure struct {
	// Message contains only the service's own sentences. It never contains stored texts, because a
	// model could mistake what people wrote for the service's words.
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

// maxName is the maximum length, in bytes, of a name from a client in a message.
const maxName = 100

// CutName shortens a name that a client sent.
func CutName(name string) string { return text.CutBytes(name, maxName) }

// Quote returns a name that a client sent, in quotation marks.
func Quote(name string) string { return strconv.Quote(CutName(name)) }
