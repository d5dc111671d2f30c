// Package fault defines the error type that all packages of the service use. An error has a kind,
// which apps/edge/problem maps to an HTTP status, a message that is safe to show, and a private
// cause for the log.
package fault

import (
	"errors"
	"strings"
	"time"
)

// Kind is the class of a failure. It alone determines the HTTP status of a response
// (apps/edge/problem).
type Kind string

// Each kind has one HTTP status, which apps/edge/problem assigns.
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
	Upstream        Kind = "upstream"        // 502: a server that we depend on failed or does not respond
	Unavailable     Kind = "unavailable"     // 503
	Loop            Kind = "loop"            // 508
)

// Field is a fault in one member of the input.
type Field struct {
	// Name is the path of the member, such as "entries.0.parts.1.content".
	Name string
	// Message is a sentence that does not repeat the path.
	Message string
}

// Item is a fault in one of several objects that the input names, such as the channels of a post.
type Item struct {
	// ID is the object's id as the client sent it.
	ID string
	// Kind is the kind of the object. For a channel it is the connector, such as "bluesky". It is
	// empty if the object is unknown.
	Kind string
	// Name is the object's name. It is empty if the object is unknown.
	Name    string
	Message string
}

// Remedy is something that a client must do before a request can succeed. Clients recognize it
// without parsing the message.
type Remedy string

// RemedyEnroll means that the person must enable a second factor. It is set only for Forbidden.
const RemedyEnroll Remedy = "enroll"

// RemedyCode means that the request must be repeated with a second-factor code. It is set only for
// Invalid.
const RemedyCode Remedy = "code"

// Limit describes the limit of a plan that a Quota fault is about.
type Limit struct {
	// Name says what is limited, such as "channels".
	Name string
	// Current is how many exist now, not counting the ones that were refused.
	Current int
	Allowed int
}

// Error is a failure with a text for the client. Message, Fields and Items are safe to show; Err is
// for the log and never leaves the process.
//
// Code that collects faults keeps at most MaxListed in each list and counts the rest in More.
type Error struct {
	Kind Kind
	// Op is the operation that failed, as "package.Function", for the log.
	Op      string
	Message string
	Fields  []Field
	Items   []Item
	// More is the number of faults that neither list contains.
	More int
	// RetryAfter is set only for RateLimited, Unavailable and Conflict; 0 means that no time is
	// known.
	RetryAfter time.Duration
	// Remedy is what the client must do before the request can succeed, beyond correcting it.
	Remedy Remedy
	// Limit is set only for Quota; nil means that the numbers are unknown.
	Limit *Limit
	Err   error
}

// New returns a fault without a cause. The client sees the message or, if it is empty, a general
// sentence for the kind.
func New(kind Kind, op, message string) *Error {
	return &Error{Kind: kind, Op: op, Message: message}
}

// Wrap returns a fault with a message that is safe to show and with a cause that is not.
func Wrap(kind Kind, op, message string, cause error) *Error {
	return &Error{Kind: kind, Op: op, Message: message, Err: cause}
}

// Error returns the text for logs. It contains the private cause.
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

// Unwrap returns the private cause, for errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first fault in err's tree. It returns Internal for an error
// without a fault and "" for nil.
func KindOf(err error) Kind {
	var f *Error
	if errors.As(err, &f) {
		return f.Kind
	}
	if err != nil {
		return Internal
	}
	return ""
}

// Is reports whether KindOf(err) is kind, so an error without a fault is Internal. It returns false
// for a nil error.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
