package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
)

// cancelPending is the PgConn.CustomData key of a connection that may still receive a cancellation.
const cancelPending = "crier: cancel pending"

// cancelAtDeadline configures connections to cancel a statement on the server when the statement's
// context ends. A claim therefore cannot commit after its caller has given up. If the server does
// not confirm the cancellation within cancelWait, the connection is closed.
func cancelAtDeadline(cc *pgx.ConnConfig) {
	cc.BuildContextWatcherHandler = func(c *pgconn.PgConn) ctxwatch.Handler { return &canceller{conn: c} }
}

// canceller cancels a connection's statement. A cancel request identifies the connection, not the
// statement, so a late request could cancel a statement of the connection's next user. The
// canceller therefore blocks the caller until the server has confirmed that the request was
// delivered. Without confirmation, it marks the connection, and the pool closes the connection.
type canceller struct {
	conn      *pgconn.PgConn
	asked     chan struct{} // closed when delivered is set
	delivered bool
}

// HandleCancel implements ctxwatch.Handler. ended is the statement's context.
func (c *canceller) HandleCancel(ended context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ended), cancelWait)
	end, _ := ctx.Deadline()
	_ = c.conn.Conn().SetDeadline(end) // fails for a closed connection, on which no statement runs
	c.asked, c.delivered = make(chan struct{}), false
	go func() {
		defer close(c.asked)
		defer cancel()
		// CancelRequest also returns nil at the deadline.
		c.delivered = c.conn.CancelRequest(ctx) == nil && ctx.Err() == nil
	}()
}

// HandleUnwatchAfterCancel implements ctxwatch.Handler.
func (c *canceller) HandleUnwatchAfterCancel() {
	<-c.asked
	if !c.delivered {
		c.conn.CustomData()[cancelPending] = true
	}
	_ = c.conn.Conn().SetDeadline(time.Time{})
}

// isReusable is every pool's PrepareConn hook. It rejects connections that may still receive a
// cancellation.
func isReusable(_ context.Context, c *pgx.Conn) (bool, error) {
	return c.PgConn().CustomData()[cancelPending] == nil, nil
}
