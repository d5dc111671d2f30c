// Package fault defines the error type used throughout the service. An error has a kind, which
// apps/edge/problem maps to an HTTP status; a message that is safe to show to clients; and a
// private cause for the log.
package fault

import (
	"errors"
	"strings"
	"time"
)

// Kind classifies a failure. It alone determines the HTTP status of the response; see
// apps/edge/problem.
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
	Upstream        Kind = "upstream"        // 502: a server we depend on failed or did not respond
	Unavailable     Kind = "unavailable"     // 503
	Loop            Kind = "loop"            // 508
)

// Field describes a fault in one field of the input.
type Field struct {
	// Name is the field's path. Example: entries.0.parts.1.content
	Name string
	// Message is a sentence that does not repeat the path.
	Message string
}

// Item describes a fault in an object that the input refers to, such as a post's channel.
type Item struct {
	// ID is the object's id as the client sent it.
	ID string
	// Kind is the type of the object. For a channel, it is the connector, such as "bluesky". It is
	// empty if the object is unknown.
	Kind string
	// Name is the object's name. It is empty if the object is unknown.
	Name    string
	Message string
}

// Remedy is an action that the client must take before the request can succeed. It lets clients
// react without parsing the message.
type Remedy string

// RemedyEnroll means that the user must enable a second factor. It is set only for Forbidden.
const RemedyEnroll Remedy = "enroll"

// RemedyCode means that the request must be repeated with a second-factor code. It is set only for
// Invalid.
const RemedyCode Remedy = "code"

// RemedyScope means that the access token lacks a scope. It is set only for Forbidden.
const RemedyScope Remedy = "scope"

// Limit describes the plan limit that caused a Quota fault.
type Limit struct {
	// Name says what is limited, such as "channels".
	Name string
	// Current is the number of objects that exist now. It does not include objects that the request
	// failed to add.
	Current int
	Allowed int
}

// Error is a failure with a message for the client. Message, Fields and Items are safe to show. Err
// appears only in the log and is never sent to a client.
//
// Code that collects faults puts at most MaxListed into each of Fields and Items, and counts the
// others in More.
type Error struct {
	Kind Kind
	// Op names the operation that failed, in the form "package.Function". It appears only in the
	// log.
	Op      string
	Message string
	Fields  []Field
	Items   []Item
	// More is the number of faults omitted from Fields and Items.
	More int
	// RetryAfter is set only for RateLimited, Unavailable and Conflict; 0 means unknown.
	RetryAfter time.Duration
	// Remedy is what the client must do, beyond correcting the request, before the request can
	// succeed.
	Remedy Remedy
	// Limit is set only for Quota; nil means that the numbers are unknown.
	Limit *Limit
	Err   error
}

// New returns a fault without a cause. If message is empty, the client sees a generic sentence for
// the kind.
func New(kind Kind, op, message string) *Error {
	return &Error{Kind: kind, Op: op, Message: message}
}

// Wrap returns a fault with a message that is safe to show to the client and a private cause.
func Wrap(kind Kind, op, message string, cause error) *Error {
	return &Error{Kind: kind, Op: op, Message: message, Err: cause}
}

// Error returns the text for logs, which includes the private cause.
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

// Is reports whether KindOf(err) is kind. An error without a fault counts as Internal. For a nil
// error, Is returns false.
func Is(err error, kind Kind) bool { return err != nil && KindOf(err) == kind }
