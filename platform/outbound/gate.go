package outbound

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"crier/platform/clock"
)

// ErrTooLate is the cause of a Commit that was given up because its limit had passed before its first byte.
var ErrTooLate = errors.New("the time for this request was over before it was sent")

type limitKey struct{}

// WithLimit lets a Commit under ctx write only within limit from now, by a clock that also runs while the process or
// the machine is stopped: a process that goes on after that sends nothing, nor the rest of what it had begun to send.
func WithLimit(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, limitKey{}, clock.Boot()+limit)
}

// Left is how much of the limit of ctx is left; ok is false when it has none.
func Left(ctx context.Context) (left time.Duration, ok bool) {
	until, ok := ctx.Value(limitKey{}).(time.Duration)
	return until - clock.Boot(), ok
}

// gate knows of one request whether any byte of it may have left, and lets none leave once that was denied.
type gate struct {
	ctx   context.Context
	ready atomic.Bool  // the connection stands: what is written from now on is the request
	state atomic.Int32 // waiting, then for ever passed or shut
}

const (
	waiting int32 = iota
	passed
	shut
)

// pass is asked before every write.
func (g *gate) pass() error {
	left, limited := Left(g.ctx)
	over := limited && left <= 0
	if !g.ready.Load() || !over && g.state.Load() == passed {
		return nil
	}
	if over || g.ctx.Err() != nil {
		g.state.CompareAndSwap(waiting, shut)
	}
	if over || !g.state.CompareAndSwap(waiting, passed) {
		return ErrTooLate
	}
	return nil
}

// close ends the request; true means that something of it may have left.
func (g *gate) close() bool {
	return !g.state.CompareAndSwap(waiting, shut) && g.state.Load() == passed
}

// gated is the connection of one Commit.
type gated struct {
	net.Conn
	gate *gate
}

func (c gated) Write(b []byte) (int, error) {
	if err := c.gate.pass(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
