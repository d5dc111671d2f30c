package analytics

import (
	"time"

	"golang.org/x/time/rate"
)

// SetWait changes how long a request waits for a platform when there are figures that it can return.
func (s *Analytics) SetWait(d time.Duration) { s.wait = d }

// SetPace lets requests begin only so many readings at a server, and returns its limiter.
func (s *Analytics) SetPace(server string, readings int) *rate.Limiter {
	pace := rate.NewLimiter(rate.Every(24*time.Hour), readings)
	s.requests.servers.join(server).pace = pace
	return pace
}

// IsLeftAlone returns whether a sweep leaves a server alone after so many calls in a row that succeed in a time.
func IsLeftAlone(calls int, took time.Duration) bool {
	var v serverQueue
	for range calls {
		v.answered(nil, took)
	}
	return v.isFailing()
}
