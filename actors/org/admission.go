// Package org contains the actor that limits an organization's requests and runs its publishing
// timer, and the Client that sends messages to the actors.
//
// Protoactor is used because an organization's request limit is shared across all processes. One
// actor counts the requests, and the library delivers messages to it from every process. Messages
// carry neither posts nor outcomes.
package org

import (
	"time"

	"crier/platform/ratelimit"
)

// Admission is the rate limiter's decision on one request.
type Admission struct {
	Allowed bool
	// Limit is the number of requests allowed in a window.
	Limit int
	// Remaining is the number of requests left in the window.
	Remaining int
	// Reset is the end of the window, in UTC.
	Reset time.Time
	// RetryAfter is how long to wait, in whole seconds and at least one second. It is zero if the
	// request is allowed.
	RetryAfter time.Duration
}

func response(limit int, v ratelimit.Verdict) *AdmitResponse {
	return &AdmitResponse{
		Allowed: v.Allowed, Limit: int64(limit), Remaining: int64(v.Remaining),
		ResetUnixUs: v.Reset.UnixMicro(), RetryAfterUs: v.RetryAfter.Microseconds(),
	}
}

func admission(r *AdmitResponse) Admission {
	return Admission{
		Allowed: r.GetAllowed(), Limit: int(r.GetLimit()), Remaining: int(r.GetRemaining()),
		Reset:      time.UnixMicro(r.GetResetUnixUs()).UTC(),
		RetryAfter: time.Duration(r.GetRetryAfterUs()) * time.Microsecond,
	}
}
