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

// Kind classifies a failure by its consequences for the post and its channel.
type Kind string

const (
	// KindReauth means that the credential has expired or was revoked. The engine tries once to
	// refresh the credential. If that does not help, a user must reconnect the channel.
	KindReauth Kind = "reauth"
	// KindDisconnect means that the account is deleted or suspended.
	KindDisconnect Kind = "disconnect"
	// KindContent means that the platform permanently rejects this post.
	KindContent Kind = "content"
	// KindTransient means that nothing was published. The engine retries after Error.After.
	KindTransient Kind = "transient"
	// KindUnknown means that the platform may have published the post.
	KindUnknown Kind = "unknown"
	// KindOperator means that this instance's configuration prevents the call. Only the operator
	// can fix the problem.
	KindOperator Kind = "operator"
)

func (k Kind) valid() bool {
	switch k {
	case KindReauth, KindDisconnect, KindContent, KindTransient, KindUnknown, KindOperator:
		return true
	}
	return false
}

// Author identifies who wrote the response to which an Error refers.
type Author string

const (
	// ByPlatform means that the body is in the platform's own error format.
	ByPlatform Author = "platform"
	// ByOther means that the body is in another format, because a proxy, a load balancer or another
	// program responded instead of the platform.
	ByOther Author = "other"
)

// Error describes a failed platform call. The registry limits the length of its text fields. It
// also replaces an invalid Kind, and a KindUnknown that does not come from Commit.
type Error struct {
	Kind Kind
	// After is the wait that the platform requested before a retry. It is used only with
	// KindTransient. If it is 0, the engine chooses the delay.
	After time.Duration
	// Status is the HTTP status; 0 if there was no response.
	Status int
	// Author identifies who wrote the response; "" if there was no response.
	Author Author
	// Code is the platform's name for the error. Example: RateLimitExceeded
	Code string
	// Public is a sentence for users.
	Public string
	// Raw is a short text for the log, without secrets.
	Raw string
	// Err is the underlying cause, for the log. It may be nil.
	Err error
}

// Error returns text for logs, which includes Raw and Err. Only Public may be shown to users.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %d %s: %s %s: %v", e.Kind, e.Status, e.Code, e.Public, e.Raw, e.Err)
}

// Unwrap returns Err, which may be nil. Callers check the result for outbound.ErrBlocked.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of err. If err is not an *Error, KindOf returns KindUnknown if committing
// is true, and KindTransient otherwise.
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

// FromSend classifies the error from an HTTP call that received no response. During a commit, it
// returns KindUnknown unless it is certain that no byte was written.
//
// If the guard blocked the address, FromSend returns KindOperator. The post is not at fault: the
// channel was connected through the same address, so either a DNS entry or OUTBOUND_ALLOW has
// changed since. Public is the same as for a host that does not exist, to keep users from probing
// host names on the private network. Only a blocked port is mentioned.
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

// FromStatus classifies an unsuccessful response by its status and author alone. A connector that
// knows its platform's error codes refines the result.
//
// For a commit, the response is classified as follows:
//
//   - The platform did not publish if the status is 401 or 429. The same is true for any other 4xx
//     except 408, if the body is in the platform's own error format.
//   - A 3xx, or any other 4xx in another format, does not come from the platform. It proves that
//     nothing happened only if the status by definition means that the request was not acted on:
//     the resource is elsewhere (301, 307, 308) or missing (404, 405, 410), or the request was
//     rejected unprocessed (407, 411, 415, 417, 421, 425, 426). The failure is transient, because
//     the platform is only unreachable, for example while it restarts behind a proxy.
//   - A request that is too large (413, 414, 431) was not acted on either, but the failure is
//     permanent.
//   - For all other statuses, the outcome is unknown. A server may send a 302 or 303 after it has
//     done the work, and a 408 or 5xx in the middle of the work. Once the server has done the work,
//     a filter may still replace its response with a 403.
//
// Outside a commit, nothing irreversible can have happened, so FromStatus returns KindTransient
// where it would return KindUnknown during a commit.
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

// fromOther classifies a response with a status below 500 that does not come from the platform; see
// FromStatus.
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

// WrongAddress returns true if err describes a response that the platform's servers would not send.
// In that case, an address typed by a user is probably wrong.
func WrongAddress(err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.Author != ByOther || e.Status >= 500 {
		return false
	}
	return e.Status != http.StatusTooManyRequests && e.Status != http.StatusRequestTimeout && e.Kind != KindReauth
}

// maxAfter caps the wait that a response can request. The engine gives up long before then.
const maxAfter = 30 * 24 * time.Hour

// RetryAfter returns the delay given by a Retry-After header in seconds, capped at 30 days. It
// returns 0 if the header is absent, invalid or a date.
func RetryAfter(h http.Header) time.Duration {
	n, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, int64(maxAfter/time.Second))) * time.Second
}
