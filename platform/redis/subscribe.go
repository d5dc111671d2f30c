package redis

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"crier/platform/clock"
)

const (
	quiet   = 2 * time.Second   // silence after which the connection is probed
	silent  = 2*quiet + quiet/4 // silence after which it is not healthy; revoked keys must stop working within 5 s
	redialA = 50 * time.Millisecond
	redialZ = 2 * time.Second
)

// Subscribe calls fn with every message of the channel, one at a time, until stop or Close. It returns after the first attempt:
// when the server confirmed it, nothing published from then on is missed; when not, healthy is false and it keeps trying by itself.
// ctx bounds that first wait only. While healthy is false messages may be lost. The functions in gaps are called, by the goroutine
// of fn, when the subscription stands again after a loss, before healthy turns true: whoever caches forgets everything then.
// stop waits for a running fn, so fn must not call it.
func (c *Client) Subscribe(ctx context.Context, channel string, fn func(msg string), gaps ...func()) (stop func(), healthy func() bool) {
	s := &subscription{client: c, channel: channel, fn: fn, gaps: gaps}
	life, cancel := context.WithCancel(c.life)
	c.mu.Lock() // so that Close either waits for this one or is seen by it
	closed := life.Err() != nil
	if !closed {
		c.subs.Add(1)
	}
	c.mu.Unlock()
	if closed {
		cancel()
		return func() {}, s.isHealthy
	}
	first := s.connect(ctx)
	if first != nil {
		s.hear()
	}
	done := make(chan struct{})
	go func() {
		defer c.subs.Done()
		defer close(done)
		s.run(life, first)
	}()
	return func() { cancel(); <-done }, s.isHealthy
}

type subscription struct {
	client  *Client
	channel string
	fn      func(string)
	gaps    []func()
	heard   atomic.Int64 // when the server last spoke, unix nanoseconds; 0 = lost
}

func (s *subscription) hear() { s.heard.Store(clock.System{}.Now().UnixNano()) }

// isHealthy does not trust a connection that is silent for longer than a probe takes.
func (s *subscription) isHealthy() bool {
	heard := s.heard.Load()
	return heard != 0 && clock.System{}.Now().UnixNano()-heard < int64(silent)
}

// connect returns nil when the server did not confirm.
func (s *subscription) connect(ctx context.Context) *goredis.PubSub {
	ps := s.client.rdb.Subscribe(ctx, s.channel)
	if _, err := ps.ReceiveTimeout(ctx, quiet); err != nil {
		_ = ps.Close()
		return nil
	}
	return ps
}

func (s *subscription) run(ctx context.Context, ps *goredis.PubSub) {
	wait := redialA
	for {
		if ps != nil {
			wait = redialA
			s.receive(ctx, ps)
			s.heard.Store(0)
			_ = ps.Close() // broken or no longer wanted
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, redialZ)
		attempt, cancel := context.WithTimeout(ctx, quiet)
		ps = s.connect(attempt)
		cancel()
		if ps != nil {
			for _, gap := range s.gaps {
				gap()
			}
			s.hear()
		}
	}
}

// receive returns when the connection is lost or ctx is over.
func (s *subscription) receive(ctx context.Context, ps *goredis.PubSub) {
	defer context.AfterFunc(ctx, func() { _ = ps.Close() })() // unblocks the read below
	probed := false
	for ctx.Err() == nil {
		msg, err := ps.ReceiveTimeout(ctx, quiet)
		var slow net.Error
		switch {
		case err == nil:
			probed = false
			s.hear()
			if m, ok := msg.(*goredis.Message); ok {
				s.fn(m.Payload)
			}
		case errors.As(err, &slow) && slow.Timeout() && !probed:
			if ps.Ping(ctx) != nil {
				return
			}
			probed = true
		default:
			return
		}
	}
}
