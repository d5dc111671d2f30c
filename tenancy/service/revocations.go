package service

import (
	"context"
	"sync/atomic"
	"time"

	"crier/platform/clock"
	"crier/platform/id"
	"crier/tenancy"
	tenancystore "crier/tenancy/store"
)

// Revocations tells whether this process receives the revocations of keys, see Accounts.Listen.
type Revocations interface {
	// Healthy returns false within five seconds after the connection is lost.
	Healthy() bool
}

const (
	// lostAfter is the time without an answer after which the connection is lost: that of a check and its deadline.
	lostAfter   = 2*tenancystore.RevocationPing + tenancystore.RevocationPing/4
	listenAgain = 250 * time.Millisecond
)

// Listening is the Revocations of a process that calls Accounts.Listen. The zero value has heard nothing. It is safe for
// concurrent use.
type Listening struct {
	heard atomic.Int64 // when the database last answered, Unix nanoseconds; 0 while the connection is lost
}

// Healthy reports whether the process receives revocations.
func (l *Listening) Healthy() bool {
	heard := l.heard.Load()
	return heard != 0 && clock.System{}.Now().UnixNano()-heard < int64(lostAfter)
}

func (l *Listening) markHeard() { l.heard.Store(clock.System{}.Now().UnixNano()) }

// Listen receives the revocations of keys from the database, those of all processes, until ctx ends. Postgres sends them
// with the commit of what revokes, so none is lost by the end of the process that has revoked. After a lost connection
// the key cache is emptied before l is healthy again, because revocations may have been missed.
func (a *Accounts) Listen(ctx context.Context, l *Listening) {
	defer l.heard.Store(0)
	for ctx.Err() == nil {
		err := a.store.ListenRevocations(ctx, a.keys.forgetAll, a.Forget, l.markHeard)
		l.heard.Store(0)
		if ctx.Err() == nil {
			a.log.WarnContext(ctx, "revocations of keys are not received; keys are looked up more often", "error", err)
		}
		_ = clock.Sleep(ctx, listenAgain) // the loop ends with ctx
	}
}

// Forget removes from the cache what a revocation names: a key by its hash in hexadecimal, or the keys of an
// organization by its id.
func (a *Accounts) Forget(revoked string) {
	if org, ok := id.Parse[tenancy.OrgTag](revoked); ok {
		a.keys.forgetOrgs(org)
		return
	}
	a.keys.forget(revoked)
}

// ForgetAll empties the key cache. It is called when revocations may have been missed.
func (a *Accounts) ForgetAll() { a.keys.forgetAll() }
