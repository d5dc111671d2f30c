package credential

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/clock"
	"crier/platform/pg"
	"crier/tenancy"
	"crier/tenancy/db"
)

// Revocations reports whether this process is receiving credential revocations; see Listen.
type Revocations interface {
	// Healthy reports whether revocations are being received. After the connection is lost, Healthy
	// returns false within five seconds.
	Healthy() bool
}

const (
	// lostAfter is the time since the database's last response after which the connection is
	// considered lost. It is the interval between checks plus the time limit for a check plus some
	// slack.
	lostAfter   = 2*revocationPing + revocationPing/4
	listenAgain = 250 * time.Millisecond
)

// Listening implements Revocations for a process that calls Listen. The zero value is not healthy.
// A Listening is safe for concurrent use.
type Listening struct {
	heard atomic.Int64 // the database's last response, in Unix nanoseconds; 0 while disconnected
}

// Healthy reports whether the process receives revocations.
func (l *Listening) Healthy() bool {
	heard := l.heard.Load()
	return heard != 0 && clock.System{}.Now().UnixNano()-heard < int64(lostAfter)
}

func (l *Listening) markHeard() { l.heard.Store(clock.System{}.Now().UnixNano()) }

// Revocable is a cache of credentials that can be revoked.
type Revocable interface {
	// ForgetRevoked removes the credentials that a revocation applies to. revoked is a payload of
	// db.RevocationChannel.
	ForgetRevoked(revoked string)
	// ForgetOrgs removes the credentials of the given organizations, and every hash that matched no
	// credential.
	ForgetOrgs(orgs ...tenancy.OrgID)
	// ForgetAll empties the cache.
	ForgetAll()
}

// Caches is several caches as one.
type Caches []Revocable

// ForgetRevoked implements Revocable.
func (c Caches) ForgetRevoked(revoked string) {
	for _, one := range c {
		one.ForgetRevoked(revoked)
	}
}

// ForgetOrgs implements Revocable.
func (c Caches) ForgetOrgs(orgs ...tenancy.OrgID) {
	for _, one := range c {
		one.ForgetOrgs(orgs...)
	}
}

// ForgetAll implements Revocable.
func (c Caches) ForgetAll() {
	for _, one := range c {
		one.ForgetAll()
	}
}

// Listen receives credential revocations from the database and applies them to cache until ctx
// ends. It receives the revocations made by all processes. Postgres sends a revocation when the
// revoking transaction commits, so the revocation is not lost if the revoking process then stops.
//
// After losing the connection, Listen empties the cache before l becomes healthy again, because
// revocations may have been missed.
func Listen(ctx context.Context, d *db.DB, log *slog.Logger, l *Listening, cache Revocable) {
	defer l.heard.Store(0)
	for ctx.Err() == nil {
		err := listen(ctx, d, cache.ForgetAll, cache.ForgetRevoked, l.markHeard)
		l.heard.Store(0)
		if ctx.Err() == nil {
			log.WarnContext(ctx, "key revocations cannot be received; keys are looked up more often", "error", err)
		}
		_ = clock.Sleep(ctx, listenAgain) // the loop ends with ctx
	}
}

// listen receives the revocations made by all processes on a dedicated connection. It calls started
// once no further revocation can be missed, and then calls received for each revocation. It calls
// alive after each response from the server. Responses arrive at least every four seconds. The
// calls never overlap. listen returns the error that ended the connection, or ctx.Err().
func listen(ctx context.Context, d *db.DB, started func(), received func(string), alive func()) error {
	c, err := openListener(ctx, d)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), revocationDeadline)
		defer cancel()
		_ = c.Close(end) // the server closes its end in any case
	}()
	started()
	for {
		alive()
		wait, cancel := context.WithTimeout(ctx, revocationPing)
		n, err := c.WaitForNotification(wait)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			received(n.Payload)
		case c.IsClosed():
			return err
		default: // nothing was received
			if err := bounded(ctx, c.Ping); err != nil {
				return err
			}
		}
	}
}

func openListener(ctx context.Context, d *db.DB) (c *pgx.Conn, err error) {
	err = bounded(ctx, func(ctx context.Context) error {
		if c, err = d.Direct(ctx, pg.Gate); err != nil {
			return err
		}
		if _, err = c.Exec(ctx, "-- tenancy.RevocationListen\nlisten "+db.RevocationChannel); err != nil {
			_ = c.Close(ctx) // the statement's error is the one to report
		}
		return err
	})
	return c, err
}

const (
	// revocationPing is how long the revocation connection can be idle before it is checked.
	revocationPing = 2 * time.Second
	// revocationDeadline is the time limit for each operation on the revocation connection, such as
	// connecting or pinging.
	revocationDeadline = 2 * time.Second
)

func bounded(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, revocationDeadline)
	defer cancel()
	return fn(ctx)
}
