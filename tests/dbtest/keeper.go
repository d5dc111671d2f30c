package dbtest

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// makeLimit is generous for a machine whose cores are all busy.
const makeLimit = time.Minute

// owner makes databases and super drops them. Both stay connected until the process ends, because a connection takes
// longer than what they do with it.
var owner, super keeper

// keeper is one connection, used by one test at a time and opened again after an error.
type keeper struct {
	mu   sync.Mutex
	conn *pgx.Conn
}

// do calls f with the connection to an address, which is always the same.
func (k *keeper) do(ctx context.Context, address string, f func(context.Context, *pgx.Conn) error) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeLimit)
	defer cancel()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conn == nil {
		if k.conn, err = pgx.Connect(ctx, address); err != nil {
			return err
		}
	}
	if err = f(ctx, k.conn); err != nil {
		_ = k.conn.Close(ctx) // the error is about what f did
		k.conn = nil
	}
	return err
}
