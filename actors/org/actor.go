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

// Dispatcher hands out the right to publish; the worker pool of this process.
type Dispatcher interface {
	// Offer says that an organization has something due and would take up to permits posts. It never blocks; the answer is one Granted.
	Offer(org tenancy.OrgID, permits int)
}

// The messages within a process; org.proto has the others. They carry ids, numbers and times, never content; any of them
// may be lost or come twice.
type (
	tick   struct{}
	expire struct{}
	// granted answers an offer: so many posts were claimed, and after wait there is more (negative = nothing more is known).
	granted struct {
		claimed int
		wait    time.Duration
	}
	// done says that claimed posts have ended.
	done struct {
		posts int
		waits bool // it is woken when what follows them can be claimed
	}
	// leave says that the organization's shard belongs to another process: whatever comes now is sent on.
	leave struct{}
)

const (
	horizon   = 90 * time.Second // what is due later is found by the sweep
	passivate = 10 * time.Minute
	nothing   = time.Duration(-1)
)

// organization is the actor of one organization: it counts requests, keeps one timer and knows how many posts are under
// way. All of its state may be lost at any line.
type organization struct {
	cfg      Config
	clock    clock.Clock
	skew     func() time.Duration // the database's clock less ours
	dispatch Dispatcher
	log      *slog.Logger
	// retire makes room for a new activation; whatever comes here after it has to be sent on.
	retire func(self *actor.PID)
	// resend sends a message to the organization's current activation, wherever that is.
	resend func(message any)

	org     tenancy.OrgID
	window  ratelimit.Window
	timer   *time.Timer
	armed   time.Time // when the timer fires; zero = not armed
	busy    int       // posts under way
	offered bool
	again   bool // something came up while an offer was out
	idle    *time.Timer
	left    bool // another activation answers for the organization, or it stops
}

// Receive never blocks and never panics out: a fault in here must not stop an organization.
func (o *organization) Receive(ctx actor.Context) {
	defer func() {
		if r := recover(); r != nil {
			o.log.Error("an organization's actor failed", "org", o.org, "panic", r)
			if ctx.Sender() != nil {
				reset := o.clock.Now().Add(ratelimit.Span)
				ctx.Respond(response(o.cfg.Limit, ratelimit.Verdict{Allowed: true, Reset: reset}))
			}
		}
	}()
	if o.left {
		o.pass(ctx)
		return
	}
	if o.idle != nil {
		o.idle.Reset(passivate)
	}
	switch m := ctx.Message().(type) {
	case *actor.Started:
		o.idle = after(ctx, passivate, expire{})
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
		o.offered, o.busy = false, o.busy+m.claimed
		o.next(ctx, m)
	case done:
		o.busy = max(0, o.busy-m.posts)
		if !m.waits || o.again {
			o.offer()
		}
	case expire:
		if o.busy == 0 && !o.offered && o.armed.IsZero() && o.window.Expired(o.clock.Now()) {
			o.leave()
			o.retire(ctx.Self())
		}
	}
}

// pass sends on what comes after this activation has left: a request must ask again, a wake-up goes to the one that
// answers now.
func (o *organization) pass(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *AdmitRequest:
		ctx.Respond(&AdmitResponse{Moved: true})
	case *Wake:
		o.resend(m)
	}
}

// next plans what follows a grant. Nothing claimed although something is due means that a row was locked: soon again, not at once.
func (o *organization) next(ctx actor.Context, m granted) {
	if m.wait >= 0 {
		wait := m.wait
		if wait == 0 && m.claimed == 0 {
			wait = 20*time.Millisecond + rand.N(30*time.Millisecond)
		}
		o.arm(ctx, wait)
	}
	if o.again {
		o.offer()
	}
}

// arm makes the timer fire after wait, unless it fires earlier anyway.
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

// offer asks for permits, one question at a time.
func (o *organization) offer() {
	free := o.cfg.InFlight - o.busy
	if o.offered || free <= 0 {
		o.again = true
		return
	}
	o.offered, o.again = true, false
	o.dispatch.Offer(o.org, free)
}

func (o *organization) leave() {
	o.left = true
	o.idle.Stop()
	if o.timer != nil {
		o.timer.Stop()
	}
}

func after(ctx actor.Context, d time.Duration, message any) *time.Timer {
	system, self := ctx.ActorSystem(), ctx.Self()
	return time.AfterFunc(d, func() { system.Root.Send(self, message) })
}
