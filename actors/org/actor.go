package org

import (
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"crier/platform/clock"
	"crier/platform/ratelimit"
	"crier/tenancy"
)

// OfferQueue receives the actors' offers. This process's worker takes the offers from the queue.
type OfferQueue interface {
	// Offer reports that an organization has due posts. permits is how many more posts the
	// organization may have in flight. Offer never blocks. The worker responds to each offer with
	// exactly one call to Client.Granted or Client.Refused.
	Offer(org tenancy.OrgID, permits int)
}

// The messages within a process; org.proto defines the messages between processes. Messages carry
// ids, numbers and times, never content. Any message may be lost or arrive twice.
type (
	// tick is sent by the timer when a post is due.
	tick struct{}
	// expire is sent after idleTimeout without a message.
	expire struct{}
	// granted responds to an offer. claimed is how many posts were claimed and are now in flight.
	// The next post is due after wait. A negative wait means that no other post is known.
	granted struct {
		claimed int
		wait    time.Duration
	}
	// done reports how many claimed posts have ended. If waits is true, a Wake will follow once the
	// next posts can be claimed.
	done struct {
		posts int
		waits bool
	}
	// leave reports that another process owns the organization's shard. Later messages are
	// forwarded.
	leave struct{}
)

const (
	horizon     = 90 * time.Second // posts due later are left to the sweep
	idleTimeout = 10 * time.Minute // an actor without messages stops after this time
	noWait      = time.Duration(-1)
)

// organization is the actor of one organization. It limits the rate of requests, runs one timer and
// counts the posts in flight. Its state is volatile; Postgres is authoritative.
type organization struct {
	cfg    Config
	clock  clock.Clock
	skew   func() time.Duration // see Client.Skew
	offers OfferQueue
	log    *slog.Logger
	// retire removes this activation, so that the next message starts a new one. Messages that
	// still reach this activation must be forwarded.
	retire func(self *actor.PID)
	// resend sends a message to the organization's current activation, in this process or another.
	resend func(message any)

	org          tenancy.OrgID
	window       ratelimit.Window
	timer        *time.Timer
	armed        time.Time // when the timer fires, or zero if it is not armed
	inFlight     int       // posts
	offered      bool      // an offer has no response yet
	offerPending bool      // another offer must follow: posts became due that could not be offered
	idle         *time.Timer
	left         bool // after leave or retire
}

// Receive handles one message and never blocks. It recovers from a panic, which would otherwise
// restart the actor. If a request caused the panic, Receive allows the request.
func (o *organization) Receive(ctx actor.Context) {
	defer func() {
		if r := recover(); r != nil {
			o.log.Error("panic in an organization's actor", "org", o.org, "panic", r)
			if ctx.Sender() != nil {
				reset := o.clock.Now().Add(ratelimit.Span)
				ctx.Respond(response(o.cfg.Limit, ratelimit.Verdict{Allowed: true, Reset: reset}))
			}
		}
	}()
	if o.left {
		o.forward(ctx)
		return
	}
	if o.idle != nil {
		o.idle.Reset(idleTimeout)
	}
	switch m := ctx.Message().(type) {
	case *actor.Started:
		o.idle = after(ctx, idleTimeout, expire{})
	case *actor.Stopping, leave:
		o.leave()
	case *AdmitRequest:
		ctx.Respond(response(o.cfg.Limit, o.window.Take(o.clock.Now(), o.cfg.Limit)))
	case *Wake:
		o.arm(ctx, time.UnixMicro(m.GetDueUnixUs()).Sub(o.clock.Now().Add(o.skew())))
	case tick:
		o.armed = time.Time{}
		o.offer()
	case granted:
		o.offered, o.inFlight = false, o.inFlight+m.claimed
		o.afterGrant(ctx, m)
	case done:
		o.inFlight = max(0, o.inFlight-m.posts)
		if !m.waits || o.offerPending {
			o.offer()
		}
	case expire:
		if o.inFlight == 0 && !o.offered && o.armed.IsZero() && o.window.Expired(o.clock.Now()) {
			o.leave()
			o.retire(ctx.Self())
		}
	}
}

// forward handles a message that arrives after this activation has left. It responds to a request
// with Moved, so that the client retries, and forwards a Wake to the current activation.
func (o *organization) forward(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *AdmitRequest:
		ctx.Respond(&AdmitResponse{Moved: true})
	case *Wake:
		o.resend(m)
	}
}

// afterGrant arms the timer for the next post, and makes any offer that had to wait for the grant.
// If a post is due but nothing was claimed, another transaction has locked the post's row. In that
// case, the next offer follows after 20 to 50 ms.
func (o *organization) afterGrant(ctx actor.Context, m granted) {
	if m.wait >= 0 {
		wait := m.wait
		if wait == 0 && m.claimed == 0 {
			wait = 20*time.Millisecond + rand.N(30*time.Millisecond)
		}
		o.arm(ctx, wait)
	}
	if o.offerPending {
		o.offer()
	}
}

// arm sets the timer to fire after wait, unless the timer already fires earlier or wait is longer
// than horizon. If wait is not positive, arm makes an offer immediately.
func (o *organization) arm(ctx actor.Context, wait time.Duration) {
	if wait <= 0 {
		o.offer()
		return
	}
	at := o.clock.Now().Add(wait)
	if wait > horizon || !o.armed.IsZero() && !at.Before(o.armed) {
		return
	}
	if o.timer != nil {
		o.timer.Stop()
	}
	o.armed = at
	o.timer = after(ctx, wait, tick{})
}

// offer makes an offer for as many posts as the in-flight limit still allows. Only one offer can be
// open at a time.
func (o *organization) offer() {
	free := o.cfg.MaxInFlight - o.inFlight
	if o.offered || free <= 0 {
		o.offerPending = true
		return
	}
	o.offered, o.offerPending = true, false
	o.offers.Offer(o.org, free)
}

// leave stops the timers and makes Receive forward every later message.
func (o *organization) leave() {
	o.left = true
	o.idle.Stop()
	if o.timer != nil {
		o.timer.Stop()
	}
}

// after sends message to the actor's mailbox after d. The timer's function must not access the
// actor directly, because it runs in a different goroutine.
func after(ctx actor.Context, d time.Duration, message any) *time.Timer {
	system, self := ctx.ActorSystem(), ctx.Self()
	return time.AfterFunc(d, func() { system.Root.Send(self, message) })
}
