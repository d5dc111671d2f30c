// Package org is the organization's actor, which owns its request limit and its publishing timer, and the Client that reaches it wherever it lives.
package org

import "time"

// Admission is the answer to one counted request.
type Admission struct {
	Allowed    bool
	Limit      int
	Remaining  int
	Reset      time.Time     // end of the window, UTC
	RetryAfter time.Duration // whole seconds, at least one, when not allowed
}
