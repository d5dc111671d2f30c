package github

import (
	"maps"
	"net/http"
	"strconv"
	"time"
)

// window is the rate limit window for a user or an address.
type window struct {
	used  int
	reset time.Time
}

const anonymousPerHour = 60

// count implements "Rate limits for the REST API": 5,000 requests an hour per user, across all
// apps, and 60 per address without a user. It sets the headers that the page describes. Above the
// limit, it returns the response and false. It is an assumption that a window starts with its first
// request.
func (p *Platform) count(header http.Header, r *http.Request, c caller, known bool) (apiAnswer, bool) {
	limit, whom := anonymousPerHour, remoteHost(r)
	if known {
		limit, whom = p.opts.RequestsPerHour, "user ID "+strconv.FormatInt(c.user.ID, 10)
	}
	win := p.advance(whom)
	header.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	header.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, limit-win.used)))
	header.Set("X-RateLimit-Used", strconv.Itoa(min(limit, win.used)))
	header.Set("X-RateLimit-Reset", strconv.FormatInt(win.reset.Unix(), 10))
	header.Set("X-RateLimit-Resource", "core")
	if win.used <= limit {
		return apiAnswer{}, true
	}
	return apiProblem(p.opts.LimitStatus, "API rate limit exceeded for "+whom+".", docsLimits), false
}

// advance counts a request in the window of key and returns the window.
func (p *Platform) advance(key string) window {
	now := p.opts.Clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.windows, func(_ string, w window) bool { return !now.Before(w.reset) })
	win, ok := p.windows[key]
	if !ok {
		win.reset = now.Truncate(time.Second).Add(time.Hour)
	}
	win.used++
	p.windows[key] = win
	return win
}
