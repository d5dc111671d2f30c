package dbtest

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// makeLimit is generous because all cores of the machine may be busy.
const makeLimit = time.Minute

// owner creates databases and super drops them. Both stay connected until the process ends, because
// connecting takes longer than their work.
var owner, super keeper

// keeper is one connection, used by one test at a time and reopened after an error.
type keeper struct {
	mu   sync.Mutex
	conn *pgx.Conn
}

// do calls f with a connection to address, which must be the same in every call.
func (k *keeper) do(ctx context.Context, address string, f func(context.Context, *pgx.Conn) error) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeLimit)
	defer cancel()
	if k.conn == nil {
		if k.conn, err = pgx.Connect(ctx, address); err != nil {
			return err
		}
	}
	if err = f(ctx, k.conn); err != nil {
		_ = k.conn.Close(ctx) // the error of f is returned instead
		k.conn = nil
	}
	return err
}
