// Package ratelimit is the arithmetic of a request limit: a fixed window that opens with its first counted request.
package ratelimit

import "time"

// Span is how long a window lasts.
const Span = time.Minute

// Window counts the admitted requests of one organization. The zero Window is closed.
type Window struct {
	start time.Time
	used  int
}

// Verdict is the answer to one request.
type Verdict struct {
	Allowed    bool
	Remaining  int
	Reset      time.Time
	RetryAfter time.Duration // whole seconds, at least one, when refused
}

// Take counts one request against limit. A refused request does not count.
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

// Expired tells whether the window counts for nothing any more. A clock that went back opens a new one.
func (w *Window) Expired(now time.Time) bool {
	return w.start.IsZero() || !now.Before(w.start.Add(Span)) || now.Before(w.start)
}

func ceilSecond(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}
