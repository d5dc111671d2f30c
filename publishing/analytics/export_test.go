package analytics

import (
	"time"

	"golang.org/x/time/rate"
)

// SetWait sets how long a request waits for a platform if there are figures that it can return
// instead.
func (s *Analytics) SetWait(d time.Duration) { s.wait = d }

// SetPace limits how many calls requests may make to a server, and returns the limiter.
func (s *Analytics) SetPace(server string, readings int) *rate.Limiter {
	pace := rate.NewLimiter(rate.Every(24*time.Hour), readings)
	s.requests.servers.join(server).pace = pace
	return pace
}

// IsLeftAlone reports whether a sweep leaves a server alone after this many successful calls in a
// row that each took the given time.
func IsLeftAlone(calls int, took time.Duration) bool {
	var v serverQueue
	for range calls {
		v.answered(nil, took)
	}
	return v.isFailing()
}
