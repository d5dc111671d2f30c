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

// The kinds of failure.
const (
	KindReauth     Kind = "reauth"     // the access has expired or was revoked; one refresh, then the person must reconnect
	KindDisconnect Kind = "disconnect" // the account is gone or suspended
	KindContent    Kind = "content"    // the platform refuses this post for good
	KindTransient  Kind = "transient"  // surely nothing happened; try again after After
	KindUnknown    Kind = "unknown"    // the platform may have acted
	KindOperator   Kind = "operator"   // our own set-up is in the way: only who runs this instance can mend it
)

func (k Kind) valid() bool {
	switch k {
	case KindReauth, KindDisconnect, KindContent, KindTransient, KindUnknown, KindOperator:
		return true
	}
	return false
}

// Author says who wrote the answer that an Error is made of.
type Author string

// The authors of an answer.
const (
	ByPlatform Author = "platform" // the body is in the platform's own error format
	ByOther    Author = "other"    // it is not: a proxy, a load balancer or another program answered in its place
)

// Error is a failure of a platform call. Public is safe for people; Raw is for the log, short and without secrets.
type Error struct {
	Kind   Kind
	After  time.Duration // KindTransient: what the platform asked for, 0 = our own back-off
	Status int
	Author Author // of the answer, "" when none came
	Code   string
	Public string
	Raw    string
	Err    error
}

// Error is for logs.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %d %s: %s %s: %v", e.Kind, e.Status, e.Code, e.Public, e.Raw, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf reads the kind of err. An error that is none of ours is transient before a commit and unknown in one; the caller says which.
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

// FromSend classifies an error of an HTTP call that brought no answer. In a commit, only what provably wrote nothing is transient.
// An address that the guard refuses is the operator's: a connected channel reached it once, so what changed is where its name leads or what
// OUTBOUND_ALLOW opens; the post is not to blame. In a form it is one more refusal of what was typed. People read the same words as of a host
// that is not there, so that nobody learns which names of the private network exist; the kind and Err are for the log.
func FromSend(err error, committing bool) *Error {
	var sent *outbound.SendError
	switch {
	case committing && (!errors.As(err, &sent) && !errors.Is(err, outbound.ErrBlocked) || sent != nil && sent.Written):
		return &Error{Kind: KindUnknown, Public: "The platform did not answer, so it may or may not have published this.", Err: err}
	case errors.Is(err, outbound.ErrBlocked):
		return &Error{Kind: KindOperator, Public: "The platform could not be reached.", Err: err}
	case errors.Is(err, context.Canceled):
		return &Error{Kind: KindTransient, Public: "Crier was stopped while publishing.", Err: err}
	}
	return &Error{Kind: KindTransient, Public: "The platform could not be reached.", Err: err}
}

// FromStatus classifies an answer that is not a success by its status and its author alone; a connector that knows the
// platform's codes looks at those afterwards.
//
// What an answer to a commit proves:
//
//   - 429, and every other 4xx in the platform's own error format, is a decision of the platform: it has not published.
//   - A 3xx, or a 4xx in another format, is not the platform's word. It proves that nothing happened only where the
//     status means, by its definition, that the request was not acted on: it belongs elsewhere (301, 307, 308), there
//     is nothing here that could act (404, 405, 410), or the request was turned down unprocessed (407, 411, 415, 417,
//     421, 425, 426). That is a server which is not in place, such as a proxy whose server restarts: transient. A
//     request that is too large for whoever answers (413, 414, 431) was not acted on either, and never will be: final.
//   - The others prove nothing. 302 and 303 are also sent after the work is done, a filter may put 403 over the answer
//     of a server that has acted, 408 and 5xx may come from the middle of the work: unknown.
//
// Outside a commit nothing irreversible can have happened, so that whatever is unknown there is transient.
func FromStatus(resp *http.Response, author Author, committing bool) *Error {
	e := &Error{Status: resp.StatusCode, Author: author}
	if resp.StatusCode < 400 {
		e.Author = ByOther // no platform speaks of errors under such a status
	}
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		e.Kind, e.After, e.Public = KindTransient, RetryAfter(resp.Header), "The platform asks us to slow down."
	case resp.StatusCode == http.StatusUnauthorized:
		e.Kind, e.Public = KindReauth, "The platform no longer accepts our access; reconnect the channel."
	case resp.StatusCode == http.StatusRequestTimeout && committing:
		e.Kind, e.Public = KindUnknown, "The platform gave up waiting, so it may or may not have published this."
	case resp.StatusCode == http.StatusRequestTimeout:
		e.Kind, e.Public = KindTransient, "The platform gave up waiting."
	case resp.StatusCode >= 500 && committing:
		e.Kind, e.Public = KindUnknown, "The platform failed while publishing, so it may or may not have published this."
	case resp.StatusCode >= 500:
		e.Kind, e.Public = KindTransient, "The platform has a problem of its own."
	case e.Author == ByPlatform:
		e.Kind, e.Public = KindContent, "The platform refused this post."
	default:
		e.Kind, e.Public = foreign(resp.StatusCode, committing)
	}
	return e
}

// foreign classifies a status below 500 that is not the platform's word; FromStatus has the rule.
func foreign(status int, committing bool) (Kind, string) {
	switch status {
	case http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		return KindContent, "This post is too large for the platform's server."
	case http.StatusMovedPermanently, http.StatusTemporaryRedirect, http.StatusPermanentRedirect,
		http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone,
		http.StatusProxyAuthRequired, http.StatusLengthRequired, http.StatusUnsupportedMediaType,
		http.StatusExpectationFailed, http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusUpgradeRequired:
		return KindTransient, "Another server answers at the platform's address at the moment."
	}
	if committing {
		return KindUnknown, "Another server answered for the platform, so this may or may not have been published."
	}
	return KindTransient, "Another server answers at the platform's address at the moment."
}

// WrongAddress reports whether err is an answer that no such platform gives: where a person has typed the address, it
// is probably wrong.
func WrongAddress(err error) bool {
	var e *Error
	if !errors.As(err, &e) || e.Author != ByOther || e.Status >= 500 {
		return false
	}
	return e.Status != http.StatusTooManyRequests && e.Status != http.StatusRequestTimeout && e.Kind != KindReauth
}

// maxAfter bounds the wait that an answer may ask for; the engine gives up long before.
const maxAfter = 30 * 24 * time.Hour

// RetryAfter reads the header in its seconds form, up to 30 days; 0 when absent.
func RetryAfter(h http.Header) time.Duration {
	n, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, int64(maxAfter/time.Second))) * time.Second
}
