package dbtest

import (
	"context"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"crier/platform/pg"
)

// Occupy uses up all connections that an organization may have, with slow statements, until release
// is called or the test ends.
func Occupy(t testing.TB, d *pg.DB, org [16]byte) (release func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	begun := make(chan bool)
	half := int(d.Pool(pg.Tenant).Config().MaxConns) / 2
	for range half {
		all.Go(func() {
			begin := sync.OnceFunc(func() { begun <- true })
			for ctx.Err() == nil { // each statement ends by a timeout after a while
				_ = d.InOrg(ctx, org, func(tx pgx.Tx) error { // always returns an error
					begin()
					_, err := tx.Exec(ctx, "select pg_sleep(600)")
					return err
				})
			}
		})
	}
	for range half {
		<-begun
	}
	release = sync.OnceFunc(func() {
		cancel()
		all.Wait()
	})
	t.Cleanup(release)
	return release
}
