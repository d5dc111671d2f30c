package argument

import (
	"strconv"

	"crier/platform/text"
)

// The codes of failures in arguments. Failures of use cases have the kind of their fault as code.
const (
	CodeUnknown = "unknown_argument"
	CodeMissing = "missing_argument"
	CodeInvalid = "invalid_argument"
)

// Failure is what a tool answers instead of a result. A program can repair the call: Field is the
// argument to change, Allowed has the values that it may have, and Next is a call that helps. For
// an unknown argument, Allowed has the names of all arguments.
type Failure struct {
	// Message has sentences of ours only. Stored texts never stand in it, because a model could
	// take what people wrote for words of the service.
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

// maxName is the maximum length of a name that a client sent, in a message, in bytes.
const maxName = 100

// CutName shortens a name that a client sent.
func CutName(name string) string { return text.CutBytes(name, maxName) }

// Quote returns a name that a client sent, in quotation marks.
func Quote(name string) string { return strconv.Quote(CutName(name)) }
