// Package org is the actor of an organization, which owns its request limit and its publishing timer, and the Client that
// reaches it wherever it lives. It is a protoactor because the limit of an organization holds for all processes together:
// one place counts its requests, and the library carries them there. Posts and outcomes stay out of it.
package org

//go:generate sh -c "protoc --plugin=$(go tool -n -modfile=../../ops/tools/go.mod protoc-gen-go) --go_out=paths=source_relative:. org.proto"

import (
	"time"

	"crier/platform/ratelimit"
)

// Admission is the answer to one counted request.
type Admission struct {
	Allowed    bool
	Limit      int
	Remaining  int
	Reset      time.Time     // end of the window, UTC
	RetryAfter time.Duration // whole seconds, at least one, when not allowed
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
		Reset: time.UnixMicro(r.GetResetUnixUs()).UTC(), RetryAfter: time.Duration(r.GetRetryAfterUs()) * time.Microsecond,
	}
}
