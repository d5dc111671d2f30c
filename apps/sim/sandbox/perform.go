package sandbox

import (
	"net/http"
	"time"
)

// perform carries out a request of the API, with the fault that is scripted for it, if any.
func (p *Platform) perform(w http.ResponseWriter, c *call, e endpoint) {
	f := p.script.due(c, p.who(c))
	if f == nil {
		p.run(c, e).send(w)
		return
	}
	a, act := p.before(c, f)
	if act {
		a = p.after(c, f, p.run(c, e))
	}
	if a.status == 0 {
		p.drop(w)
		return
	}
	a.send(w)
}

// before does what a fault asks before the request is acted upon. With act false the returned answer is final;
// one without a status means that the connection is cut.
func (p *Platform) before(c *call, f *scripted) (a answer, act bool) {
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

// slow waits; a client that leaves meanwhile does not stop the platform from acting, as on a real one.
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

// after does what a fault asks once the request was acted upon and its effect is on disk.
func (p *Platform) after(c *call, f *scripted, a answer) answer {
	switch f.Action {
	case actDrop:
		return answer{}
	case actErrorAfter:
		return p.failure(refuse(http.StatusInternalServerError, "internal", "Something went wrong."))
	case actHoldAnswer:
		if !p.script.hold(c, f, p.stop) {
			return answer{}
		}
	}
	return a
}

// expire kills the access token of the request, also for later requests.
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

// drop ends the connection without an answer.
func (p *Platform) drop(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		err = conn.Close()
	}
	if err != nil {
		p.opts.Log.Debug("sandbox: the connection was gone already", "error", err)
	}
}
