package sandbox

import (
	"net/http"
	"time"
)

// perform carries out an API request and applies the scripted fault for it, if there is one.
func (p *Platform) perform(w http.ResponseWriter, c *call, e endpoint) {
	f := p.script.due(c, p.accountName(c))
	if f == nil {
		p.run(c, e).send(w)
		return
	}
	a, act := p.applyBefore(c, f)
	if act {
		a = p.applyAfter(c, f, p.run(c, e))
	}
	if a.status == 0 {
		p.drop(w)
		return
	}
	a.send(w)
}

// applyBefore applies the part of a fault that comes before the request is carried out. If act is
// false, the request must not be carried out, and a is the response. If a has no status, there is
// no response and the connection is closed.
func (p *Platform) applyBefore(c *call, f *scripted) (a answer, act bool) {
	switch f.Action {
	case actHold:
		return answer{}, p.script.hold(c, f, p.stop)
	case actSlow:
		return answer{}, p.slow(f)
	case actErrorBefore:
		return p.failure(refuse(http.StatusInternalServerError, "internal", "Something went wrong.")), false
	case actRateLimit:
		a = p.failure(refuse(http.StatusTooManyRequests, "rate_limited", "Too many requests."))
		a.retryAfter = retryAfter(f)
		return a, false
	case actExpireToken:
		return p.failure(p.expire(c)), false
	case actProcessing:
		c.polls, c.fails = f.Polls, f.Then == "failed"
	}
	return answer{}, true
}

// slow waits for a fault's delay and reports whether to carry out the request. As on a real
// platform, a request is carried out even if its client has disconnected. It is skipped only if the
// Platform is closed during the delay.
func (p *Platform) slow(f *scripted) bool {
	wait := time.NewTimer(time.Duration(f.Millis) * time.Millisecond)
	defer wait.Stop()
	select {
	case <-wait.C:
		return true
	case <-p.stop:
		return false
	}
}

// applyAfter applies the part of a fault that comes after the request has been carried out and its
// effect is on disk. It returns the response.
func (p *Platform) applyAfter(c *call, f *scripted, a answer) answer {
	switch f.Action {
	case actDrop:
		return answer{}
	case actErrorAfter:
		return p.failure(refuse(http.StatusInternalServerError, "internal", "Something went wrong."))
	case actLoseID:
		if a.status < 300 {
			return answer{status: http.StatusAccepted, body: map[string]string{"status": "accepted"}}
		}
	case actHoldAnswer:
		if !p.script.hold(c, f, p.stop) {
			return answer{}
		}
	}
	return a
}

// expire invalidates the access token for this and later requests, and returns the error to respond
// with.
func (p *Platform) expire(c *call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.access[c.token] != nil {
		if err := p.commit(record{Op: opExpire, Ref: c.token}); err != nil {
			return err
		}
	}
	return tokenExpired()
}

func (p *Platform) drop(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.opts.Log.Debug("sandbox: cannot take over the connection", "error", err)
		return
	}
	if err := conn.Close(); err != nil {
		p.opts.Log.Debug("sandbox: cannot close the connection", "error", err)
	}
}
