package connector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"crier/platform/outbound"
)

// Kind says what a failure means for the post and its channel.
type Kind string

const (
	// KindReauth means that the credential has expired or was revoked. The engine refreshes it
	// once; after that, a user must reconnect the channel.
	KindReauth Kind = "reauth"
	// KindDisconnect means that the account is deleted or suspended.
	KindDisconnect Kind = "disconnect"
	// KindContent means that the platform refuses this post permanently.
	KindContent Kind = "content"
	// KindTransient means that nothing was published. The engine retries after Error.After.
	KindTransient Kind = "transient"
	// KindUnknown means that the platform may have published the post.
	KindUnknown Kind = "unknown"
	// KindOperator means that the configuration of this instance prevents the call. Only the
	// operator can fix it.
	KindOperator Kind = "operator"
)

func (k Kind) valid() bool {
	switch k {
	case KindReauth, KindDisconnect, KindContent, KindTransient, KindUnknown, KindOperator:
		return true
	}
	return false
}

// Author says who wrote the response that an Error is made from.
type Author string

const (
	// ByPlatform means that the body is in the platform's own error format.
	ByPlatform Author = "platform"
	// ByOther means that it is not: a proxy, a load balancer or another program responded instead.
	ByOther Author = "other"
)

// Error is the failure of a platform call. The registry limits the length of its texts. It replaces
// an invalid Kind, and KindUnknown from any call other than Commit.
type Error struct {
	Kind Kind
	// After is how long the platform asked to wait, for KindTransient; 0 leaves it to the engine's
	// back-off.
	After time.Duration
	// Status is the HTTP status; 0 if there was no response.
	Status int
	// Author says who wrote the response; "" if there was none.
	Author Author
	// Code is the platform's name for the error. Example: RateLimitExceeded
	Code string
	// Public is a sentence for users.
	Public string
	// Raw is for the log: short, and without secrets.
	Raw string
	// Err is the cause, for the log. It may be nil.
	Err error
}

// Error returns a text for logs, which includes Raw and Err. Users may see only Public.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %d %s: %s %s: %v", e.Kind, e.Status, e.Code, e.Public, e.Raw, e.Err)
}

// Unwrap returns Err, which may be nil. Callers look for outbound.ErrBlocked in it.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err. If err is not an *Error, it returns KindUnknown for an error from
// a Commit, as committing says, and KindTransient for any other.
func KindOf(err error, committing bool) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	if committing {
		return KindUnknown
	}
	return KindTransient
}

// FromSend classifies the error of an HTTP call that got no response. In a commit it is
// KindUnknown, unless it is certain that no byte was written.
//
// An address that the guard blocks is KindOperator: the channel was connected through it once, so
// either its DNS entry or OUTBOUND_ALLOW has changed, and the post is not the cause. Public is the
// same as for a host that does not exist, so that users cannot probe the names of the private
// network. Only a blocked port is named.
func FromSend(err error, committing bool) *Error {
	var sent *outbound.SendError
	switch {
	case committing && (!errors.As(err, &sent) && !errors.Is(err, outbound.ErrBlocked) || sent != nil && sent.Written):
		const public = "The platform did not answer, so it may or may not have published this."
		return &Error{Kind: KindUnknown, Public: public, Err: err}
	case errors.Is(err, outbound.ErrPort):
		const public = "The platform's address uses a port other than 80 and 443, which are the only ones that " +
			"can be reached."
		return &Error{Kind: KindOperator, Public: public, Err: err}
	case errors.Is(err, outbound.ErrBlocked):
		return &Error{Kind: KindOperator, Public: "The platform could not be reached.", Err: err}
	case errors.Is(err, context.Canceled):
		return &Error{Kind: KindTransient, Public: "Crier was stopped while publishing.", Err: err}
	}
	return &Error{Kind: KindTransient, Public: "The platform could not be reached.", Err: err}
}

// FromStatus classifies a response other than a success by its status and author alone. A connector
// that knows the error codes of its platform refines the result.
//
// What a response to a commit proves:
//
//   - 429, and every other 4xx in the platform's own error format, is a decision of the platform:
//     it has not published.
//   - A 3xx, or a 4xx in another format, does not come from the platform. It proves that nothing
//     happened only if the status, by definition, means that the request was not acted on: the
//     resource is elsewhere (301, 307, 308), it does not exist here (404, 405, 410), or the request
//     was refused unprocessed (407, 411, 415, 417, 421, 425, 426). The platform's server is then
//     unreachable, for instance because it is restarting behind a proxy: transient. A request that
//     is too large (413, 414, 431) was not acted on either, and never will be: final.
//   - Other statuses prove nothing. 302 and 303 are also sent after the work is done, a filter may
//     replace the response of a server that has acted with a 403, and 408 and 5xx may be sent in
//     the middle of the work: unknown.
//
// Outside a commit nothing irreversible can have happened, so unknown becomes transient.
func FromStatus(resp *http.Response, author Author, committing bool) *Error {
	e := &Error{Status: resp.StatusCode, Author: author}
	if resp.StatusCode < 400 {
		e.Author = ByOther // no platform reports errors with such a status
	}
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		e.Kind, e.After, e.Public = KindTransient, RetryAfter(resp.Header), "The platform asked Crier to slow down."
	case resp.StatusCode == http.StatusUnauthorized:
		e.Kind, e.Public = KindReauth, "The platform no longer accepts this channel's credentials; "+
			"reconnect the channel."
	case resp.StatusCode == http.StatusRequestTimeout && committing:
		e.Kind, e.Public = KindUnknown, "The platform timed out, so it may or may not have published this."
	case resp.StatusCode == http.StatusRequestTimeout:
		e.Kind, e.Public = KindTransient, "The platform timed out."
	case resp.StatusCode >= 500 && committing:
		e.Kind = KindUnknown
		e.Public = "The platform failed while publishing, so it may or may not have published this."
	case resp.StatusCode >= 500:
		e.Kind, e.Public = KindTransient, "The platform had an internal error."
	case e.Author == ByPlatform:
		e.Kind, e.Public = KindContent, "The platform refused this post."
	default:
		e.Kind, e.Public = fromOther(resp.StatusCode, committing)
	}
	return e
}

// fromOther classifies a status below 500 that does not come from the platform; see FromStatus.
func fromOther(status int, committing bool) (Kind, string) {
	switch status {
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		return KindContent, "This post is too large for the platform's server."
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
		http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone,
		http.StatusProxyAuthRequired, http.StatusLengthRequired, http.StatusUnsupportedMediaType,
		http.StatusExpectationFailed, http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusUpgradeRequired:
		return KindTransient, "Another server is answering at the platform's address at the moment."
	}
	if committing {
		return KindUnknown, "Another server answered for the platform, so this may or may not have been published."
	}
	return KindTransient, "Another server is answering at the platform's address at the moment."
}

// WrongAddress returns true if err is a response that no server of the platform would send. If a
// user typed the address, it is then probably wrong.
func WrongAddress(err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.Author != ByOther || e.Status >= 500 {
		return false
	}
	return e.Status != http.StatusTooManyRequests && e.Status != http.StatusRequestTimeout && e.Kind != KindReauth
}

// maxAfter bounds the wait that a response may ask for. The engine gives up long before that.
const maxAfter = 30 * 24 * time.Hour

// RetryAfter returns the Retry-After header in its seconds form, at most 30 days; 0 if it is absent
// or invalid.
func RetryAfter(h http.Header) time.Duration {
	n, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, int64(maxAfter/time.Second))) * time.Second
}
