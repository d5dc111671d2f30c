// Package fault is the one error of the house: a kind that maps to a status once, words that are safe for people, and a private cause.
package fault

import (
	"errors"
	"strings"
	"time"
)

// Kind says what sort of failure it is. It decides the HTTP status (apps/edge/problem) and nothing else does.
type Kind string

// The kinds and the HTTP status that each one means.
const (
	Invalid         Kind = "invalid"         // 400
	Unauthenticated Kind = "unauthenticated" // 401
	Quota           Kind = "quota"           // 402
	Forbidden       Kind = "forbidden"       // 403
	NotFound        Kind = "not_found"       // 404: absent, or another organization's
	Conflict        Kind = "conflict"        // 409
	Gone            Kind = "gone"            // 410
	TooLarge        Kind = "too_large"       // 413
	RateLimited     Kind = "rate_limited"    // 429
	Internal        Kind = "internal"        // 500
	NotBuilt        Kind = "not_built"       // 501
	Unavailable     Kind = "unavailable"     // 503
)

// Field is one fault of one input member: Name is its path ("posts.0.value.1.content"), Message a sentence without it.
type Field struct {
	Name    string
	Message string
}

// Channel is one fault of one entry of a post, told per channel.
type Channel struct {
	Integration string // channel id as the client sent it
	Provider    string // connector id, empty when the channel is unknown
	Name        string // channel name, empty when the channel is unknown
	Message     string
}

// Error is a failure on its way to a person. Message, Fields and Channels are safe to show; Err never leaves the process.
// What gathers faults keeps at most MaxTold of each and counts the others.
type Error struct {
	Kind       Kind
	Op         string // package.Function, for the log
	Message    string
	Fields     []Field
	Channels   []Channel
	More       int           // faults that are in neither list
	RetryAfter time.Duration // only for RateLimited, Unavailable and Conflict; 0 = not told
	Err        error
}

// New makes a fault with words for people.
func New(kind Kind, op, message string) *Error {
	return &Error{Kind: kind, Op: op, Message: message}
}

// Wrap makes a fault of a cause that people must not see.
func Wrap(kind Kind, op, message string, cause error) *Error {
	return &Error{Kind: kind, Op: op, Message: message, Err: cause}
}

// Error is for logs: it holds the private cause.
func (e *Error) Error() string {
	parts := []string{}
	if e.Op != "" {
		parts = append(parts, e.Op)
	}
	parts = append(parts, string(e.Kind))
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	if e.Err != nil {
		parts = append(parts, e.Err.Error())
	}
	return strings.Join(parts, ": ")
}

// Unwrap gives the private cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err; any error that is not a fault is Internal, nil is "".
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	var f *Error
	if errors.As(err, &f) {
		return f.Kind
	}
	return Internal
}

// Is tells whether err is a fault of this kind.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
