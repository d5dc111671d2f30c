// Package ratelimit counts requests against a limit in fixed windows. A window begins with its
// first request.
package ratelimit

import "time"

// Span is the length of every window, so limits are requests per minute.
const Span = time.Minute

// Window counts a key's allowed requests. The zero Window is expired. It is not safe for concurrent
// use.
type Window struct {
	start time.Time
	used  int
}

// Verdict is the decision on one request.
type Verdict struct {
	Allowed bool
	// Remaining is the number of requests left in the window. It is zero if the request is
	// rejected.
	Remaining int
	// Reset is the end of the window.
	Reset time.Time
	// RetryAfter is how long the client must wait before the next request, in whole seconds and at
	// least one second. It is zero if the request is allowed.
	RetryAfter time.Duration
}

// Take counts one request, made at time now, against limit. It begins a new window if the current
// one has expired. A rejected request does not count.
func (w *Window) Take(now time.Time, limit int) Verdict {
	if w.Expired(now) {
		w.start, w.used = now, 0
	}
	reset := w.start.Add(Span)
	if w.used >= limit {
		return Verdict{Reset: reset, RetryAfter: ceilSecond(reset.Sub(now))}
	}
	w.used++
	return Verdict{Allowed: true, Remaining: limit - w.used, Reset: reset}
}

// Expired reports whether a Take at time now would begin a new window. It also returns true if now
// is before the window's start, which happens if the clock was set back.
func (w *Window) Expired(now time.Time) bool {
	return w.start.IsZero() || !now.Before(w.start.Add(Span)) || now.Before(w.start)
}

// ceilSecond rounds d up to whole seconds. The result is at least one second.
func ceilSecond(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}
