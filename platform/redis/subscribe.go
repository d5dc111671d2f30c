package redis

import (
	"context"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"crier/platform/clock"
)

const (
	// pingAfter is the time without a message after which the server is pinged.
	pingAfter = 2 * time.Second
	// lostAfter is the time without an answer after which the subscription is lost. Revoked API keys must stop working
	// within 5 s.
	lostAfter   = 2*pingAfter + pingAfter/4
	redialDelay = 250 * time.Millisecond
)

// Subscribe calls fn with every message of the channel, one at a time, until stop or Close. It returns after the first
// attempt to subscribe, which ctx limits. If the server confirmed the subscription, no later message is missed;
// otherwise healthy returns false and Subscribe keeps trying in the background.
//
// While healthy returns false, messages may be lost. It returns false within five seconds of the last answer of a
// server that is gone or silent. When a lost subscription is confirmed again, the functions in gaps are called before
// healthy returns true, for example to clear a cache. fn and the functions in gaps are called by one goroutine and must
// not block. They must not call stop, which waits for a running one.
func (c *Client) Subscribe(
	ctx context.Context, channel string, fn func(msg string), gaps ...func(),
) (stop func(), healthy func() bool) {
	s := &subscription{fn: fn, gaps: gaps}
	c.mu.Lock()
	c.subs.Add(1)
	c.mu.Unlock()
	life, cancel := context.WithCancel(c.life)
	first, end := context.WithTimeout(ctx, pingAfter)
	defer end()
	ps := c.rdb.Subscribe(first, channel)
	if msg, _ := ps.Receive(first); msg != nil {
		s.markHeard()
	}
	done := make(chan struct{})
	go func() {
		defer c.subs.Done()
		defer close(done)
		s.receive(life, ps)
	}()
	return func() { cancel(); <-done }, s.isHealthy
}

// subscription is one call of Subscribe.
type subscription struct {
	fn    func(string)
	gaps  []func()
	heard atomic.Int64 // when the server last answered, Unix nanoseconds; 0 while the subscription is lost
}

func (s *subscription) markHeard() { s.heard.Store(clock.System{}.Now().UnixNano()) }

func (s *subscription) isHealthy() bool {
	heard := s.heard.Load()
	return heard != 0 && clock.System{}.Now().UnixNano()-heard < int64(lostAfter)
}

// receive calls the functions until ctx ends. go-redis reconnects and subscribes again by itself. Its Go channel is not
// used because it reports neither a lost connection nor an unanswered ping, so healthy could not become false.
func (s *subscription) receive(ctx context.Context, ps *goredis.PubSub) {
	defer s.heard.Store(0)
	context.AfterFunc(ctx, func() { _ = ps.Close() }) // ends a Receive that waits
	ping := time.AfterFunc(pingAfter, func() {
		probe, cancel := context.WithTimeout(ctx, pingAfter)
		defer cancel()
		_ = ps.Ping(probe) // Receive returns the answer, or an error if the connection is lost
	})
	defer ping.Stop()
	for ctx.Err() == nil {
		wait, cancel := context.WithTimeout(ctx, lostAfter)
		msg, _ := ps.Receive(wait) // nil after an error, which closes the connection; the next call makes a new one
		cancel()
		switch m := msg.(type) {
		case *goredis.Subscription: // on a new connection, or after Subscribe has returned
			for _, gap := range s.gaps {
				gap()
			}
			s.markHeard()
		case *goredis.Message:
			s.markHeard()
			s.fn(m.Payload)
		case *goredis.Pong:
			if s.heard.Load() == 0 { // the subscription was refused; the connection is closed after lostAfter
				continue
			}
			s.markHeard()
		default:
			s.heard.Store(0)
			_ = clock.Sleep(ctx, redialDelay) // the loop ends with ctx
			continue
		}
		ping.Reset(pingAfter)
	}
}
