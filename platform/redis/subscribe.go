package redis

import (
	"context"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"crier/platform/clock"
)

const (
	quiet  = 2 * time.Second        // silence after which the server is pinged
	silent = 2*quiet + quiet/4      // silence after which it is lost; revoked keys must stop working within 5 s
	redial = 250 * time.Millisecond // wait between attempts to connect
)

// Subscribe calls fn with every message of the channel, one at a time, until stop or Close. It returns after the first
// attempt, which the deadline of ctx bounds. If the server confirmed the subscription, nothing published from then on
// is missed. If not, healthy returns false and Subscribe keeps trying in the background.
//
// While healthy returns false messages may be lost. It does so within five seconds of the last answer of a server that
// is gone or silent. When a lost subscription is confirmed again, the functions in gaps are called before healthy
// returns true: a cache is cleared then. fn and the functions in gaps are called by one goroutine and must not block.
// stop waits for the one that runs, so they must not call it.
func (c *Client) Subscribe(
	ctx context.Context, channel string, fn func(msg string), gaps ...func(),
) (stop func(), healthy func() bool) {
	s := &subscription{fn: fn, gaps: gaps}
	c.mu.Lock()
	c.subs.Add(1)
	c.mu.Unlock()
	life, cancel := context.WithCancel(c.life)
	first, end := context.WithTimeout(ctx, quiet)
	defer end()
	ps := c.rdb.Subscribe(first, channel)
	if _, err := ps.Receive(first); err == nil {
		s.hear()
	}
	done := make(chan struct{})
	go func() {
		defer c.subs.Done()
		defer close(done)
		s.receive(life, ps)
	}()
	return func() { cancel(); <-done }, s.isHealthy
}

type subscription struct {
	fn    func(string)
	gaps  []func()
	heard atomic.Int64 // when the server last answered, Unix nanoseconds; 0 while the subscription is lost
}

func (s *subscription) hear() { s.heard.Store(clock.System{}.Now().UnixNano()) }

func (s *subscription) isHealthy() bool {
	heard := s.heard.Load()
	return heard != 0 && clock.System{}.Now().UnixNano()-heard < int64(silent)
}

// receive calls the functions until ctx ends. The library connects and subscribes again by itself. Its Go channel is
// not used: it reports neither a lost connection nor a ping without an answer, so healthy could not turn false.
func (s *subscription) receive(ctx context.Context, ps *goredis.PubSub) {
	defer s.heard.Store(0)
	context.AfterFunc(ctx, func() { _ = ps.Close() }) // ends a Receive that waits
	ping := time.AfterFunc(quiet, func() {
		probe, cancel := context.WithTimeout(ctx, quiet)
		defer cancel()
		_ = ps.Ping(probe) // Receive sees the answer or a lost connection
	})
	defer ping.Stop()
	for ctx.Err() == nil {
		wait, cancel := context.WithTimeout(ctx, silent)
		msg, _ := ps.Receive(wait) // nil after an error, which drops the connection; the next call makes a new one
		cancel()
		switch m := msg.(type) {
		case *goredis.Subscription: // on a new connection, or later than Subscribe waited
			for _, gap := range s.gaps {
				gap()
			}
			s.hear()
		case *goredis.Message:
			s.hear()
			s.fn(m.Payload)
		case *goredis.Pong:
			if s.heard.Load() == 0 { // the server refused to subscribe; the silence that follows drops the connection
				continue
			}
			s.hear()
		default:
			s.heard.Store(0)
			_ = clock.Sleep(ctx, redial) // the loop ends with ctx
			continue
		}
		ping.Reset(quiet)
	}
}
