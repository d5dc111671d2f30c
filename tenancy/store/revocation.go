package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
)

// Statements that end keys notify revocationChannel of the hash of the key in hexadecimal, or of the id of the
// organization whose keys end or work again. Postgres sends the notifications of a transaction when it commits.
const revocationChannel = "crier_key_revoked"

const (
	// RevocationPing is how often an idle connection that receives revocations is checked.
	RevocationPing = 2 * time.Second
	// revocationDeadline limits each statement of that connection.
	revocationDeadline = 2 * time.Second
)

// ListenRevocations receives the revocations of all processes on a connection of its own. It calls started when it
// misses none from then on, received with each revocation, and alive after each answer of the server, at least every
// four seconds. It calls one function at a time, and returns the error that has ended the connection, or that of ctx.
func (s *Store) ListenRevocations(ctx context.Context, started func(), received func(string), alive func()) error {
	c, err := s.openListener(ctx)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), revocationDeadline)
		defer cancel()
		_ = c.Close(end) // it has ended for the server too, or will
	}()
	started()
	for {
		alive()
		wait, cancel := context.WithTimeout(ctx, RevocationPing)
		n, err := c.WaitForNotification(wait)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			received(n.Payload)
		case c.IsClosed():
			return err
		default: // nothing has come
			if err := bounded(ctx, c.Ping); err != nil {
				return err
			}
		}
	}
}

func (s *Store) openListener(ctx context.Context) (c *pgx.Conn, err error) {
	err = bounded(ctx, func(ctx context.Context) error {
		if c, err = s.db.Direct(ctx, pg.Gate); err != nil {
			return err
		}
		if _, err = c.Exec(ctx, "-- tenancy.RevocationListen\nlisten "+revocationChannel); err != nil {
			_ = c.Close(ctx) // the error of the statement is the one that counts
		}
		return err
	})
	return c, err
}

func bounded(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, revocationDeadline)
	defer cancel()
	return fn(ctx)
}
